"""CALL system.*: maintenance, rollback, and tables taken from elsewhere."""

import pytest
from conftest import Files, plain, refused


@pytest.fixture
def t(lake):
    """A table of three snapshots and three files."""
    table = lake.create()
    for row in ("(1, 'ann')", "(2, 'bob')", "(3, 'cyd')"):
        lake.sql(f"INSERT INTO {table} VALUES {row}")
    return table


def ids(lake, table):
    return lake.column(f"SELECT id FROM {table} ORDER BY id")


@pytest.mark.s3
def test_rewrite_and_expire(lake, t):
    files = Files(lake, t)
    data = {plain(path) for path in lake.column(f"SELECT file_path FROM {t}.files")}
    done = lake.call("rewrite_data_files", f"table => '{t}'", "options => map('rewrite-all', 'true')")
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (3, 1)
    done = lake.call("rewrite_manifests", f"'{t}'")
    assert ids(lake, t) == [1, 2, 3]

    done = lake.call(
        "expire_snapshots", f"table => '{t}'", "older_than => TIMESTAMP '2100-01-01 00:00:00'", "retain_last => 1"
    )
    assert done.deleted_data_files_count == 3
    assert len(lake.snapshots(t)) == 1
    assert ids(lake, t) == [1, 2, 3]
    assert not data & files.list()


@pytest.mark.s3
def test_rewrite_of_deletes(lake):
    t = lake.create(**{"write.delete.mode": "merge-on-read"})
    lake.sql(f"INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, string(id) FROM range(10)")
    for gone in (1, 2, 3):
        lake.sql(f"DELETE FROM {t} WHERE id = {gone}")
    done = lake.call("rewrite_position_delete_files", f"table => '{t}'", "options => map('rewrite-all', 'true')")
    assert done.rewritten_delete_files_count == done.added_delete_files_count == 1
    assert ids(lake, t) == [0, 4, 5, 6, 7, 8, 9]


def test_rollback_and_set_current(lake, t):
    first, second, third = lake.snapshots(t)
    done = lake.call("rollback_to_snapshot", f"'{t}'", str(second))
    assert (done.previous_snapshot_id, done.current_snapshot_id) == (third, second)
    assert ids(lake, t) == [1, 2]
    with refused("Cannot roll back to snapshot, not an ancestor of the current state"):
        lake.call("rollback_to_snapshot", f"'{t}'", str(third))
    # Setting needs no ancestor, rolling back to a time does.
    lake.call("set_current_snapshot", f"'{t}'", str(third))
    assert ids(lake, t) == [1, 2, 3]
    (at,) = lake.column(
        f"SELECT string(committed_at + INTERVAL 1 MILLISECOND) FROM {t}.snapshots WHERE snapshot_id = {first}"
    )
    lake.call("rollback_to_timestamp", f"'{t}'", f"TIMESTAMP '{at}'")
    assert ids(lake, t) == [1]
    assert [
        row.snapshot_id for row in lake.session.sql(f"CALL {lake.catalog}.system.ancestors_of('{t}')").collect()
    ] == [first]
    # The history of what was current is not rewritten.
    assert lake.column(f"SELECT snapshot_id FROM {t}.history ORDER BY made_current_at") == [
        first,
        second,
        third,
        second,
        third,
        first,
    ]


@pytest.mark.s3
def test_remove_orphan_files(lake, t):
    files = Files(lake, t)
    orphan = f"{files.location}/data/orphan.parquet"
    before = files.list()
    files.write(orphan)
    # The procedure only looks at files that are older than a day, so it gets a list that says they are.
    listed = ", ".join(f"('{files.location + path.removeprefix(plain(files.location))}')" for path in files.list())
    lake.sql(
        "CREATE TEMPORARY VIEW listed AS "
        f"SELECT col1 AS file_path, TIMESTAMP '2026-01-01' AS last_modified FROM VALUES {listed}"
    )
    try:
        call = f"CALL {lake.catalog}.system.remove_orphan_files(table => '{t}', file_list_view => 'listed'"
        # What it finds is the orphan alone: the files of the catalog all belong to the table.
        assert lake.column(f"{call}, dry_run => true)") == [orphan]
        assert files.list() == before | {plain(orphan)}
        assert lake.column(f"{call})") == [orphan]
    finally:
        lake.sql("DROP VIEW listed")
    assert files.list() == before
    assert ids(lake, t) == [1, 2, 3]


@pytest.mark.s3
def test_register(lake, t):
    (metadata,) = lake.column(f"SELECT file FROM {t}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1")
    uuid = lake.java_table(t).uuid()
    lake.sql(f"DROP TABLE {t}")
    again = f"{lake.prefix}.again"
    done = lake.call("register_table", f"table => '{again}'", f"metadata_file => '{metadata}'")
    assert done.total_records_count == 3
    assert lake.java_table(again).uuid() == uuid
    lake.sql(f"INSERT INTO {again} VALUES (4, 'dan')")
    assert ids(lake, again) == [1, 2, 3, 4]
    with refused("already exists"):
        lake.call("register_table", f"table => '{again}'", f"metadata_file => '{metadata}'")
    with refused("orders.metadata.json"):
        lake.call(
            "register_table", f"table => '{t}'", f"metadata_file => '{metadata.rsplit('/', 1)[0]}/orders.metadata.json'"
        )


def test_snapshot_and_add_files(lake, source):
    t = f"{lake.prefix}.t"
    assert lake.call("snapshot", f"source_table => '{source}'", f"table => '{t}'").imported_files_count == 1
    assert dict(lake.sql(f"SHOW TBLPROPERTIES {t}"))["gc.enabled"] == "false"
    lake.sql(f"UPDATE {t} SET name = 'x' WHERE id = 1")
    assert lake.sql(f"SELECT * FROM {t} ORDER BY id") == [(0, "0"), (1, "x"), (2, "2")]
    assert lake.sql(f"SELECT * FROM {source} ORDER BY id") == [(0, "0"), (1, "1"), (2, "2")]

    added = lake.create("added")
    assert lake.call("add_files", f"table => '{added}'", f"source_table => '{source}'").added_files_count == 1
    assert ids(lake, added) == [0, 1, 2]


def test_statistics(lake, t):
    written = lake.call("compute_table_stats", f"table => '{t}'").statistics_file
    (snapshot,) = lake.column(f"SELECT snapshot_id FROM {t}.refs")
    (kept,) = lake.java_table(t).statisticsFiles()
    assert (kept.path(), kept.snapshotId()) == (written, snapshot)
    by_partition = f"{lake.prefix}.p"
    lake.sql(f"CREATE TABLE {by_partition} USING iceberg PARTITIONED BY (id) AS SELECT id FROM range(2)")
    written = lake.call("compute_partition_stats", f"table => '{by_partition}'").partition_statistics_file
    assert [file.path() for file in lake.java_table(by_partition).partitionStatisticsFiles()] == [written]


def test_changelog(lake, t):
    lake.sql(f"DELETE FROM {t} WHERE id = 2")
    lake.call("create_changelog_view", f"table => '{t}'", "changelog_view => 'changes'")
    assert lake.sql("SELECT _change_type, id FROM changes ORDER BY _change_ordinal, id") == [
        ("INSERT", 1),
        ("INSERT", 2),
        ("INSERT", 3),
        ("DELETE", 2),
    ]
    lake.sql("DROP VIEW changes")
