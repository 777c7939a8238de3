import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, FloatType, IntegerType, LongType, NestedField, StringType, StructType

pytestmark = pytest.mark.s3


@pytest.fixture
def table(catalog, namespace):
    schema = Schema(
        NestedField(1, "id", IntegerType(), required=False),
        NestedField(2, "ratio", FloatType(), required=False),
        NestedField(3, "note", StringType(), required=False),
    )
    table = catalog.create_table((*namespace, "table"), schema)
    table.append(
        pa.table(
            {
                "id": pa.array([1], pa.int32()),
                "ratio": pa.array([0.5], pa.float32()),
                "note": ["old"],
            }
        )
    )
    return table


def rows(catalog, namespace):
    return catalog.load_table((*namespace, "table")).scan().to_arrow().to_pylist()


def test_add_column(catalog, namespace, table):
    with table.update_schema() as update:
        update.add_column("extra", StringType(), doc="added later")
    assert rows(catalog, namespace) == [{"id": 1, "ratio": 0.5, "note": "old", "extra": None}]
    assert table.schema().find_field("extra").field_id == 4
    assert table.metadata.last_column_id == 4


def test_add_nested_column(catalog, namespace, table):
    with table.update_schema() as update:
        update.add_column("place", StructType(NestedField(100, "city", StringType(), required=False)))
    with table.update_schema() as update:
        update.add_column(("place", "street"), StringType())
    loaded = catalog.load_table((*namespace, "table"))
    assert loaded.schema().find_field("place.street").field_id == 6
    loaded.append(
        pa.table(
            {
                "id": pa.array([2], pa.int32()),
                "ratio": pa.array([1.5], pa.float32()),
                "note": ["new"],
                "place": [{"city": "oslo", "street": "one"}],
            }
        )
    )
    assert [row["place"] for row in sorted(rows(catalog, namespace), key=lambda row: row["id"])] == [
        None,
        {"city": "oslo", "street": "one"},
    ]


def test_rename_column_keeps_the_data(catalog, namespace, table):
    with table.update_schema() as update:
        update.rename_column("note", "remark")
    assert rows(catalog, namespace) == [{"id": 1, "ratio": 0.5, "remark": "old"}]


def test_dropped_column_does_not_come_back(catalog, namespace, table):
    with table.update_schema() as update:
        update.delete_column("note")
    assert rows(catalog, namespace) == [{"id": 1, "ratio": 0.5}]

    # A new column of the old name has a new id, so that it does not read the old one's values.
    with table.update_schema() as update:
        update.add_column("note", StringType())
    assert rows(catalog, namespace) == [{"id": 1, "ratio": 0.5, "note": None}]


def test_types_are_widened(catalog, namespace, table):
    with table.update_schema() as update:
        update.update_column("id", LongType())
        update.update_column("ratio", DoubleType())
    large = 2**53 + 1
    table.append(pa.table({"id": pa.array([large], pa.int64()), "ratio": [0.25], "note": ["new"]}))
    loaded = catalog.load_table((*namespace, "table"))
    assert loaded.schema().find_type("id") == LongType()
    assert loaded.schema().find_type("ratio") == DoubleType()
    assert sorted(row["id"] for row in rows(catalog, namespace)) == [1, large]


def test_old_snapshot_has_the_old_schema(catalog, namespace, table):
    first = table.current_snapshot()
    with table.update_schema() as update:
        update.rename_column("note", "remark")
        update.add_column("extra", StringType())
    loaded = catalog.load_table((*namespace, "table"))
    assert sorted(loaded.schemas()) == [0, 1]
    assert loaded.schemas()[first.schema_id].column_names == ["id", "ratio", "note"]
    assert loaded.scan(snapshot_id=first.snapshot_id).to_arrow().to_pylist() == [{"id": 1, "ratio": 0.5, "note": "old"}]


def test_the_same_schema_is_not_added_twice(catalog, namespace, table):
    with table.update_schema() as update:
        update.rename_column("note", "remark")
    with table.update_schema() as update:
        update.rename_column("remark", "note")
    loaded = catalog.load_table((*namespace, "table"))
    assert sorted(loaded.schemas()) == [0, 1]
    assert loaded.schema().schema_id == 0
