"""The metadata tables, which Spark finds by asking for tables that are not there."""

import pytest
from conftest import refused


@pytest.mark.s3
def test_metadata_tables(lake):
    t = lake.create()
    for value in (1, 2):
        lake.sql(f"INSERT INTO {t} VALUES ({value}, 'x')")
    first, second = lake.snapshots(t)

    assert lake.sql(f"SELECT snapshot_id, parent_id, operation FROM {t}.snapshots ORDER BY committed_at") == [
        (first, None, "append"),
        (second, first, "append"),
    ]
    assert lake.sql(
        f"SELECT snapshot_id, parent_id, is_current_ancestor FROM {t}.history ORDER BY made_current_at"
    ) == [
        (first, None, True),
        (second, first, True),
    ]
    assert lake.sql(f"SELECT name, type, snapshot_id FROM {t}.refs") == [("main", "BRANCH", second)]
    assert lake.sql(f"SELECT count(*), sum(record_count) FROM {t}.files") == [(2, 2)]
    assert lake.sql(f"SELECT count(*) FROM {t}.files VERSION AS OF {first}") == [(1,)]
    assert lake.sql(f"SELECT count(*) FROM {t}.all_data_files") == [(2,)]
    assert lake.sql(f"SELECT count(*), sum(added_data_files_count) FROM {t}.manifests") == [(2, 2)]
    assert lake.sql(f"SELECT status, snapshot_id FROM {t}.entries ORDER BY sequence_number") == [
        (1, first),
        (1, second),
    ]
    assert lake.sql(f"SELECT record_count, file_count FROM {t}.partitions") == [(2, 2)]
    assert lake.sql(f"SELECT * FROM {t}.position_deletes") == []

    # One entry for each version, in order, and the files that it names are there.
    log = lake.sql(f"SELECT file, latest_snapshot_id FROM {t}.metadata_log_entries ORDER BY timestamp, file")
    assert [snapshot for _, snapshot in log] == [None, first, second]
    io = lake.java_table(t).io()
    assert all(io.newInputFile(file).exists() for file, _ in log)


def test_names_of_metadata_tables_are_not_taken(lake):
    # A namespace and a table that are called like metadata tables are found before those.
    lake.sql(f"CREATE NAMESPACE {lake.prefix}.t")
    try:
        real = f"{lake.prefix}.t.snapshots"
        lake.sql(f"CREATE TABLE {real} USING iceberg AS SELECT 7 AS id")
        t = lake.create()
        assert lake.sql(f"SELECT * FROM {real}") == [(7,)]
        assert lake.sql(f"SELECT * FROM {t}.history") == []
        lake.sql(f"DROP TABLE {real}")
        assert lake.sql(f"SELECT * FROM {t}.snapshots") == []
    finally:
        lake.sql(f"DROP NAMESPACE {lake.prefix}.t")
    with refused("cannot be found"):
        lake.sql(f"SELECT * FROM {lake.prefix}.missing.snapshots")
