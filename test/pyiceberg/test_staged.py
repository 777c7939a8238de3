"""Tables that are created and filled, or replaced, in one commit."""

import pyarrow as pa
import pytest
from conftest import ids
from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSpecUpdate,
    SetPropertiesUpdate,
)
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, StringType

pytestmark = pytest.mark.s3


def test_create_and_fill_in_one_commit(catalog, namespace, people):
    name = (*namespace, "table")
    with catalog.create_table_transaction(name, people.schema, properties={"owner": "ann"}) as transaction:
        transaction.append(people)
        # Staging reserves nothing and shows nothing.
        assert not catalog.table_exists(name)
        assert catalog.list_tables(namespace) == []

    loaded = catalog.load_table(name)
    assert ids(loaded) == [1, 2, 3]
    assert loaded.properties["owner"] == "ann"
    assert len(loaded.metadata.snapshots) == 1
    assert loaded.metadata.metadata_log == []


def test_create_with_changes(catalog, namespace, people):
    name = (*namespace, "table")
    with catalog.create_table_transaction(name, people.schema) as transaction:
        with transaction.update_schema() as update:
            update.add_column("extra", StringType())
        transaction.set_properties({"owner": "ann"})
    loaded = catalog.load_table(name)
    assert loaded.schema().column_names == ["id", "name", "extra"]
    assert loaded.properties["owner"] == "ann"
    loaded.append(pa.table({"id": [1], "name": ["ann"], "extra": ["x"]}))
    assert ids(loaded) == [1]


def test_abandoned_create_leaves_nothing(catalog, namespace, people):
    name = (*namespace, "table")
    transaction = catalog.create_table_transaction(name, people.schema)
    transaction.append(people)
    del transaction
    assert catalog.list_tables(namespace) == []
    assert ids(catalog.create_table(name, people.schema)) == []


def test_second_of_two_staged_creates_is_refused(catalog, connect, namespace, people):
    name = (*namespace, "table")
    first = catalog.create_table_transaction(name, people.schema)
    second = connect().create_table_transaction(name, people.schema)
    first.append(people)
    second.append(people)
    first.commit_transaction()
    with pytest.raises(CommitFailedException, match="Requirement failed: table already exists"):
        second.commit_transaction()
    assert ids(catalog.load_table(name)) == [1, 2, 3]


def test_replace_in_one_commit(catalog, connect, namespace, people):
    # PyIceberg has no call for this. The updates are those of other clients for CREATE OR REPLACE.
    name = (*namespace, "table")
    table = catalog.create_table(name, people.schema, properties={"commit.retry.num-retries": "0"})
    table.append(people)
    first = table.current_snapshot().snapshot_id
    stale = connect().load_table(name)

    schema = Schema(NestedField(3, "id", StringType()), NestedField(4, "note", StringType()))
    spec = PartitionSpec(PartitionField(4, 1000, IdentityTransform(), "note"), spec_id=1)
    updates = (
        AddSchemaUpdate(schema=schema),
        SetCurrentSchemaUpdate(schema_id=-1),
        AddPartitionSpecUpdate(spec=spec),
        SetDefaultSpecUpdate(spec_id=-1),
        SetPropertiesUpdate(updates={"owner": "bob"}),
        RemoveSnapshotRefUpdate(ref_name="main"),
    )
    catalog.commit_table(table, (AssertTableUUID(uuid=table.metadata.table_uuid),), updates)

    replaced = catalog.load_table(name)
    assert replaced.metadata.table_uuid == table.metadata.table_uuid
    assert replaced.schema().column_names == ["id", "note"]
    assert replaced.current_snapshot() is None
    assert replaced.scan().to_arrow().num_rows == 0
    # What was before is in its history, and one who knew only that is refused.
    assert ids(replaced, snapshot_id=first) == [1, 2, 3]
    with pytest.raises(CommitFailedException, match="Requirement failed: branch or tag main is missing"):
        with stale.transaction() as transaction:
            transaction.append(people)
    replaced.append(pa.table({"id": ["a"], "note": ["x"]}))
    assert ids(catalog.load_table(name)) == ["a"]
    assert [snapshot.sequence_number for snapshot in replaced.snapshots()] == [1, 2]


def test_staging_an_existing_name_is_refused(catalog, namespace, people):
    name = (*namespace, "table")
    catalog.create_table(name, people.schema)
    with pytest.raises(TableAlreadyExistsError, match="Table already exists"):
        catalog.create_table_transaction(name, people.schema)
