import datetime

import pyarrow as pa
import pytest
from conftest import ids
from pyiceberg.expressions import EqualTo, GreaterThan, In
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import LongType, NestedField, StringType

pytestmark = pytest.mark.s3

T = datetime.datetime(2026, 1, 2, 3, 4, 5)


@pytest.fixture
def table(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema)
    table.append(people)
    return table


def test_append_and_scan(catalog, namespace, table, people):
    loaded = catalog.load_table((*namespace, "table"))
    assert loaded.scan().to_arrow().sort_by("id").equals(people)
    assert loaded.scan(row_filter=GreaterThan("id", 1), selected_fields=("name",)).to_arrow().to_pydict() == {
        "name": ["bob", "cyd"]
    }
    assert loaded.scan().count() == 3
    assert loaded.current_snapshot().summary["total-records"] == "3"


def test_delete_where(table):
    table.delete(In("id", [1, 3]))
    assert ids(table) == [2]


def test_delete_everything(catalog, namespace, table):
    table.delete()
    assert ids(catalog.load_table((*namespace, "table"))) == []


def test_overwrite_where(table):
    table.overwrite(pa.table({"id": [20], "name": ["bea"]}), overwrite_filter=EqualTo("id", 2))
    assert ids(table) == [1, 3, 20]


def test_overwrite_everything(catalog, namespace, table):
    table.overwrite(pa.table({"id": [9], "name": ["zoe"]}))
    assert ids(catalog.load_table((*namespace, "table"))) == [9]


def test_upsert(table):
    result = table.upsert(pa.table({"id": [3, 4], "name": ["cy", "dan"]}), join_cols=["id"])
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert table.scan().to_arrow().sort_by("id")["name"].to_pylist() == ["ann", "bob", "cy", "dan"]


def test_upsert_of_one_kind(table):
    rows = pa.table({"id": [3, 4], "name": ["cy", "dan"]})
    result = table.upsert(rows, join_cols=["id"], when_not_matched_insert_all=False)
    assert (result.rows_updated, result.rows_inserted) == (1, 0)
    assert ids(table) == [1, 2, 3]
    result = table.upsert(pa.table({"id": [3, 4], "name": ["c", "dan"]}), join_cols=["id"], when_matched_update_all=False)
    assert (result.rows_updated, result.rows_inserted) == (0, 1)
    assert table.scan().to_arrow().sort_by("id")["name"].to_pylist() == ["ann", "bob", "cy", "dan"]
    # Nothing to do is no commit.
    before = table.metadata_location
    result = table.upsert(rows.slice(0, 1), join_cols=["id"])
    assert (result.rows_updated, result.rows_inserted, table.refresh().metadata_location) == (0, 0, before)


def test_upsert_by_identifier_fields(catalog, namespace):
    schema = Schema(
        NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType()), identifier_field_ids=[1]
    )
    table = catalog.create_table((*namespace, "keyed"), schema)
    rows = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    table.append(pa.table({"id": [1, 2], "name": ["ann", "bob"]}, rows))
    result = table.upsert(pa.table({"id": [2, 3], "name": ["bo", "cyd"]}, rows))
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    loaded = catalog.load_table((*namespace, "keyed"))
    assert loaded.scan().to_arrow().sort_by("id")["name"].to_pylist() == ["ann", "bo", "cyd"]
    assert loaded.schema().identifier_field_names() == {"id"}


def test_files_that_are_there_already(catalog, namespace, table, people):
    copy = catalog.create_table((*namespace, "copy"), people.schema)
    paths = [task.file.file_path for task in table.scan().plan_files()]
    copy.add_files(paths)
    assert ids(catalog.load_table((*namespace, "copy"))) == [1, 2, 3]
    with pytest.raises(ValueError, match="already referenced"):
        copy.add_files(paths)


def test_incremental_scan(catalog, namespace, table):
    first = table.current_snapshot().snapshot_id
    for i in (4, 5):
        table.append(pa.table({"id": [i], "name": ["x"]}))
    scan = catalog.load_table((*namespace, "table")).incremental_append_scan().from_snapshot_id_exclusive(first)
    assert sorted(scan.to_arrow()["id"].to_pylist()) == [4, 5]


def test_time_travel(catalog, namespace, table):
    first = table.current_snapshot()
    table.append(pa.table({"id": [4], "name": ["dan"]}))
    second = table.current_snapshot()
    table.delete(EqualTo("id", 1))

    loaded = catalog.load_table((*namespace, "table"))
    assert ids(loaded, snapshot_id=first.snapshot_id) == [1, 2, 3]
    assert ids(loaded, snapshot_id=second.snapshot_id) == [1, 2, 3, 4]
    assert ids(loaded) == [2, 3, 4]

    assert second.parent_snapshot_id == first.snapshot_id
    assert [entry.snapshot_id for entry in loaded.history()][:2] == [first.snapshot_id, second.snapshot_id]
    assert loaded.snapshot_as_of_timestamp(first.timestamp_ms).snapshot_id == first.snapshot_id
    sequence_numbers = [snapshot.sequence_number for snapshot in loaded.metadata.snapshots]
    assert sequence_numbers == sorted(set(sequence_numbers))


