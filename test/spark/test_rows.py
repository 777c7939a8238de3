"""MERGE, UPDATE and DELETE, in each way that Iceberg writes them."""

import pytest

# Format version 2 with whole files rewritten, 2 with position deletes, 3 with deletion vectors.
WAYS = [(2, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read")]


@pytest.fixture(params=WAYS, ids=["v2-copy", "v2-deletes", "v3-vectors"])
def way(request):
    return request.param


@pytest.fixture
def people(lake, way):
    version, mode = way
    modes = {f"write.{what}.mode": mode for what in ("delete", "update", "merge")}
    table = lake.create("people", **{"format-version": version}, **modes)
    # One file of four rows: what is deleted is always a part of it.
    lake.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'ann'), (2, 'bob'), (3, 'cyd'), (4, 'dan')"
    )
    return table


def check_way(lake, table, way):
    """The last commit was written in the way that the table asks for."""
    formats = lake.column(f"SELECT file_format FROM {table}.delete_files")
    expected = {(2, "copy-on-write"): [], (2, "merge-on-read"): ["PARQUET"], (3, "merge-on-read"): ["PUFFIN"]}[way]
    assert formats == expected


@pytest.mark.s3
def test_delete(lake, people, way):
    lake.sql(f"DELETE FROM {people} WHERE name LIKE '%n%'")
    assert lake.column(f"SELECT id FROM {people} ORDER BY id") == [2, 3]
    check_way(lake, people, way)


@pytest.mark.s3
def test_update(lake, people, way):
    lake.sql(f"UPDATE {people} SET name = upper(name) WHERE id IN (SELECT max(id) FROM {people})")
    assert lake.sql(f"SELECT * FROM {people} ORDER BY id") == [(1, "ann"), (2, "bob"), (3, "cyd"), (4, "DAN")]
    check_way(lake, people, way)


@pytest.mark.s3
def test_merge(lake, people, way):
    lake.sql(
        f"MERGE INTO {people} t USING (SELECT * FROM VALUES (1, 'anna'), (2, NULL), (5, 'eve') AS (id, name)) s "
        "ON t.id = s.id WHEN MATCHED AND s.name IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN UPDATE SET name = 'gone'"
    )
    assert lake.sql(f"SELECT * FROM {people} ORDER BY id") == [(1, "anna"), (3, "cyd"), (4, "gone"), (5, "eve")]
    assert len(lake.snapshots(people)) == 2
    check_way(lake, people, way)


def test_delete_of_whole_files_writes_none(lake):
    t = f"{lake.prefix}.t"
    lake.sql(f"CREATE TABLE {t} USING iceberg PARTITIONED BY (id) AS SELECT id FROM range(3)")
    lake.sql(f"DELETE FROM {t} WHERE id = 1")
    assert lake.column(f"SELECT id FROM {t} ORDER BY id") == [0, 2]
    assert lake.column(f"SELECT operation FROM {t}.snapshots ORDER BY committed_at") == ["append", "delete"]


@pytest.mark.s3
def test_row_lineage(lake):
    t = lake.create(**{"format-version": 3})
    lake.sql(f"INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'ann'), (2, 'bob')")
    lake.sql(f"INSERT INTO {t} VALUES (3, 'cyd')")
    lineage = f"SELECT id, _row_id, _last_updated_sequence_number FROM {t} ORDER BY id"
    assert lake.sql(lineage) == [(1, 0, 1), (2, 1, 1), (3, 2, 2)]
    # A row that is rewritten keeps its id, and one that is updated gets a new sequence number.
    lake.sql(f"UPDATE {t} SET name = 'rob' WHERE id = 2")
    assert lake.sql(lineage) == [(1, 0, 1), (2, 1, 3), (3, 2, 2)]
    lake.call("rewrite_data_files", f"table => '{t}'", "options => map('rewrite-all', 'true')")
    assert lake.sql(lineage) == [(1, 0, 1), (2, 1, 3), (3, 2, 2)]
