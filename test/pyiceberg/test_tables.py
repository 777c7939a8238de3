import os
import time
import urllib.parse

import pyarrow as pa
import pytest
from conftest import ids
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, RESTError, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, StructType

REMOVED_MAX = 10  # seconds


def path_of(location):
    return urllib.parse.urlparse(location).path


def test_create_and_load(catalog, connect, namespace):
    schema = Schema(
        NestedField(1, "id", LongType(), required=True, doc="the key"),
        NestedField(2, "place", StructType(NestedField(3, "city", StringType(), required=False)), required=False),
        identifier_field_ids=[1],
    )
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(8), "id_bucket"))
    order = SortOrder(SortField(1, IdentityTransform()))
    created = catalog.create_table(
        (*namespace, "table"), schema, partition_spec=spec, sort_order=order, properties={"owner": "ann"}
    )

    # Another client reads the same bytes back.
    loaded = connect().load_table((*namespace, "table"))
    assert loaded.metadata == created.metadata
    assert loaded.metadata_location == created.metadata_location
    assert os.path.exists(path_of(loaded.metadata_location))

    assert loaded.schema().find_field("place.city").field_type == StringType()
    assert loaded.schema().find_field("id").doc == "the key"
    assert loaded.schema().identifier_field_names() == {"id"}
    assert [(f.name, str(f.transform)) for f in loaded.spec().fields] == [("id_bucket", "bucket[8]")]
    assert len(loaded.sort_order().fields) == 1
    assert loaded.properties["owner"] == "ann"
    assert loaded.current_snapshot() is None


@pytest.mark.parametrize("version", ["1", "2"])
def test_format_versions(catalog, namespace, people, version):
    table = catalog.create_table((*namespace, "table"), people.schema, properties={"format-version": version})
    assert table.format_version == int(version)
    table.append(people)
    assert ids(catalog.load_table((*namespace, "table"))) == [1, 2, 3]


def test_upgrade_of_the_format(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema, properties={"format-version": "1"})
    table.append(people)
    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
    table.append(people)
    assert catalog.load_table((*namespace, "table")).format_version == 2
    assert ids(table) == [1, 1, 2, 2, 3, 3]


def test_existing_table_is_refused(catalog, namespace, people):
    catalog.create_table((*namespace, "table"), people.schema)
    with pytest.raises(TableAlreadyExistsError, match="Table already exists"):
        catalog.create_table((*namespace, "table"), people.schema)


def test_missing(catalog, namespace, people):
    with pytest.raises(NoSuchTableError, match="Table does not exist"):
        catalog.load_table((*namespace, "missing"))
    with pytest.raises(NoSuchTableError, match="Table does not exist"):
        catalog.drop_table((*namespace, "missing"))
    with pytest.raises(NoSuchNamespaceError, match="Namespace does not exist"):
        catalog.create_table((*namespace, "missing", "table"), people.schema)
    assert not catalog.table_exists((*namespace, "missing"))


def test_list(catalog, connect, namespace, people):
    names = [(*namespace, f"table{i}") for i in range(5)]
    for name in names:
        catalog.create_table(name, people.schema)
    assert sorted(catalog.list_tables(namespace)) == names

    # The same through pages that do not divide the whole.
    paged = connect(**{"rest-page-size": "2"})
    assert sorted(paged.list_tables(namespace)) == names


def test_properties(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema)
    with table.transaction() as transaction:
        transaction.set_properties({"owner": "ann", "tier": "gold"})
    with table.transaction() as transaction:
        transaction.remove_properties("tier")
    properties = catalog.load_table((*namespace, "table")).properties
    assert properties["owner"] == "ann"
    assert "tier" not in properties


def test_rename(catalog, namespace, people):
    other = (*namespace, "other")
    catalog.create_namespace(other)
    table = catalog.create_table((*namespace, "old"), people.schema)
    table.append(people)

    renamed = catalog.rename_table((*namespace, "old"), (*other, "new"))
    assert renamed.metadata.table_uuid == table.metadata.table_uuid
    assert renamed.location() == table.location()
    assert ids(renamed) == [1, 2, 3]
    assert not catalog.table_exists((*namespace, "old"))
    assert catalog.list_tables(namespace) == []
    assert catalog.list_tables(other) == [(*other, "new")]

    # The old name is free, and what takes it is another table.
    again = catalog.create_table((*namespace, "old"), people.schema)
    assert again.metadata.table_uuid != table.metadata.table_uuid
    assert again.location() != table.location()
    renamed.append(people)
    assert ids(renamed) == [1, 1, 2, 2, 3, 3]
    assert ids(again) == []


def test_rename_is_refused(catalog, namespace, people):
    catalog.create_table((*namespace, "one"), people.schema)
    catalog.create_table((*namespace, "two"), people.schema)
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table((*namespace, "one"), (*namespace, "two"))
    with pytest.raises(NoSuchTableError):
        catalog.rename_table((*namespace, "missing"), (*namespace, "three"))
    assert sorted(catalog.list_tables(namespace)) == [(*namespace, "one"), (*namespace, "two")]


def test_drop_keeps_the_files(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema)
    table.append(people)
    catalog.drop_table((*namespace, "table"))
    assert not catalog.table_exists((*namespace, "table"))
    with pytest.raises(NoSuchTableError):
        catalog.load_table((*namespace, "table"))
    with pytest.raises(RESTError, match="NoSuchTableException"):
        table.append(people)
    assert os.path.exists(path_of(table.metadata_location))


def test_purge_removes_the_metadata(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema)
    table.append(people)
    catalog.purge_table((*namespace, "table"))
    assert not catalog.table_exists((*namespace, "table"))

    # The files may be removed after the answer.
    deadline = time.monotonic() + REMOVED_MAX
    while os.path.exists(path_of(table.metadata_location)):
        assert time.monotonic() < deadline, "the metadata file of a purged table is still there"
        time.sleep(0.05)


def test_dropped_table_is_registered_again(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema)
    table.append(people)
    catalog.drop_table((*namespace, "table"))

    registered = catalog.register_table((*namespace, "back"), table.metadata_location)
    assert registered.metadata.table_uuid == table.metadata.table_uuid
    registered.append(people)
    assert ids(catalog.load_table((*namespace, "back"))) == [1, 1, 2, 2, 3, 3]


def test_location_that_the_client_chose(catalog, namespace, people):
    # A sibling of a location that the server chose lies in the warehouse's root, whatever that is.
    neighbour = catalog.create_table((*namespace, "neighbour"), people.schema)
    location = f"{os.path.dirname(neighbour.location())}/chosen-{namespace[0]}"
    table = catalog.create_table((*namespace, "table"), people.schema, location=f"{location}/")
    assert table.location() == location
    table.append(people)
    assert ids(table) == [1, 2, 3]
    assert all(task.file.file_path.startswith(f"{location}/") for task in table.scan().plan_files())


def test_wide_table(catalog, namespace):
    # Some hundred columns make a metadata file of a size that real tables have.
    columns = {f"column_{i}": pa.array([i], pa.int64()) for i in range(300)}
    table = catalog.create_table((*namespace, "table"), pa.table(columns).schema)
    table.append(pa.table(columns))
    loaded = catalog.load_table((*namespace, "table"))
    assert loaded.scan().to_arrow().to_pylist() == [{f"column_{i}": i for i in range(300)}]
