"""Tables whose schema, partitioning and order change while their rows stay."""

import pytest
from conftest import refused


@pytest.mark.s3
def test_schema(lake):
    t = f"{lake.prefix}.t"
    lake.sql(f"CREATE TABLE {t} (id int, name string, at struct<x: int, y: int>) USING iceberg")
    lake.sql(f"INSERT INTO {t} VALUES (1, 'ann', named_struct('x', 1, 'y', 2))")

    lake.sql(f"ALTER TABLE {t} ADD COLUMNS (city string COMMENT 'where', at.z int AFTER x)")
    lake.sql(f"ALTER TABLE {t} RENAME COLUMN name TO who")
    lake.sql(f"ALTER TABLE {t} ALTER COLUMN id TYPE bigint")
    lake.sql(f"ALTER TABLE {t} ALTER COLUMN city FIRST")
    lake.sql(f"ALTER TABLE {t} DROP COLUMN at.y")
    lake.sql(f"INSERT INTO {t} VALUES ('rome', 5000000000, 'bob', named_struct('x', 3, 'z', 4))")

    assert lake.sql(f"SELECT city, id, who, at.x, at.z FROM {t} ORDER BY id") == [
        (None, 1, "ann", 1, None),
        ("rome", 5000000000, "bob", 3, 4),
    ]
    # A column that comes back under its old name is another one, and old rows have nothing in it.
    lake.sql(f"ALTER TABLE {t} DROP COLUMN who")
    lake.sql(f"ALTER TABLE {t} ADD COLUMN who string")
    assert lake.column(f"SELECT who FROM {t}") == [None, None]
    # A snapshot is read with the schema it was written with.
    assert lake.sql(f"SELECT id, name, at.y FROM {t} VERSION AS OF {lake.snapshots(t)[0]}") == [(1, "ann", 2)]
    with refused("NOT_SUPPORTED_CHANGE_COLUMN"):
        lake.sql(f"ALTER TABLE {t} ALTER COLUMN who TYPE int")


@pytest.mark.s3
def test_partitions(lake):
    t = f"{lake.prefix}.t"
    lake.sql(f"CREATE TABLE {t} (id bigint, day date, city string) USING iceberg")
    lake.sql(f"INSERT INTO {t} VALUES (1, date '2026-01-02', 'rome')")
    lake.sql(f"ALTER TABLE {t} ADD PARTITION FIELD days(day)")
    lake.sql(f"INSERT INTO {t} VALUES (2, date '2026-01-03', 'oslo')")
    lake.sql(f"ALTER TABLE {t} REPLACE PARTITION FIELD days(day) WITH months(day)")
    lake.sql(f"ALTER TABLE {t} ADD PARTITION FIELD bucket(8, id) AS shard")
    lake.sql(f"INSERT INTO {t} VALUES (3, date '2026-02-03', 'rome')")
    lake.sql(f"ALTER TABLE {t} DROP PARTITION FIELD shard")
    lake.sql(f"ALTER TABLE {t} ADD PARTITION FIELD truncate(2, city)")
    lake.sql(f"INSERT INTO {t} VALUES (4, date '2026-02-04', 'oslo')")

    assert lake.column(f"SELECT id FROM {t} WHERE day >= date '2026-01-03' ORDER BY id") == [2, 3, 4]
    specs = lake.column(f"SELECT spec_id FROM {t}.files ORDER BY spec_id")
    assert len(set(specs)) == 4
    assert lake.column(
        f"SELECT partition.city_trunc_2 FROM {t}.partitions WHERE partition.city_trunc_2 IS NOT NULL"
    ) == ["os"]
    lake.sql(f"DELETE FROM {t} WHERE city = 'rome'")
    assert lake.column(f"SELECT id FROM {t} ORDER BY id") == [2, 4]
    with refused("Cannot find partition field"):
        lake.sql(f"ALTER TABLE {t} DROP PARTITION FIELD years(day)")


def test_order(lake):
    t = lake.create()
    lake.sql(f"ALTER TABLE {t} WRITE LOCALLY ORDERED BY name DESC NULLS LAST, bucket(4, id)")
    assert lake.java_table(t).sortOrder().isSorted()
    # One file, whose rows come back as they lie in it.
    lake.sql(f"INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'ann'), (2, 'bob'), (3, 'cyd')")
    assert lake.column(f"SELECT name FROM {t}") == ["cyd", "bob", "ann"]
    lake.sql(f"ALTER TABLE {t} WRITE UNORDERED")
    assert lake.java_table(t).sortOrder().isUnsorted()
