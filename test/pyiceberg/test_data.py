import pyarrow as pa
import pytest
from conftest import ids
from pyiceberg.expressions import EqualTo, GreaterThan, In
from pyiceberg.transforms import IdentityTransform


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
