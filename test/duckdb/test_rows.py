"""Rows that DuckDB writes, and rows that it reads of what PyIceberg wrote."""

import datetime
import decimal
import time
import uuid

import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, UUIDType

pytestmark = pytest.mark.s3

UTC = datetime.timezone.utc
REMOVED_MAX = 30  # seconds

# One value of each type, by its name in DuckDB; each column is null in a second row.
VALUES = {
    "boolean": True,
    "integer": -(2**31),
    "bigint": 2**53 + 1,
    "float": 0.5,
    "double": 1e300,
    "decimal(38,10)": decimal.Decimal("1234567890123456789012345678.0123456789"),
    "varchar": "ünï 🧊",
    "blob": b"\x00\xff",
    "date": datetime.date(1969, 12, 31),
    "time": datetime.time(23, 59, 59, 999999),
    "timestamp": datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    "timestamptz": datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    "uuid": uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    "bigint[]": [1, 2, 3],
    "struct(city varchar, zip integer)": {"city": "oslo", "zip": 1},
    "map(varchar, bigint)": {"a": 1, "b": 2},
}


@pytest.fixture
def people(catalog, namespace):
    """Three rows of PyIceberg's."""
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["ann", "bob", "cyd"]})
    table = catalog.create_table((namespace, "people"), rows.schema)
    table.append(rows)
    return table


@pytest.mark.parametrize("kind", VALUES)
def test_types(duck, ducks, catalog, namespace, kind):
    duck.sql("SET TimeZone = 'UTC'")
    duck.sql(f"CREATE TABLE t (id bigint, value {kind})")
    duck.sql("INSERT INTO t VALUES (1, ?), (2, NULL)", VALUES[kind])

    # PyIceberg reads what DuckDB wrote, and DuckDB what PyIceberg wrote of that.
    table = catalog.load_table((namespace, "t"))
    read = table.scan().to_arrow().sort_by("id")
    of_arrow = read["value"].to_pylist()
    of_arrow = [dict(value) if "map" in kind and value else value for value in of_arrow]
    assert of_arrow == [VALUES[kind], None]
    table.append(read)
    rows = ducks().sql("FROM t ORDER BY id")
    assert [row[0] for row in rows] == [1, 1, 2, 2]
    assert [row[1] for row in rows] == [VALUES[kind], VALUES[kind], None, None]


def test_reads_changes_of_pyiceberg(duck, people):
    assert duck.sql("FROM people ORDER BY id") == [(1, "ann"), (2, "bob"), (3, "cyd")]
    people.append(pa.table({"id": [4], "name": ["dan"]}))
    people.delete(EqualTo("id", 2))
    people.overwrite(pa.table({"id": [30], "name": ["cy"]}), overwrite_filter=EqualTo("id", 3))
    with people.update_schema() as update:
        update.rename_column("name", "given_name")
        update.add_column("note", StringType())
    assert duck.sql("SELECT id, given_name, note FROM people ORDER BY id") == [
        (1, "ann", None),
        (4, "dan", None),
        (30, "cy", None),
    ]


def test_reads_partitions_of_pyiceberg(duck, catalog, namespace):
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    table = catalog.create_table((namespace, "t"), schema, partition_spec=spec)
    table.append(pa.table({"id": [1, 2, 3], "name": ["ann", "bob", "ann"]}))
    with table.update_spec() as update:
        update.remove_field("name")
        update.add_identity("id")
    table.append(pa.table({"id": [4, 5], "name": ["ann", "bob"]}))
    assert duck.ids("t WHERE name = 'ann'") == [1, 3, 4]
    assert duck.ids("t WHERE id > 3") == [4, 5]
    # And writes into the newer spec.
    duck.sql("INSERT INTO t VALUES (6, 'ann')")
    assert [task.file.partition[0] for task in table.refresh().scan(row_filter=EqualTo("id", 6)).plan_files()] == [6]


@pytest.mark.parametrize("version", [2, 3])
def test_insert_update_delete(duck, catalog, namespace, version):
    duck.sql(f"CREATE TABLE t (id bigint, name varchar) WITH ('format-version' = '{version}')")
    duck.sql("INSERT INTO t VALUES (1, 'ann'), (2, 'bob'), (3, 'cyd'), (4, 'dan')")
    assert duck.sql("UPDATE t SET name = upper(name) WHERE id < 3") == [(2,)]
    assert duck.sql("DELETE FROM t WHERE id IN (2, 3)") == [(2,)]
    assert duck.sql("FROM t ORDER BY id") == [(1, "ANN"), (4, "dan")]

    # Updates and deletes leave files of positions, or vectors, which PyIceberg applies.
    table = catalog.load_table((namespace, "t"))
    assert table.format_version == version
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [{"id": 1, "name": "ANN"}, {"id": 4, "name": "dan"}]
    assert [operation for _, operation in duck.snapshots("t")] == ["append", "overwrite", "delete"]
    assert [snapshot.sequence_number for snapshot in table.metadata.snapshots] == [1, 2, 3]

    duck.sql("TRUNCATE t")
    assert duck.ids("t") == []
    assert catalog.load_table((namespace, "t")).scan().to_arrow().num_rows == 0


