"""Tables: their life, their columns and their properties."""

import datetime
import decimal
import uuid

import pytest

from conftest import BOTH, refused

UTC = datetime.timezone.utc

# One column of every type, as SQL and as the value that Trino's client returns.
TYPES = {
    "boolean": ("true", True),
    "integer": ("-1", -1),
    "bigint": ("9223372036854775807", 9223372036854775807),
    "real": ("REAL '1.5'", 1.5),
    "double": ("1e300", 1e300),
    "decimal(38,2)": ("DECIMAL '12.34'", decimal.Decimal("12.34")),
    "date": ("DATE '0001-01-01'", datetime.date(1, 1, 1)),
    "time(6)": ("TIME '23:59:59.999999'", datetime.time(23, 59, 59, 999999)),
    "timestamp(6)": ("TIMESTAMP '2026-01-01 00:00:00.000001'", datetime.datetime(2026, 1, 1, 0, 0, 0, 1)),
    "timestamp(6) with time zone": (
        "TIMESTAMP '2026-01-01 01:00:00.000001 +01:00'",
        datetime.datetime(2026, 1, 1, 0, 0, 0, 1, UTC),
    ),
    "varchar": ("'größe'", "größe"),
    "uuid": ("UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59'", uuid.UUID("12151fd2-7586-11e9-8f9e-2a86e4085a59")),
    "varbinary": ("X'00FF'", b"\x00\xff"),
    "array(integer)": ("ARRAY[1, NULL]", [1, None]),
    "map(varchar, array(bigint))": ("MAP(ARRAY['k'], ARRAY[ARRAY[2]])", {"k": [2]}),
    "row(x integer, y row(z varchar))": ("ROW(1, ROW('deep'))", (1, ("deep",))),
}


@BOTH
def test_create_show_drop(sql):
    sql(
        "CREATE TABLE t (id bigint NOT NULL COMMENT 'key', day date) COMMENT 'a table' "
        "WITH (partitioning = ARRAY['month(day)', 'bucket(id, 8)'], sorted_by = ARRAY['id DESC NULLS LAST'], format = 'ORC')"
    )
    assert sql("SHOW TABLES") == [("t",)]
    assert sql("DESCRIBE t") == [("id", "bigint", "", "key"), ("day", "date", "", "")]
    shown = sql.value("SHOW CREATE TABLE t")
    for part in (
        "id bigint NOT NULL COMMENT 'key'",
        "COMMENT 'a table'",
        "partitioning = ARRAY['month(day)','bucket(id, 8)']",
        "sorted_by = ARRAY['id DESC NULLS LAST']",
        "format = 'ORC'",
        "format_version = 2",
    ):
        assert part in shown
    with refused("TABLE_ALREADY_EXISTS", "already exists"):
        sql("CREATE TABLE t (id int)")
    sql("CREATE TABLE IF NOT EXISTS t (id int)")
    with refused("CONSTRAINT_VIOLATION", "NULL value not allowed"):
        sql("INSERT INTO t VALUES (NULL, NULL)")
    sql("DROP TABLE t")
    assert sql("SHOW TABLES") == []
    with refused("TABLE_NOT_FOUND", "does not exist"):
        sql("SELECT * FROM t")
    with refused("TABLE_NOT_FOUND", "does not exist"):
        sql("DROP TABLE t")
    sql("DROP TABLE IF EXISTS t")


@pytest.mark.parametrize("format", ["PARQUET", "ORC", "AVRO"])
def test_every_type(sql, format):
    columns = ", ".join(f"c{n} {type}" for n, type in enumerate(TYPES))
    values = ", ".join(value for value, _ in TYPES.values())
    sql(f"CREATE TABLE t ({columns}) WITH (format = '{format}')")
    sql(f"INSERT INTO t VALUES ({values})")
    assert [row[1] for row in sql("DESCRIBE t")] == [
        type if "row" not in type else 'row("x" integer, "y" row("z" varchar))' for type in TYPES
    ]
    assert sql("SELECT * FROM t") == [tuple(value for _, value in TYPES.values())]


def test_version_3(sql):
    sql("CREATE TABLE t (id int, note varchar DEFAULT 'none', at timestamp(9), v variant) WITH (format_version = 3)")
    sql("INSERT INTO t (id, at, v) VALUES (1, TIMESTAMP '2026-01-01 00:00:00.123456789', CAST(JSON '{\"k\": [1]}' AS variant))")
    sql("INSERT INTO t (id) VALUES 2")
    sql("DELETE FROM t WHERE id = 2")
    assert sql("SELECT id, note, CAST(at AS varchar), json_format(CAST(v AS json)) FROM t") == [
        (1, "none", "2026-01-01 00:00:00.123456789", '{"k":[1]}')
    ]


