"""Rows: what is written is read, once, at every moment of a table's history."""

import concurrent.futures
import time

import trino

from conftest import BOTH

WRITERS, WRITES = 4, 3
RETRY_MAX = 120  # seconds


@BOTH
def test_insert_update_delete_merge(sql):
    sql("CREATE TABLE t AS SELECT id, name FROM (VALUES (1, 'ann'), (2, 'bob'), (3, 'cyd')) AS v (id, name)")
    sql("INSERT INTO t VALUES (4, 'dan')")
    assert sql("UPDATE t SET name = upper(name) WHERE id > 2") == [(2,)]
    assert sql("DELETE FROM t WHERE id = 1") == [(1,)]
    sql("CREATE TABLE news AS SELECT id, name FROM (VALUES (2, NULL), (3, 'new'), (9, 'eve')) AS v (id, name)")
    merged = sql(
        "MERGE INTO t USING news n ON t.id = n.id "
        "WHEN MATCHED AND n.name IS NULL THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET name = n.name "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (n.id, n.name)"
    )
    assert merged == [(3,)]
    assert sql("SELECT * FROM t ORDER BY id") == [(3, "new"), (4, "DAN"), (9, "eve")]
    sql("TRUNCATE TABLE t")
    assert sql("SELECT count(*) FROM t") == [(0,)]


@BOTH
def test_row_level_changes_of_version_3(sql):
    """Version 3 writes deletion vectors in place of delete files."""
    sql("CREATE TABLE t WITH (format_version = 3) AS SELECT id, 'old' AS name FROM UNNEST(sequence(1, 100)) AS s (id)")
    sql("DELETE FROM t WHERE id % 2 = 0")
    sql("UPDATE t SET name = 'new' WHERE id < 10")
    assert sql("SELECT name, count(*) FROM t GROUP BY 1 ORDER BY 1") == [("new", 5), ("old", 45)]


@BOTH
def test_time_travel(sql):
    sql("CREATE TABLE t AS SELECT 1 AS id")
    first, at = sql('SELECT snapshot_id, committed_at FROM "t$snapshots"')[0]
    sql("INSERT INTO t VALUES 2")
    sql("ALTER TABLE t ADD COLUMN later varchar")
    sql("DELETE FROM t WHERE id = 1")
    assert sql("SELECT * FROM t") == [(2, None)]
    assert sql(f"SELECT * FROM t FOR VERSION AS OF {first}") == [(1,)]
    assert sql(f"SELECT id FROM t FOR TIMESTAMP AS OF TIMESTAMP '{at:%Y-%m-%d %H:%M:%S.%f} UTC'") == [(1,)]
    sql(f"ALTER TABLE t EXECUTE rollback_to_snapshot({first})")
    assert sql("SELECT * FROM t") == [(1, None)]
    sql("INSERT INTO t VALUES (3, 'x')")
    assert sql.ids("t") == [1, 3]


def test_branches_and_tags_of_others(sql, rest):
    sql("CREATE TABLE t AS SELECT 1 AS id")
    snapshot = sql.value('SELECT snapshot_id FROM "t$snapshots"')
    refs = [
        {"action": "set-snapshot-ref", "ref-name": name, "type": type, "snapshot-id": snapshot}
        for name, type in (("audit", "branch"), ("v1", "tag"))
    ]
    rest("POST", f"/namespaces/{sql.schema}/tables/t", {"requirements": [], "updates": refs})
    sql("INSERT INTO t VALUES 2")
    assert sql('SELECT name, type FROM "t$refs" ORDER BY 1') == [("audit", "BRANCH"), ("main", "BRANCH"), ("v1", "TAG")]
    assert sql("SELECT id FROM t FOR VERSION AS OF 'audit'") == [(1,)]
    assert sql("SELECT id FROM t FOR VERSION AS OF 'v1'") == [(1,)]
    assert sql.ids("t") == [1, 2]


@BOTH
def test_maintenance(sql, connect):
    sql("CREATE TABLE t (id int, part int) WITH (partitioning = ARRAY['part'])")
    for id in range(4):
        sql(f"INSERT INTO t VALUES ({id}, {id % 2})")
    sql("DELETE FROM t WHERE id = 0")
    assert sql.value('SELECT count(*) FROM "t$files"') > 2

    sql("ALTER TABLE t EXECUTE optimize")
    assert sql.value('SELECT count(*) FROM "t$files" WHERE content = 0') == 2
    sql("ALTER TABLE t EXECUTE optimize_manifests")
    assert sql.ids("t") == [1, 2, 3]

    at_once = connect(
        sql.catalog,
        sql.schema,
        **{f"{sql.catalog}.{name}_min_retention": "0s" for name in ("expire_snapshots", "remove_orphan_files")},
    )
    at_once("ALTER TABLE t EXECUTE expire_snapshots(retention_threshold => '0s')")
    assert sql.value('SELECT count(*) FROM "t$snapshots"') == 1
    at_once("ALTER TABLE t EXECUTE remove_orphan_files(retention_threshold => '0s')")
    assert sql.ids("t") == [1, 2, 3]
    sql("INSERT INTO t VALUES (5, 1)")
    assert sql.ids("t") == [1, 2, 3, 5]


@BOTH
def test_statistics(sql):
    sql("CREATE TABLE t AS SELECT id, id % 3 AS k FROM UNNEST(sequence(1, 9)) AS s (id)")
    sql("ANALYZE t")
    distinct = {row[0]: row[2] for row in sql("SHOW STATS FOR t")}
    assert (distinct["id"], distinct["k"]) == (9, 3)
    sql("ALTER TABLE t EXECUTE drop_extended_stats")
    distinct = {row[0]: row[2] for row in sql("SHOW STATS FOR t")}
    assert (distinct["id"], distinct["k"]) == (None, None)
    sql("ANALYZE t WITH (columns = ARRAY['k'])")
    distinct = {row[0]: row[2] for row in sql("SHOW STATS FOR t")}
    assert (distinct["id"], distinct["k"]) == (None, 3)


def in_parallel(work):
    """Runs work(0), work(1), ... at once and returns what they return. What one raises is raised."""
    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(work, range(WRITERS)))


def test_inserts_at_the_same_time(sql, connect):
    sql("CREATE TABLE t (id int) WITH (max_commit_retry = 100)")

    def insert(writer):
        run = connect("files", sql.schema)
        for n in range(WRITES):
            run(f"INSERT INTO t VALUES {writer * WRITES + n}")

    in_parallel(insert)
    assert sql.ids("t") == list(range(WRITERS * WRITES))
    assert sql.value('SELECT count(*) FROM "t$history"') == 1 + WRITERS * WRITES


def test_updates_at_the_same_time(sql, connect):
    """Writers add one to the same row until each has succeeded often enough. None of it may get lost."""
    sql("CREATE TABLE t AS SELECT 0 AS id")
    deadline = time.monotonic() + RETRY_MAX

    def add(writer):
        run = connect("files", sql.schema)
        done = conflicts = 0
        while done < WRITES:
            try:
                assert run("UPDATE t SET id = id + 1") == [(1,)]
                done += 1
            except trino.exceptions.TrinoQueryError as error:
                assert error.error_name in ("ICEBERG_COMMIT_ERROR", "TRANSACTION_CONFLICT"), error
                assert time.monotonic() < deadline, f"still in conflict after {RETRY_MAX} s"
                conflicts += 1
        return conflicts

    in_parallel(add)
    assert sql.ids("t") == [WRITERS * WRITES]