def test_merge(duck, people):
    duck.sql("""
        MERGE INTO people USING (VALUES (3, 'cy'), (4, 'dan')) AS new(id, name) ON people.id = new.id
        WHEN MATCHED THEN UPDATE SET name = new.name
        WHEN NOT MATCHED THEN INSERT VALUES (new.id, new.name)""")
    expected = [(1, "ann"), (2, "bob"), (3, "cy"), (4, "dan")]
    assert duck.sql("FROM people ORDER BY id") == expected
    read = people.refresh().scan().to_arrow().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in read] == expected


def test_create_as_select(duck, catalog, namespace):
    duck.sql("CREATE TABLE t AS SELECT i AS id, 'n' || i AS name FROM range(1000) AS range(i)")
    assert duck.ids("t") == list(range(1000))
    assert catalog.load_table((namespace, "t")).scan().to_arrow().num_rows == 1000
    duck.sql("CREATE TABLE u AS SELECT t.id + 1000 AS id FROM t WHERE id % 2 = 0")
    assert duck.ids("u") == list(range(1000, 2000, 2))


def test_partitioned_table(duck, catalog, namespace):
    duck.sql("CREATE TABLE t (id bigint, day date) PARTITIONED BY (day)")
    duck.sql("INSERT INTO t VALUES (1, DATE '2026-01-01'), (2, DATE '2026-01-02'), (3, DATE '2026-01-02')")
    table = catalog.load_table((namespace, "t"))
    assert [(field.source_id, str(field.transform)) for field in table.spec().fields] == [(2, "identity")]
    files = table.scan(row_filter=EqualTo("day", datetime.date(2026, 1, 2))).plan_files()
    assert [task.file.record_count for task in files] == [2]
    assert duck.ids("t WHERE day = DATE '2026-01-02'") == [2, 3]


def test_time_travel(duck, people):
    duck.sql("INSERT INTO people VALUES (4, 'dan')")
    duck.sql("DELETE FROM people WHERE id = 1")
    snapshots = duck.snapshots("people")
    assert [operation for _, operation in snapshots] == ["append", "append", "delete"]
    (first, _), (second, _), _ = snapshots
    assert duck.ids(f"people AT (VERSION => {first})") == [1, 2, 3]
    assert duck.ids(f"people AT (VERSION => {second})") == [1, 2, 3, 4]
    assert duck.ids("people") == [2, 3, 4]

    made = people.refresh().snapshot_by_id(second).timestamp_ms
    at = datetime.datetime.fromtimestamp(made / 1000, UTC).replace(tzinfo=None)
    assert duck.ids(f"people AT (TIMESTAMP => TIMESTAMP '{at}')") == [1, 2, 3, 4]
    # PyIceberg sees the same history, with ids of all their bits.
    assert [entry.snapshot_id for entry in people.history()] == [snapshot for snapshot, _ in snapshots]


def test_drop_keeps_the_files(duck, ducks, catalog, namespace, people):
    duck.sql("DROP TABLE people")
    assert not catalog.table_exists((namespace, "people"))
    catalog.register_table((namespace, "back"), people.metadata_location)
    assert ducks().ids("back") == [1, 2, 3]


def test_drop_with_purge(ducks, catalog, namespace, people):
    (task,) = people.scan().plan_files()
    files = [people.io.new_input(path) for path in (people.metadata_location, task.file.file_path)]
    assert all(file.exists() for file in files)
    ducks(options=", PURGE_REQUESTED true").sql("DROP TABLE people")
    deadline = time.monotonic() + REMOVED_MAX
    while any(file.exists() for file in files):
        assert time.monotonic() < deadline, "files of a purged table are still there"
        time.sleep(0.05)
    assert not catalog.table_exists((namespace, "people"))


def test_many_inserts(duck, catalog, namespace):
    duck.sql("CREATE TABLE t (id bigint)")
    for i in range(20):
        duck.sql(f"INSERT INTO t VALUES ({i})")
    assert duck.ids("t") == list(range(20))
    table = catalog.load_table((namespace, "t"))
    assert [snapshot.sequence_number for snapshot in table.metadata.snapshots] == list(range(1, 21))


def test_uuid_column_of_pyiceberg(duck, catalog, namespace):
    value = uuid.uuid4()
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "key", UUIDType()))
    table = catalog.create_table((namespace, "t"), schema)
    table.append(pa.table({"id": pa.array([1], pa.int64()), "key": pa.array([value.bytes], pa.uuid())}))
    assert duck.sql("FROM t") == [(1, value)]
