"""Tables that are created and filled in one commit."""

import pyarrow as pa
import pytest
from conftest import ids
from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
from pyiceberg.types import StringType


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


def test_staging_an_existing_name_is_refused(catalog, namespace, people):
    name = (*namespace, "table")
    catalog.create_table(name, people.schema)
    with pytest.raises(TableAlreadyExistsError, match="Table already exists"):
        catalog.create_table_transaction(name, people.schema)
