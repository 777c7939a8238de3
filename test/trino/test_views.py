"""Views, which share the names of a schema with its tables."""

import pytest

from conftest import BOTH, refused


@pytest.fixture
def orders(sql):
    sql("CREATE TABLE orders AS SELECT id, item FROM (VALUES (1, 'ice'), (2, 'snow')) AS v (id, item)")
    return sql


@BOTH
def test_create_replace_drop(orders):
    sql = orders
    sql("CREATE VIEW v COMMENT 'a view' AS SELECT item, id * 10 AS ten FROM orders WHERE id > 1")
    assert sql("SELECT * FROM v") == [("snow", 20)]
    assert sorted(sql("SHOW TABLES")) == [("orders",), ("v",)]
    assert sql("DESCRIBE v") == [("item", "varchar", "", ""), ("ten", "integer", "", "")]
    shown = sql.value("SHOW CREATE VIEW v")
    assert "COMMENT 'a view'" in shown and "SECURITY DEFINER" in shown
    with refused("TABLE_ALREADY_EXISTS", "already exists"):
        sql("CREATE VIEW v AS SELECT 1 AS id")

    sql("CREATE OR REPLACE VIEW v AS SELECT count(*) AS n FROM orders")
    assert sql("SELECT n FROM v") == [(2,)]
    sql("INSERT INTO orders VALUES (3, 'hail')")
    assert sql("SELECT n FROM v") == [(3,)]
    sql("DROP VIEW v")
    assert sql("SHOW TABLES") == [("orders",)]
    with refused("TABLE_NOT_FOUND", "does not exist"):
        sql("SELECT * FROM v")
    sql("DROP VIEW IF EXISTS v")


def test_information_schema(orders):
    sql = orders
    sql("CREATE VIEW v AS SELECT id FROM orders")
    mine = f"table_schema = '{sql.schema}'"
    assert sql(f"SELECT table_name, table_type FROM information_schema.tables WHERE {mine} ORDER BY 1") == [
        ("orders", "BASE TABLE"),
        ("v", "VIEW"),
    ]
    ((name, definition),) = sql(f"SELECT table_name, view_definition FROM information_schema.views WHERE {mine}")
    assert name == "v" and "orders" in definition
    assert sql(f"SELECT column_name FROM information_schema.columns WHERE {mine} AND table_name = 'v'") == [("id",)]


def test_rename(orders):
    sql = orders
    sql("CREATE VIEW v AS SELECT id FROM orders")
    sql(f'CREATE SCHEMA "{sql.schema}.other"')
    with refused("TABLE_ALREADY_EXISTS", "a table with that name exists"):
        sql("ALTER VIEW v RENAME TO orders")
    sql("ALTER VIEW v RENAME TO w")
    assert sorted(sql("SHOW TABLES")) == [("orders",), ("w",)]
    assert sql.ids("w") == [1, 2]
    sql(f'ALTER VIEW w RENAME TO "{sql.schema}.other".w')
    assert sql("SHOW TABLES") == [("orders",)]
    assert sql.ids(f'"{sql.schema}.other".w') == [1, 2]


def test_comments(orders):
    sql = orders
    sql("CREATE VIEW v AS SELECT id, item FROM orders")
    sql("COMMENT ON VIEW v IS 'of the view'")
    sql("COMMENT ON COLUMN v.item IS 'of the column'")
    assert "COMMENT 'of the view'" in sql.value("SHOW CREATE VIEW v")
    assert sql("DESCRIBE v") == [("id", "integer", "", ""), ("item", "varchar", "", "of the column")]
    assert sql.ids("v") == [1, 2]


def test_security(orders, connect, rest):
    """A definer's view names its owner among the properties. An invoker's has none, so Trino sends none."""
    sql = orders
    sql("CREATE VIEW mine SECURITY DEFINER AS SELECT id FROM orders")
    sql("CREATE VIEW yours SECURITY INVOKER AS SELECT id FROM orders")
    for view, owner in (("mine", "ann"), ("yours", None)):
        properties = rest("GET", f"/namespaces/{sql.schema}/views/{view}")["metadata"].get("properties", {})
        assert properties.get("trino.run-as-owner") == owner
        assert f"SECURITY {'DEFINER' if owner else 'INVOKER'}" in sql.value(f"SHOW CREATE VIEW {view}")
        assert connect("files", sql.schema, user="bob").ids(view) == [1, 2]


def test_one_name_for_both(orders):
    sql = orders
    sql("CREATE VIEW v AS SELECT id FROM orders")
    with refused("TABLE_ALREADY_EXISTS", "already exists"):
        sql("CREATE TABLE v (id int)")
    with refused("TABLE_ALREADY_EXISTS", "already exists"):
        sql("CREATE VIEW orders AS SELECT 1 AS id")
    with refused("GENERIC_USER_ERROR", "a view with that name exists"):
        sql("DROP TABLE v")
    with refused("GENERIC_USER_ERROR", "a table with that name exists"):
        sql("DROP VIEW orders")
    assert sql.ids("v") == sql.ids("orders") == [1, 2]


def test_versions(orders, rest):
    """Every replacement is a version; one that is there already is used again."""
    sql = orders
    for number in (1, 2, 3, 2):
        sql(f"CREATE OR REPLACE VIEW v AS SELECT {number} AS id")
        assert sql.ids("v") == [number]
    metadata = rest("GET", f"/namespaces/{sql.schema}/views/v")["metadata"]
    assert len(metadata["versions"]) == 3
    assert [entry["version-id"] for entry in metadata["version-log"]] == [1, 2, 3, 2]
    assert metadata["current-version-id"] == 2


def test_another_dialect(orders, rest):
    """Trino says that it cannot read a view of Spark's, and still lists it and the others."""
    sql = orders
    sql("CREATE VIEW v AS SELECT id FROM orders")
    representation = {"type": "sql", "sql": "SELECT id FROM orders", "dialect": "spark"}
    rest(
        "POST",
        f"/namespaces/{sql.schema}/views",
        {
            "name": "sparks",
            "schema": {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "int", "required": False}]},
            "view-version": {
                "version-id": 1,
                "timestamp-ms": 1767225600000,
                "schema-id": 0,
                "summary": {},
                "default-namespace": [sql.schema],
                "representations": [representation],
            },
            "properties": {},
        },
    )
    with refused("ICEBERG_UNSUPPORTED_VIEW_DIALECT", "spark"):
        sql("SELECT * FROM sparks")
    assert sorted(sql("SHOW TABLES")) == [("orders",), ("sparks",), ("v",)]
    assert sql.ids("v") == [1, 2]
    sql("DROP VIEW sparks")
    assert sorted(sql("SHOW TABLES")) == [("orders",), ("v",)]


def test_materialized_views_are_refused(orders):
    with refused("NOT_SUPPORTED", "createMaterializedView is not supported"):
        orders("CREATE MATERIALIZED VIEW m AS SELECT id FROM orders")
    assert orders("SHOW TABLES") == [("orders",)]
