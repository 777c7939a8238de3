"""Where a table's files are after it was dropped, unregistered and registered."""

import pathlib
import time
import urllib.parse

import pytest

from conftest import BOTH, refused

DELETED_MAX = 30  # seconds


def files(location):
    """The files below a location, relative to it."""
    folder = pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(location).path))
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def gone(location):
    """Waits until a location has no files."""
    deadline = time.monotonic() + DELETED_MAX
    while left := files(location):
        assert time.monotonic() < deadline, f"still there after {DELETED_MAX} s: {left}"
        time.sleep(0.05)


def test_drop_deletes_the_files(sql):
    sql("CREATE TABLE t (id int, part int) WITH (partitioning = ARRAY['part'])")
    sql("CREATE TABLE stays AS SELECT 1 AS id")
    for id in range(3):
        sql(f"INSERT INTO t VALUES ({id}, {id})")
    sql("DELETE FROM t WHERE id = 1")
    sql("ANALYZE t")
    location = sql.location("t")
    assert {file.rsplit(".", 1)[1] for file in files(location)} >= {"json", "avro", "parquet", "stats"}
    sql("DROP TABLE t")
    gone(location)
    assert sql.ids("stays") == [1]


def test_drop_keeps_the_data_of_a_table_that_says_so(sql, rest):
    sql("CREATE TABLE t AS SELECT 1 AS id")
    keep = {"action": "set-properties", "updates": {"gc.enabled": "false"}}
    rest("POST", f"/namespaces/{sql.schema}/tables/t", {"requirements": [], "updates": [keep]})
    location = sql.location("t")
    data = [file for file in files(location) if file.endswith(".parquet")]
    assert len(data) == 1
    sql("DROP TABLE t")
    assert [file for file in files(location) if file.endswith(".parquet")] == data


@BOTH
def test_unregister_and_register(sql):
    sql("CREATE TABLE t AS SELECT 1 AS id")
    sql("INSERT INTO t VALUES 2")
    location = sql.location("t")
    metadata = sql('SELECT file FROM "t$metadata_log_entries" ORDER BY file')
    sql(f"CALL {sql.catalog}.system.unregister_table('{sql.schema}', 't')")
    assert sql("SHOW TABLES") == []
    with refused("NOT_FOUND", "not found"):
        sql(f"CALL {sql.catalog}.system.unregister_table('{sql.schema}', 't')")

    newest, older = (file.rsplit("/", 1)[1] for (file,) in (metadata[-1], metadata[-2]))
    sql(f"CALL {sql.catalog}.system.register_table('{sql.schema}', 'u', '{location}', '{newest}')")
    assert sql.ids("u") == [1, 2]
    sql("INSERT INTO u VALUES 3")
    assert sql.ids("u") == [1, 2, 3]
    with pytest.raises(Exception, match="already exists"):
        sql(f"CALL {sql.catalog}.system.register_table('{sql.schema}', 'u', '{location}', '{newest}')")

    sql(f"CALL {sql.catalog}.system.unregister_table('{sql.schema}', 'u')")
    sql(f"CALL {sql.catalog}.system.register_table('{sql.schema}', 'v', '{location}', '{older}')")
    assert sql.ids("v") == [1]


@BOTH
def test_register_the_newest(sql):
    """Told no name, Trino looks for the newest metadata file. It finds it as `local:` in place of `file:`."""
    sql("CREATE TABLE t AS SELECT 1 AS id")
    sql("INSERT INTO t VALUES 2")
    location = sql.location("t")
    sql(f"CALL {sql.catalog}.system.unregister_table('{sql.schema}', 't')")
    register = f"CALL {sql.catalog}.system.register_table('{sql.schema}', 't', '{location}')"
    if sql.catalog == "s3":
        sql(register)
        assert sql.ids("t") == [1, 2]
    else:
        with refused("PROCEDURE_CALL_FAILED", 'scheme "local" is not supported'):
            sql(register)


def test_unregister_keeps_the_files(sql):
    sql("CREATE TABLE t AS SELECT 1 AS id")
    location = sql.location("t")
    before = files(location)
    sql(f"CALL files.system.unregister_table('{sql.schema}', 't')")
    assert files(location) == before
