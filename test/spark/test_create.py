"""Tables made, replaced and filled by queries: what Spark stages and commits in one step."""

import pytest
from conftest import refused


@pytest.mark.s3
def test_create_as_select(lake):
    t = f"{lake.prefix}.t"
    lake.sql(
        f"CREATE TABLE {t} USING iceberg PARTITIONED BY (bucket(4, id)) TBLPROPERTIES ('team' = 'ice') "
        "COMMENT 'three rows' AS SELECT id, concat('name ', id) AS name FROM range(3)"
    )
    assert lake.sql(f"SELECT * FROM {t} ORDER BY id") == [(0, "name 0"), (1, "name 1"), (2, "name 2")]
    assert len(lake.snapshots(t)) == 1
    assert ("team", "ice") in lake.sql(f"SHOW TBLPROPERTIES {t}")
    assert ("Comment", "three rows", "") in lake.sql(f"DESCRIBE EXTENDED {t}")
    assert "INTO 4 BUCKETS" in lake.column(f"SHOW CREATE TABLE {t}")[0]
    with refused("already exists"):
        lake.sql(f"CREATE TABLE {t} USING iceberg AS SELECT 1 AS id")


@pytest.mark.s3
def test_replace_as_select_keeps_history(lake):
    t = lake.create()
    lake.sql(f"INSERT INTO {t} VALUES (1, 'ann')")
    before = lake.java_table(t).uuid()
    old = lake.snapshots(t)[0]

    lake.sql(f"REPLACE TABLE {t} USING iceberg PARTITIONED BY (name) AS SELECT 'bob' AS name, 2 AS number")
    assert lake.sql(f"SELECT * FROM {t}") == [("bob", 2)]
    assert lake.sql(f"SELECT * FROM {t} VERSION AS OF {old}") == [(1, "ann")]
    assert lake.java_table(t).uuid() == before
    assert len(lake.snapshots(t)) == 2


def test_create_or_replace(lake):
    t = f"{lake.prefix}.t"
    with refused("cannot be found"):
        lake.sql(f"REPLACE TABLE {t} USING iceberg AS SELECT 1 AS id")
    for value in (1, 2):
        lake.sql(f"CREATE OR REPLACE TABLE {t} USING iceberg AS SELECT {value} AS id")
        assert lake.sql(f"SELECT * FROM {t}") == [(value,)]
    assert len(lake.snapshots(t)) == 2
    # Without a query the new table is empty, and the old rows are history.
    lake.sql(f"CREATE OR REPLACE TABLE {t} (day date) USING iceberg")
    assert lake.sql(f"SELECT * FROM {t}") == []
    assert lake.column(f"SELECT id FROM {t} VERSION AS OF {lake.snapshots(t)[1]}") == [2]


def test_failed_query_leaves_nothing(lake):
    t = f"{lake.prefix}.t"
    fails = "SELECT CAST(raise_error('broken') AS string) AS id FROM range(2)"
    with refused("broken"):
        lake.sql(f"CREATE TABLE {t} USING iceberg AS {fails}")
    assert lake.listed("TABLES") == []

    lake.sql(f"CREATE TABLE {t} USING iceberg AS SELECT 1 AS id")
    with refused("broken"):
        lake.sql(f"REPLACE TABLE {t} USING iceberg AS {fails}")
    assert lake.sql(f"SELECT * FROM {t}") == [(1,)]
    assert len(lake.snapshots(t)) == 1


def test_insert_overwrite(lake):
    t = f"{lake.prefix}.t"
    lake.sql(
        f"CREATE TABLE {t} USING iceberg PARTITIONED BY (day) AS "
        "SELECT * FROM VALUES ('mon', 1), ('tue', 2) AS (day, n)"
    )
    lake.sql(f"INSERT OVERWRITE {t} PARTITION (day = 'mon') SELECT 3")
    assert lake.sql(f"SELECT * FROM {t} ORDER BY day") == [("mon", 3), ("tue", 2)]
    # Dynamic: only the partitions that the query has rows for.
    lake.session.table(t).filter("day = 'tue'").selectExpr("day", "n + 2 AS n").writeTo(t).overwritePartitions()
    assert lake.sql(f"SELECT * FROM {t} ORDER BY day") == [("mon", 3), ("tue", 4)]
    lake.sql(f"TRUNCATE TABLE {t}")
    assert lake.sql(f"SELECT * FROM {t}") == []


def test_many_types(lake):
    t = f"{lake.prefix}.t"
    lake.sql(
        f"CREATE TABLE {t} USING iceberg AS SELECT true AS b, 1 AS i, 2L AS l, 1.5f AS f, 2.5d AS d, 1.25BD AS dec, "
        "date '2026-01-02' AS day, timestamp '2026-01-02 03:04:05' AS at, "
        "timestamp_ntz '2026-01-02 03:04:05' AS local, "
        "'text' AS s, x'00ff' AS bytes, array(1, 2) AS a, map('k', 1) AS m, "
        "named_struct('x', 1, 'y', array(named_struct('z', 'deep'))) AS st"
    )
    assert lake.sql(f"SELECT b, i, l, f, d, s, bytes, a, m['k'], st.x, st.y[0].z FROM {t}") == [
        (True, 1, 2, 1.5, 2.5, "text", bytearray(b"\x00\xff"), [1, 2], 1, 1, "deep")
    ]
    assert lake.sql(f"SELECT string(dec), string(day), string(at), string(local) FROM {t}") == [
        ("1.25", "2026-01-02", "2026-01-02 03:04:05", "2026-01-02 03:04:05")
    ]


def test_rename_and_drop(lake):
    t = lake.create()
    lake.sql(f"INSERT INTO {t} VALUES (1, 'ann')")
    other = f"{lake.prefix}.other"
    lake.sql(f"ALTER TABLE {t} RENAME TO {lake.namespace}.other")
    assert lake.sql(f"SELECT * FROM {other}") == [(1, "ann")]
    assert lake.listed("TABLES") == ["other"]
    with refused("cannot be found"):
        lake.sql(f"SELECT * FROM {t}")
    taken = lake.create()
    with refused("already exists"):
        lake.sql(f"ALTER TABLE {other} RENAME TO {lake.namespace}.t")
    for table in (taken, other):
        lake.sql(f"DROP TABLE {table}")
    assert lake.listed("TABLES") == []
    with refused("cannot be found"):
        lake.sql(f"DROP TABLE {t}")
    lake.sql(f"DROP TABLE IF EXISTS {t}")


def test_properties(lake):
    t = lake.create()
    lake.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'ice', 'place' = 'north')")
    lake.sql(f"ALTER TABLE {t} UNSET TBLPROPERTIES ('place')")
    properties = dict(lake.sql(f"SHOW TBLPROPERTIES {t}"))
    assert properties["team"] == "ice"
    assert "place" not in properties
    lake.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')")
    assert dict(lake.sql(f"SHOW TBLPROPERTIES {t}"))["format-version"] == "3"
    with refused("downgrade"):
        lake.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '2')")
