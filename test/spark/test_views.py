"""Views, which Spark keeps in the catalog as SQL of the dialect `spark`."""

import json
import urllib.request

import pytest
from conftest import refused


@pytest.fixture
def t(lake):
    table = lake.create()
    lake.sql(f"INSERT INTO {table} VALUES (1, 'ann'), (2, 'bob'), (3, 'cyd')")
    return table


@pytest.mark.s3
def test_create_replace_drop(lake, t):
    v = f"{lake.prefix}.v"
    lake.sql(
        f"CREATE VIEW {v} (number COMMENT 'the id', who) COMMENT 'big ones' "
        f"TBLPROPERTIES ('team' = 'ice') AS SELECT * FROM {t} WHERE id > 1"
    )
    assert lake.sql(f"SELECT number, who FROM {v} ORDER BY number") == [(2, "bob"), (3, "cyd")]
    assert lake.listed("VIEWS") == ["v"]
    with refused("already exists"):
        lake.sql(f"CREATE VIEW {v} AS SELECT 1 AS id")
    lake.sql(f"CREATE VIEW IF NOT EXISTS {v} AS SELECT 1 AS id")

    lake.sql(f"CREATE OR REPLACE VIEW {v} AS SELECT id FROM {t} WHERE id = 1")
    assert lake.sql(f"SELECT * FROM {v}") == [(1,)]
    lake.sql(f"INSERT INTO {t} VALUES (1, 'again')")
    assert lake.sql(f"SELECT * FROM {v}") == [(1,), (1,)]

    lake.sql(f"DROP VIEW {v}")
    assert lake.listed("VIEWS") == []
    with refused("cannot be found"):
        lake.sql(f"SELECT * FROM {v}")
    with refused("cannot be found"):
        lake.sql(f"DROP VIEW {v}")
    lake.sql(f"DROP VIEW IF EXISTS {v}")


def test_show_and_describe(lake, t):
    v = f"{lake.prefix}.v"
    lake.sql(
        f"CREATE VIEW {v} (number COMMENT 'the id', who) COMMENT 'all' "
        f"TBLPROPERTIES ('team' = 'ice') AS SELECT id, name FROM {t}"
    )
    assert lake.sql(f"DESCRIBE {v}") == [("number", "bigint", "the id"), ("who", "string", "")]
    created = lake.column(f"SHOW CREATE TABLE {v}")[0]
    assert "CREATE VIEW" in created and "'team' = 'ice'" in created and f"SELECT id, name FROM {t}" in created
    lake.sql(f"ALTER VIEW {v} SET TBLPROPERTIES ('team' = 'snow', 'place' = 'north')")
    lake.sql(f"ALTER VIEW {v} UNSET TBLPROPERTIES ('place')")
    properties = dict(lake.sql(f"SHOW TBLPROPERTIES {v}"))
    assert properties["team"] == "snow"
    assert "place" not in properties


def test_versions(lake, t, pytestconfig):
    v = f"{lake.prefix}.v"
    url = (
        f"{pytestconfig.getoption('uri')}/v1/{pytestconfig.getoption('warehouse')}/namespaces/{lake.namespace}/views/v"
    )

    def load():
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["metadata"]

    lake.sql(f"CREATE VIEW {v} AS SELECT id FROM {t}")
    uuid = load()["view-uuid"]
    lake.sql(f"CREATE OR REPLACE VIEW {v} AS SELECT name FROM {t}")
    assert load()["current-version-id"] == 2
    # A version that is the same as an older one is that one again.
    lake.sql(f"CREATE OR REPLACE VIEW {v} AS SELECT id FROM {t}")
    view = load()
    assert [entry["version-id"] for entry in view["version-log"]] == [1, 2, 1]
    assert view["current-version-id"] == 1
    assert view["view-uuid"] == uuid
    (version,) = (version for version in view["versions"] if version["version-id"] == 1)
    assert version["representations"] == [{"type": "sql", "dialect": "spark", "sql": f"SELECT id FROM {t}"}]


def test_rename(lake, t):
    v, w = f"{lake.prefix}.v", f"{lake.prefix}.w"
    lake.sql(f"CREATE VIEW {v} AS SELECT id FROM {t} WHERE id = 2")
    lake.sql(f"ALTER VIEW {v} RENAME TO {lake.prefix}.w")
    assert lake.listed("VIEWS") == ["w"]
    assert lake.sql(f"SELECT * FROM {w}") == [(2,)]
    with refused("already exists"):
        lake.sql(f"ALTER VIEW {w} RENAME TO {t}")


def test_one_name_for_a_table_and_a_view(lake, t):
    v = f"{lake.prefix}.v"
    with refused("already exists"):
        lake.sql(f"CREATE VIEW {t} AS SELECT 1 AS id")
    lake.sql(f"CREATE VIEW {v} AS SELECT 1 AS id")
    with refused("already exists"):
        lake.sql(f"CREATE TABLE {v} (id bigint) USING iceberg")
    with refused("already exists"):
        lake.sql(f"ALTER TABLE {t} RENAME TO {lake.namespace}.v")
    assert lake.listed("TABLES") == ["t"]
    lake.sql(f"DROP TABLE {t}")
    with refused("not empty"):
        lake.sql(f"DROP NAMESPACE {lake.prefix}")


@pytest.mark.s3
def test_views_of_views(lake, t):
    lake.sql(f"CREATE VIEW {lake.prefix}.v AS SELECT id AS number FROM {t}")
    # A name without a catalog is of the catalog and namespace that the view was made in.
    lake.sql(f"USE {lake.prefix}")
    try:
        lake.sql("CREATE VIEW w AS SELECT number + 1 AS next FROM v")
    finally:
        lake.sql("USE spark_catalog.default")
    assert lake.column(f"SELECT next FROM {lake.prefix}.w ORDER BY next") == [2, 3, 4]
    other = lake.another_session()
    assert other.column(f"SELECT count(*) FROM {lake.prefix}.w") == [3]
    lake.sql(f"DROP VIEW {lake.prefix}.v")
    with refused("cannot be found"):
        lake.sql(f"SELECT * FROM {lake.prefix}.w")
