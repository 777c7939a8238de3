"""Nested namespaces, and names that a path of a URL escapes."""

import pytest
from conftest import refused

NAMES = ["with.dot", "with space", "with/slash", "with+plus", "per%20cent", "ümläut", "日本", "que?ry#x", "a&b=c"]


def test_nested_namespaces(lake):
    inner = f"{lake.prefix}.a.b"
    with refused("does not exist"):
        lake.sql(f"CREATE NAMESPACE {inner}")
    lake.sql(f"CREATE NAMESPACE {lake.prefix}.a")
    lake.sql(f"CREATE NAMESPACE {inner} COMMENT 'deep' WITH DBPROPERTIES ('team' = 'ice')")
    assert lake.column(f"SHOW NAMESPACES IN {lake.prefix}") == [f"{lake.namespace}.a"]
    assert lake.column(f"SHOW NAMESPACES IN {lake.prefix}.a") == [f"{lake.namespace}.a.b"]
    with refused("already exists"):
        lake.sql(f"CREATE NAMESPACE {inner}")
    lake.sql(f"CREATE NAMESPACE IF NOT EXISTS {inner}")

    lake.sql(f"ALTER NAMESPACE {inner} SET PROPERTIES ('team' = 'snow', 'place' = 'north')")
    described = dict(lake.sql(f"DESCRIBE NAMESPACE EXTENDED {inner}"))
    assert described["Comment"] == "deep"
    assert "(team,snow)" in described["Properties"] and "(place,north)" in described["Properties"]

    lake.sql(f"CREATE TABLE {inner}.t USING iceberg AS SELECT 1 AS id")
    assert lake.sql(f"SELECT * FROM {inner}.t") == [(1,)]
    assert lake.listed("TABLES", f"{lake.prefix}.a") == []
    for namespace in (inner, f"{lake.prefix}.a"):
        with refused("not empty"):
            lake.sql(f"DROP NAMESPACE {namespace}")
    lake.sql(f"ALTER TABLE {inner}.t RENAME TO {lake.namespace}.a.moved")
    lake.sql(f"DROP NAMESPACE {inner}")
    lake.sql(f"DROP TABLE {lake.prefix}.a.moved")
    lake.sql(f"DROP NAMESPACE {lake.prefix}.a")
    with refused("cannot be found"):
        lake.sql(f"DROP NAMESPACE {lake.prefix}.a")
    lake.sql(f"DROP NAMESPACE IF EXISTS {lake.prefix}.a")


@pytest.mark.parametrize("name", NAMES)
def test_names(lake, name):
    namespace = f"{lake.prefix}.`{name}`"
    table = f"{namespace}.`{name}`"
    lake.sql(f"CREATE NAMESPACE {namespace}")
    try:
        lake.sql(f"CREATE TABLE {table} (`{name}` bigint) USING iceberg")
        lake.sql(f"INSERT INTO {table} VALUES (1)")
        assert lake.sql(f"SELECT `{name}` FROM {table}") == [(1,)]
        assert lake.listed("TABLES", namespace) == [name]
        assert lake.sql(f"SELECT count(*) FROM {table}.snapshots") == [(1,)]
        lake.sql(f"DROP TABLE {table}")
    finally:
        lake.sql(f"DROP NAMESPACE {namespace}")
    assert lake.sql(f"SHOW NAMESPACES IN {lake.prefix}") == []