def test_upgrade_and_no_downgrade(sql):
    sql("CREATE TABLE t WITH (format_version = 1) AS SELECT 1 AS id")
    for version in (2, 3):
        sql(f"ALTER TABLE t SET PROPERTIES format_version = {version}")
        assert f"format_version = {version}" in sql.value("SHOW CREATE TABLE t")
        sql(f"INSERT INTO t VALUES {version}")
    with refused("ICEBERG_COMMIT_ERROR", "Failed to set new property values"):
        sql("ALTER TABLE t SET PROPERTIES format_version = 2")
    assert "format_version = 3" in sql.value("SHOW CREATE TABLE t")
    assert sql.ids("t") == [1, 2, 3]


@BOTH
def test_create_or_replace(sql):
    sql("CREATE OR REPLACE TABLE t AS SELECT 1 AS id")
    before = sql.location("t")
    snapshot = sql.value('SELECT snapshot_id FROM "t$snapshots"')
    sql("CREATE OR REPLACE TABLE t COMMENT 'again' AS SELECT 2 AS id, 'x' AS name")
    assert sql("SELECT * FROM t") == [(2, "x")]
    assert sql(f"SELECT * FROM t FOR VERSION AS OF {snapshot}") == [(1,)]
    assert sql.location("t") == before
    sql("CREATE OR REPLACE TABLE t (other date)")
    assert sql("SELECT * FROM t") == []


def test_rename(sql):
    sql("CREATE TABLE t AS SELECT 1 AS id")
    sql("CREATE TABLE taken (id int)")
    sql(f'CREATE SCHEMA "{sql.schema}.other"')
    with refused("TABLE_ALREADY_EXISTS", "already exists"):
        sql("ALTER TABLE t RENAME TO taken")
    sql("ALTER TABLE t RENAME TO u")
    assert sorted(sql("SHOW TABLES")) == [("taken",), ("u",)]
    sql(f'ALTER TABLE u RENAME TO "{sql.schema}.other".t')
    assert sql("SHOW TABLES") == [("taken",)]
    assert sql.ids(f'"{sql.schema}.other".t') == [1]


def test_comments(sql):
    sql("CREATE TABLE t (id int)")
    sql("COMMENT ON TABLE t IS 'of the table'")
    sql("COMMENT ON COLUMN t.id IS 'of the column'")
    assert sql("DESCRIBE t") == [("id", "integer", "", "of the column")]
    comments = f"SELECT comment FROM system.metadata.table_comments WHERE catalog_name = 'files' AND schema_name = '{sql.schema}'"
    assert sql(comments) == [("of the table",)]
    sql("COMMENT ON TABLE t IS NULL")
    assert sql(comments) == [(None,)]


@BOTH
def test_schema_evolution(sql):
    sql("CREATE TABLE t (id int, old varchar, gone double, r row(a int, b varchar) NOT NULL)")
    sql("INSERT INTO t VALUES (1, 'x', 0.5, ROW(10, 'p'))")
    for change in (
        "ADD COLUMN IF NOT EXISTS id int",
        "ADD COLUMN added date",
        "ADD COLUMN front boolean FIRST",
        "ADD COLUMN middle varchar AFTER id",
        "RENAME COLUMN old TO new",
        "DROP COLUMN gone",
        "ALTER COLUMN id SET DATA TYPE bigint",
        "ADD COLUMN r.c array(row(d int))",
        "RENAME COLUMN r.a TO aa",
        "ALTER COLUMN r.aa SET DATA TYPE bigint",
        "DROP COLUMN r.b",
        "ALTER COLUMN r DROP NOT NULL",
    ):
        sql(f"ALTER TABLE t {change}")
    assert sql("DESCRIBE t") == [
        ("front", "boolean", "", ""),
        ("id", "bigint", "", ""),
        ("middle", "varchar", "", ""),
        ("new", "varchar", "", ""),
        ("r", 'row("aa" bigint, "c" array(row("d" integer)))', "", ""),
        ("added", "date", "", ""),
    ]
    sql("INSERT INTO t VALUES (true, 5000000000, 'm', 'y', ROW(20, ARRAY[ROW(7)]), DATE '2026-01-01')")
    assert sql("SELECT front, id, middle, new, r.aa, added FROM t ORDER BY id") == [
        (None, 1, None, "x", 10, None),
        (True, 5000000000, "m", "y", 20, datetime.date(2026, 1, 1)),
    ]
    with refused("COLUMN_ALREADY_EXISTS", "already exists"):
        sql("ALTER TABLE t ADD COLUMN new int")

    # A name that comes back is a new column: the old values are not found again.
    sql("ALTER TABLE t DROP COLUMN new")
    sql("ALTER TABLE t ADD COLUMN new varchar")
    assert sql("SELECT new FROM t") == [(None,), (None,)]


