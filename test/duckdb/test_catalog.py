"""Schemas, tables and their names. Nothing here depends on where the files are."""

import duckdb
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

NAMES = [
    "with space",
    "ünï çødé",
    "日本語",
    "🧊",
    "plus+sign",
    "per%cent",
    "looks%2Fencoded",
    "slash/name",
    "dotted.name",
    "quo'te",
    "UPPER",
    "x" * 255,
]


def test_schema(duck, catalog, namespace):
    name = f"{namespace}_2"
    duck.sql(f"CREATE SCHEMA lake.{name}")
    assert catalog.namespace_exists(name)
    assert (name,) in duck.sql("SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lake'")
    with pytest.raises(duckdb.CatalogException, match="already exists"):
        duck.sql(f"CREATE SCHEMA lake.{name}")
    duck.sql(f"CREATE SCHEMA IF NOT EXISTS lake.{name}")

    duck.sql(f"CREATE TABLE lake.{name}.t (id bigint)")
    with pytest.raises(duckdb.TransactionException, match=f"Namespace {name} is not empty"):
        duck.sql(f"DROP SCHEMA lake.{name}")
    duck.sql(f"DROP TABLE lake.{name}.t")
    duck.sql(f"DROP SCHEMA lake.{name}")
    assert not catalog.namespace_exists(name)


def test_nested_schema(ducks, catalog, namespace):
    catalog.create_namespace((namespace, "child"))
    duck = ducks(f"{namespace}.child", ", SUPPORT_NESTED_NAMESPACES true")
    duck.sql("CREATE TABLE t (id bigint)")
    duck.sql("INSERT INTO t VALUES (1)")
    assert duck.ids("t") == [1]
    duck.sql(f'CREATE SCHEMA lake."{namespace}.other"')
    assert sorted(catalog.list_namespaces(namespace)) == [(namespace, "child"), (namespace, "other")]
    assert catalog.list_tables((namespace, "child")) == [(namespace, "child", "t")]


def test_tables_are_listed(duck, catalog, namespace):
    assert duck.tables() == []
    for name in ("b", "a"):
        duck.sql(f"CREATE TABLE {name} (id bigint)")
    assert duck.tables() == ["a", "b"]
    assert sorted(catalog.list_tables(namespace)) == [(namespace, "a"), (namespace, "b")]
    with pytest.raises(duckdb.CatalogException, match="already exists"):
        duck.sql("CREATE TABLE a (id bigint)")


def test_missing_table(duck):
    with pytest.raises(duckdb.CatalogException, match="does not exist"):
        duck.sql("FROM missing")
    with pytest.raises(duckdb.CatalogException, match="does not exist"):
        duck.sql("DROP TABLE missing")
    duck.sql("DROP TABLE IF EXISTS missing")


def test_unknown_warehouse(pytestconfig, duck):
    uri = pytestconfig.getoption("uri")
    with pytest.raises(duckdb.Error, match="NoSuchWarehouseException|no-such-warehouse"):
        duck.sql(f"ATTACH 'no-such-warehouse' AS other (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none')")


@pytest.mark.parametrize("name", NAMES)
def test_names(duck, catalog, namespace, name):
    duck.sql(f'CREATE TABLE "{name}" (id bigint)')
    duck.sql(f'INSERT INTO "{name}" VALUES (1)')
    assert duck.tables() == [name]
    assert duck.ids(f'"{name}"') == [1]
    assert catalog.list_tables(namespace) == [(namespace, name)]
    duck.sql(f'DROP TABLE "{name}"')
    assert catalog.list_tables(namespace) == []


def test_views_are_not_taken_for_tables(duck, catalog, namespace):
    schema = Schema(NestedField(1, "id", LongType()))
    query = SQLViewRepresentation(type="sql", dialect="spark", sql="SELECT 1 AS id")
    version = ViewVersion(schema_id=0, representations=[query], default_namespace=(namespace,))
    catalog.create_view((namespace, "v"), schema, version)
    assert duck.tables() == []
    with pytest.raises(duckdb.CatalogException, match="does not exist"):
        duck.sql("FROM v")
    with pytest.raises(duckdb.Error, match="View with same name already exists"):
        duck.sql("CREATE TABLE v (id bigint)")
    catalog.drop_view((namespace, "v"))


def test_rename(duck, catalog, namespace):
    duck.sql("CREATE TABLE old (id bigint)")
    duck.sql("INSERT INTO old VALUES (1)")
    uuid = catalog.load_table((namespace, "old")).metadata.table_uuid
    duck.sql("ALTER TABLE old RENAME TO new")
    assert catalog.load_table((namespace, "new")).metadata.table_uuid == uuid
    assert duck.tables() == ["new"]
    assert duck.ids("new") == [1]


def test_alter(duck, catalog, namespace):
    duck.sql("CREATE TABLE t (id integer, name varchar)")
    duck.sql("INSERT INTO t VALUES (1, 'ann')")
    duck.sql("ALTER TABLE t ADD COLUMN extra varchar")
    duck.sql("ALTER TABLE t RENAME COLUMN name TO given_name")
    duck.sql("ALTER TABLE t ALTER COLUMN id TYPE bigint")
    duck.sql("INSERT INTO t VALUES (5000000000, 'bob', 'x')")
    duck.sql("ALTER TABLE t DROP COLUMN extra")
    assert duck.sql("FROM t ORDER BY id") == [(1, "ann"), (5000000000, "bob")]
    schema = catalog.load_table((namespace, "t")).schema()
    assert [(field.field_id, field.name, str(field.field_type)) for field in schema.fields] == [
        (1, "id", "long"),
        (2, "given_name", "string"),
    ]


def test_properties(duck, catalog, namespace):
    duck.sql("CREATE TABLE t (id bigint) WITH ('format-version' = '2', 'owner' = 'ann')")
    duck.sql(f"CALL set_iceberg_table_properties(lake.{namespace}.t, {{'tier': 'gold', 'gone': 'soon'}})")
    duck.sql(f"CALL remove_iceberg_table_properties(lake.{namespace}.t, ['gone'])")
    table = catalog.load_table((namespace, "t"))
    assert table.format_version == 2
    assert {key: table.properties.get(key) for key in ("owner", "tier", "gone")} == {"owner": "ann", "tier": "gold", "gone": None}
    listed = dict(duck.sql(f"FROM iceberg_table_properties(lake.{namespace}.t)"))
    assert (listed["owner"], listed["tier"]) == ("ann", "gold")