def test_roll_back(catalog, namespace, table):
    first = table.current_snapshot().snapshot_id
    table.append(pa.table({"id": [4], "name": ["dan"]}))
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    loaded = catalog.load_table((*namespace, "table"))
    assert loaded.current_snapshot().snapshot_id == first
    assert ids(loaded) == [1, 2, 3]


def test_branch_and_tag(catalog, namespace, table):
    first = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(first, "release").create_branch(first, "audit").commit()
    table.append(pa.table({"id": [4], "name": ["dan"]}), branch="audit")

    loaded = catalog.load_table((*namespace, "table"))
    assert set(loaded.refs()) == {"main", "audit", "release"}
    assert ids(loaded) == [1, 2, 3]
    assert sorted(loaded.scan().use_ref("audit").to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert sorted(loaded.scan().use_ref("release").to_arrow()["id"].to_pylist()) == [1, 2, 3]

    loaded.manage_snapshots().remove_branch("audit").remove_tag("release").commit()
    assert set(catalog.load_table((*namespace, "table")).refs()) == {"main"}


def test_branch_is_written_and_then_becomes_main(catalog, namespace, table):
    first = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_branch(first, "audit", max_ref_age_ms=86_400_000, min_snapshots_to_keep=2).commit()
    audit = catalog.load_table((*namespace, "table")).refs()["audit"]
    assert (audit.max_ref_age_ms, audit.min_snapshots_to_keep) == (86_400_000, 2)
    table.append(pa.table({"id": [4], "name": ["dan"]}), branch="audit")
    table.delete(EqualTo("id", 1), branch="audit")
    loaded = catalog.load_table((*namespace, "table"))
    assert (ids(loaded), sorted(loaded.scan().use_ref("audit").to_arrow()["id"].to_pylist())) == ([1, 2, 3], [2, 3, 4])

    loaded.manage_snapshots().set_current_snapshot(ref_name="audit").commit()
    assert ids(catalog.load_table((*namespace, "table"))) == [2, 3, 4]
    # What was committed to the branch alone is not in the history of main.
    assert [entry.snapshot_id for entry in loaded.history()] == [first, loaded.refs()["audit"].snapshot_id]


def test_tag_keeps_a_snapshot(catalog, namespace, table):
    first = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(first, "release", max_ref_age_ms=10**12).commit()
    table.overwrite(pa.table({"id": [9], "name": ["zoe"]}))
    with pytest.raises(ValueError, match="protected"):
        table.maintenance.expire_snapshots().by_id(first).commit()
    assert sorted(catalog.load_table((*namespace, "table")).scan().use_ref("release").to_arrow()["id"].to_pylist()) == [1, 2, 3]
    table.manage_snapshots().remove_tag("release").commit()
    table.maintenance.expire_snapshots().by_id(first).commit()
    assert catalog.load_table((*namespace, "table")).snapshot_by_id(first) is None


def test_expired_snapshot_is_gone(catalog, namespace, table):
    first = table.current_snapshot().snapshot_id
    table.append(pa.table({"id": [4], "name": ["dan"]}))
    table.maintenance.expire_snapshots().by_id(first).commit()
    loaded = catalog.load_table((*namespace, "table"))
    assert loaded.snapshot_by_id(first) is None
    assert ids(loaded) == [1, 2, 3, 4]


def test_only_the_refs_snapshots(connect, namespace, table):
    for i in range(4, 7):
        table.append(pa.table({"id": [i], "name": ["x"]}))
    refs = connect(**{"snapshot-loading-mode": "refs"}).load_table((*namespace, "table"))
    assert refs.current_snapshot().snapshot_id == table.current_snapshot().snapshot_id
    assert ids(refs) == [1, 2, 3, 4, 5, 6]


def test_partitions(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema)
    with table.update_spec() as update:
        update.add_field("name", IdentityTransform(), "by_name")
    table.append(people)
    assert len(list(table.scan(row_filter=EqualTo("name", "bob")).plan_files())) == 1

    # The partitioning changes, and files of both specs are read.
    with table.update_spec() as update:
        update.remove_field("by_name")
        update.add_field("id", IdentityTransform(), "by_id")
    table.append(pa.table({"id": [4], "name": ["bob"]}))
    loaded = catalog.load_table((*namespace, "table"))
    assert [field.name for field in loaded.spec().fields] == ["by_id"]
    assert ids(loaded, row_filter=EqualTo("name", "bob")) == [2, 4]


@pytest.mark.parametrize(
    "transform, value, matching",
    [
        (YearTransform(), 56, [1, 2]),
        (MonthTransform(), 56 * 12, [1]),
        (DayTransform(), 20_455, [1]),
        (HourTransform(), 20_455 * 24 + 3, [1]),
        (VoidTransform(), None, [1, 2]),
    ],
)
def test_partitions_by_time(catalog, namespace, transform, value, matching):
    rows = pa.table({"id": [1, 2], "at": pa.array([T, T + datetime.timedelta(days=40)], pa.timestamp("us"))})
    table = catalog.create_table((*namespace, "table"), rows.schema)
    with table.update_spec() as update:
        update.add_field("at", transform, "part")
    table.append(rows)
    loaded = catalog.load_table((*namespace, "table"))
    assert str(loaded.spec().fields[0].transform) == str(transform)
    found = [task.file for task in loaded.scan(row_filter=EqualTo("at", T)).plan_files()]
    assert ids(loaded) == [1, 2]
    assert [file.partition[0] for file in found] == [value]
    assert sum(file.record_count for file in found) == len(matching)


@pytest.mark.parametrize("transform", [BucketTransform(4), TruncateTransform(2)])
def test_partitions_by_bucket_and_truncation(catalog, namespace, people, transform):
    table = catalog.create_table((*namespace, "table"), people.schema)
    with table.update_spec() as update:
        update.add_field("name", transform, "part")
    table.append(people)
    table.append(pa.table({"id": [4], "name": ["annabel"]}))
    loaded = catalog.load_table((*namespace, "table"))
    assert str(loaded.spec().fields[0].transform) == str(transform)
    assert ids(loaded, row_filter=EqualTo("name", "annabel")) == [4]
    loaded.delete(EqualTo("name", "annabel"))
    assert ids(loaded) == [1, 2, 3]


def test_partition_evolution(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema, properties={"format-version": "2"})
    with table.update_spec() as update:
        update.add_field("name", IdentityTransform(), "by_name")
    with table.update_spec() as update:
        update.rename_field("by_name", "who")
        update.add_field("id", BucketTransform(8), "by_id")
    assert [field.name for field in table.spec().fields] == ["who", "by_id"]
    assert [field.field_id for field in table.spec().fields] == [1000, 1001]
    with table.update_spec() as update:
        update.remove_field("who")
    table.append(people)
    # The old spec is found again, and its fields keep their ids.
    with table.update_spec() as update:
        update.add_field("name", IdentityTransform(), "who")
    loaded = catalog.load_table((*namespace, "table"))
    assert {field.name: field.field_id for field in loaded.spec().fields} == {"who": 1000, "by_id": 1001}
    assert loaded.metadata.last_partition_id == 1001
    assert sorted(loaded.specs()) == list(range(len(loaded.specs())))
    assert ids(loaded) == [1, 2, 3]


def test_sort_order_evolution(catalog, namespace, table):
    with table.update_sort_order() as update:
        update.desc("name", IdentityTransform(), NullOrder.NULLS_LAST)
    with table.update_sort_order() as update:
        update.asc("id", IdentityTransform(), NullOrder.NULLS_FIRST)
    loaded = catalog.load_table((*namespace, "table"))
    assert [(field.source_id, field.direction) for field in loaded.sort_order().fields] == [(1, SortDirection.ASC)]
    assert sorted(loaded.sort_orders()) == [0, 1, 2]
    table.append(pa.table({"id": [4], "name": ["dan"]}))
    assert ids(table) == [1, 2, 3, 4]


def test_dynamic_partition_overwrite(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema)
    with table.update_spec() as update:
        update.add_identity("name")
    table.append(people)
    table.dynamic_partition_overwrite(pa.table({"id": [22], "name": ["bob"]}))
    assert ids(table) == [1, 3, 22]


def test_one_transaction_of_several_changes(catalog, namespace, table):
    with table.transaction() as transaction:
        with transaction.update_schema() as update:
            update.rename_column("name", "given_name")
        transaction.append(pa.table({"id": [4], "given_name": ["dan"]}))
        transaction.set_properties({"owner": "ann"})
    loaded = catalog.load_table((*namespace, "table"))
    assert loaded.schema().column_names == ["id", "given_name"]
    assert loaded.properties["owner"] == "ann"
    assert ids(loaded) == [1, 2, 3, 4]
    # One commit, one metadata file: what was before it is the one entry that it added to the log.
    assert len(loaded.metadata.metadata_log) == 2


def test_snapshot_ids_keep_all_their_bits(catalog, namespace, table):
    # PyIceberg draws 63 random bits. A server that lets one pass through a float changes most of them.
    written = []
    for i in range(4, 9):
        table.append(pa.table({"id": [i], "name": ["x"]}))
        written.append(table.current_snapshot().snapshot_id)
    loaded = catalog.load_table((*namespace, "table"))
    assert any(snapshot_id > 2**53 for snapshot_id in written)
    assert [entry.snapshot_id for entry in loaded.history()][1:] == written