@BOTH
def test_partitions(sql):
    sql("CREATE TABLE t (id bigint, day date, city varchar) WITH (partitioning = ARRAY['year(day)'])")
    sql("INSERT INTO t VALUES (1, DATE '2025-03-01', 'oslo'), (2, DATE '2026-03-01', 'turku')")
    sql("ALTER TABLE t SET PROPERTIES partitioning = ARRAY['truncate(city, 2)', 'bucket(id, 4)']")
    sql("INSERT INTO t VALUES (3, NULL, 'tampere')")
    sql("ALTER TABLE t SET PROPERTIES partitioning = ARRAY[]")
    sql("INSERT INTO t VALUES (4, NULL, NULL)")
    partitions = sql('SELECT partition.day_year, partition.city_trunc, record_count FROM "t$partitions" ORDER BY 1, 2')
    assert partitions == [(55, None, 1), (56, None, 1), (None, "ta", 1), (None, None, 1)]
    assert sql.ids("t") == [1, 2, 3, 4]
    assert sql("SELECT id FROM t WHERE day < DATE '2026-01-01'") == [(1,)]
    sql("DELETE FROM t WHERE city = 'tampere'")
    assert sql.ids("t") == [1, 2, 4]


@BOTH
def test_information_schema(sql):
    sql("CREATE TABLE a (id int, name varchar NOT NULL)")
    sql("CREATE TABLE b (day date)")
    mine = f"table_catalog = '{sql.catalog}' AND table_schema = '{sql.schema}'"
    assert sql(f"SELECT table_name, table_type FROM information_schema.tables WHERE {mine} ORDER BY 1") == [
        ("a", "BASE TABLE"),
        ("b", "BASE TABLE"),
    ]
    columns = "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
    assert sql(f"{columns} WHERE {mine} ORDER BY 1, 2") == [
        ("a", "id", "integer", "YES"),
        ("a", "name", "varchar", "NO"),
        ("b", "day", "date", "YES"),
    ]
    assert sql(f"SELECT count(*) FROM information_schema.schemata WHERE schema_name = '{sql.schema}'") == [(1,)]


def test_metadata_tables(sql):
    sql("CREATE TABLE t (id int)")  # Which commits a snapshot without files.
    for id in (1, 2):
        sql(f"INSERT INTO t VALUES {id}")
    sql("DELETE FROM t WHERE id = 1")
    operations = [row[0] for row in sql('SELECT operation FROM "t$snapshots" ORDER BY committed_at')]
    assert operations == ["append", "append", "append", "delete"]
    assert sql.value('SELECT count(*) FROM "t$history" WHERE is_current_ancestor') == 4
    assert sql('SELECT name, type FROM "t$refs"') == [("main", "BRANCH")]
    files = sql('SELECT file FROM "t$metadata_log_entries"')
    assert [file.rsplit("/", 1)[1][:6] for (file,) in files] == [f"{n:05}-" for n in range(len(files))]
    assert len(files) >= 4
    assert sql.value('SELECT count(*) FROM "t$files"') >= 1
    assert sql.value('SELECT count(*) FROM "t$manifests"') >= 1


def test_a_location_of_ones_own(sql):
    sql("CREATE TABLE here (id int)")
    location = sql.location("here") + "_own"
    sql(f"CREATE TABLE t WITH (location = '{location}') AS SELECT 1 AS id")
    assert sql.location("t") == location
    assert sql.ids("t") == [1]
    with refused("GENERIC_INTERNAL_ERROR", "none of the warehouse's roots"):
        sql("CREATE TABLE outside (id int) WITH (location = 'file:///nowhere/outside')")
    assert sorted(sql("SHOW TABLES")) == [("here",), ("t",)]
