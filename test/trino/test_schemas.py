"""Schemas, which are namespaces."""

import pytest

from conftest import refused


def test_nested(sql, connect):
    child, grandchild = f"{sql.schema}.eu", f"{sql.schema}.eu.west"
    sql(f'CREATE SCHEMA "{child}"')
    sql(f'CREATE SCHEMA "{grandchild}"')
    sql(f'CREATE TABLE "{grandchild}".t AS SELECT 7 AS id')
    assert sorted(sql(f"SHOW SCHEMAS LIKE '{sql.schema}%'")) == [(sql.schema,), (child,), (grandchild,)]
    assert sql.ids(f'"{grandchild}".t') == [7]
    assert sql(f'SHOW TABLES FROM "{child}"') == []

    # A catalog without nested schemas shows the first level only.
    assert connect("nocase")(f"SHOW SCHEMAS LIKE '{sql.schema}%'") == [(sql.schema,)]

    with refused("GENERIC_INTERNAL_ERROR", "is not empty"):
        sql(f'DROP SCHEMA "{child}"')
    sql(f'DROP SCHEMA "{grandchild}" CASCADE')
    sql(f'DROP SCHEMA "{child}"')
    assert sql(f"SHOW SCHEMAS LIKE '{sql.schema}%'") == [(sql.schema,)]


def test_a_nested_schema_needs_its_parent(sql):
    with refused("GENERIC_INTERNAL_ERROR", f"Namespace does not exist: {sql.schema}_absent"):
        sql(f'CREATE SCHEMA "{sql.schema}_absent.child"')


def test_exists_and_does_not(sql):
    with refused("SCHEMA_ALREADY_EXISTS", "already exists"):
        sql(f"CREATE SCHEMA {sql.schema}")
    sql(f"CREATE SCHEMA IF NOT EXISTS {sql.schema}")
    with refused("SCHEMA_NOT_FOUND", "does not exist"):
        sql("DROP SCHEMA nowhere")
    with refused("NOT_FOUND", "Schema nowhere not found"):
        sql("CREATE TABLE nowhere.t (id int)")
    sql("DROP SCHEMA IF EXISTS nowhere")


def test_not_empty(sql):
    sql("CREATE TABLE t (id int)")
    with refused("SCHEMA_NOT_EMPTY", "Cannot drop non-empty schema"):
        sql(f"DROP SCHEMA {sql.schema}")
    assert sql("SHOW TABLES") == [("t",)]


def test_location(sql, rest):
    root = rest("GET", f"/namespaces/{sql.schema}")
    assert "location" not in root["properties"]
    sql("CREATE TABLE here (id int)")
    location = sql.location("here").rsplit("/", 2)[0] + "/" + sql.schema + "_elsewhere"

    child = f"{sql.schema}.placed"
    sql(f"""CREATE SCHEMA "{child}" WITH (location = '{location}')""")
    assert f"location = '{location}'" in sql.value(f'SHOW CREATE SCHEMA "{child}"')
    sql(f'CREATE TABLE "{child}".t AS SELECT 1 AS id')
    assert sql.value(f"""SELECT value FROM "{child}"."t$properties" WHERE key = 'location'""").startswith(location + "/t")
    assert sql.ids(f'"{child}".t') == [1]


@pytest.mark.parametrize("name", ["a b", "a+b", "100%", "a/b", "a%2fb", "größe", "a''b", "雪"])
def test_names(sql, name):
    """Trino writes names in lower case, so these have no capital letters."""
    child = f"{sql.schema}.{name.replace(chr(39) * 2, chr(39))}"
    table = name.replace(chr(39) * 2, chr(39))
    sql(f'CREATE SCHEMA "{child}"')
    sql(f'CREATE TABLE "{child}"."{table}" AS SELECT 1 AS id')
    assert sql(f"""SHOW SCHEMAS LIKE '{sql.schema}.%'""") == [(child,)]
    assert sql(f'SHOW TABLES FROM "{child}"') == [(table,)]
    assert sql.ids(f'"{child}"."{table}"') == [1]
    sql(f'INSERT INTO "{child}"."{table}" VALUES 2')
    assert sql.ids(f'"{child}"."{table}"') == [1, 2]


def test_capital_letters(sql, connect, rest):
    """What another client wrote with capital letters is found by a catalog that is told to look for it."""
    field = {"id": 1, "name": "Id", "type": "int", "required": False}
    rest("POST", "/namespaces", {"namespace": [f"{sql.schema}_Upper"]})
    try:
        rest(
            "POST",
            f"/namespaces/{sql.schema}_Upper/tables",
            {"name": "Mixed", "schema": {"type": "struct", "fields": [field]}},
        )
        with refused("SCHEMA_NOT_FOUND", "does not exist"):
            sql(f"SELECT * FROM {sql.schema}_Upper.Mixed")
        nocase = connect("nocase", f"{sql.schema}_upper")
        nocase("INSERT INTO mixed VALUES 5")
        assert nocase.ids("mixed") == [5]
        nocase("DROP TABLE mixed")
    finally:
        rest("DELETE", f"/namespaces/{sql.schema}_Upper")
