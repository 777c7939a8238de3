import os
import time

import pyarrow as pa
import pytest
from conftest import exists, files, ids, write_file
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, RESTError, TableAlreadyExistsError
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.table.statistics import BlobMetadata, StatisticsFile
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, StructType

pytestmark = pytest.mark.s3

REMOVED_MAX = 30  # seconds


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
    assert exists(loaded, loaded.metadata_location)

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
    before = files(table)
    catalog.drop_table((*namespace, "table"))
    assert not catalog.table_exists((*namespace, "table"))
    with pytest.raises(NoSuchTableError):
        catalog.load_table((*namespace, "table"))
    with pytest.raises(RESTError, match="NoSuchTableException"):
        table.append(people)
    # The refused append has left files of its own: metadata, which PyIceberg writes before it commits.
    assert set(before) <= set(files(table))
    assert any(path.endswith(".parquet") for path in before)


def wait_until(condition):
    """Waits for what the server may do after its answer, and returns whether it came."""
    deadline = time.monotonic() + REMOVED_MAX
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_purge_removes_everything(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema)
    for _ in range(3):
        table.append(people)
    table.delete(EqualTo("id", 2))
    first, last = table.snapshots()[0].snapshot_id, table.current_snapshot().snapshot_id
    # What only an old snapshot reaches goes too, and statistics.
    path = write_file(table, f"{table.location()}/metadata/some.stats")
    with table.update_statistics() as update:
        update.set_statistics(statistics(path, last))
    with table.manage_snapshots() as manage:
        manage.create_tag(first, "release")
    # A file that the table does not name is not the table's.
    stranger = write_file(table, f"{table.location()}/data/of-somebody-else")

    catalog.purge_table((*namespace, "table"))
    assert not catalog.table_exists((*namespace, "table"))
    assert wait_until(lambda: len(files(table)) <= 1), files(table)
    assert exists(table, stranger)


def test_purge_keeps_data_that_is_not_to_be_collected(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema, properties={"gc.enabled": "false"})
    table.append(people)
    (task,) = table.scan().plan_files()
    catalog.purge_table((*namespace, "table"))
    assert wait_until(lambda: not exists(table, table.metadata_location))
    assert exists(table, task.file.file_path)


def test_purge_keeps_what_another_table_reaches(catalog, namespace, people):
    # Two tables of one place: the second is the first, registered under another name and then changed.
    table = catalog.create_table((*namespace, "table"), people.schema)
    table.append(people)
    catalog.drop_table((*namespace, "table"))
    kept = catalog.register_table((*namespace, "kept"), table.metadata_location)
    kept.append(pa.table({"id": [4], "name": ["dan"]}))
    copy = catalog.create_table((*namespace, "copy"), people.schema)
    copy.add_files([task.file.file_path for task in kept.scan().plan_files()])
    assert ids(copy) == [1, 2, 3, 4]

    catalog.purge_table((*namespace, "copy"))
    assert wait_until(lambda: not exists(copy, copy.metadata_location))
    assert ids(catalog.load_table((*namespace, "kept"))) == [1, 2, 3, 4]


def statistics(path, snapshot_id):
    blob = BlobMetadata(type="apache-datasketches-theta-v1", snapshot_id=snapshot_id, sequence_number=1, fields=[1])
    return StatisticsFile(
        snapshot_id=snapshot_id,
        statistics_path=path,
        file_size_in_bytes=9,
        file_footer_size_in_bytes=1,
        blob_metadata=[blob],
    )


def test_statistics(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema)
    table.append(people)
    first = table.current_snapshot().snapshot_id
    table.append(people)
    second = table.current_snapshot().snapshot_id
    with table.update_statistics() as update:
        update.set_statistics(statistics(f"{table.location()}/metadata/1.stats", first))
        update.set_statistics(statistics(f"{table.location()}/metadata/2.stats", second))
    with table.update_statistics() as update:
        update.set_statistics(statistics(f"{table.location()}/metadata/3.stats", second))
    paths = {file.snapshot_id: file.statistics_path for file in catalog.load_table((*namespace, "table")).metadata.statistics}
    assert paths == {first: f"{table.location()}/metadata/1.stats", second: f"{table.location()}/metadata/3.stats"}
    with table.update_statistics() as update:
        update.remove_statistics(first)
    assert [file.snapshot_id for file in catalog.load_table((*namespace, "table")).metadata.statistics] == [second]


def test_dropped_table_is_registered_again(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema)
    table.append(people)
    catalog.drop_table((*namespace, "table"))

    registered = catalog.register_table((*namespace, "back"), table.metadata_location)
    assert registered.metadata.table_uuid == table.metadata.table_uuid
    registered.append(people)
    assert ids(catalog.load_table((*namespace, "back"))) == [1, 1, 2, 2, 3, 3]


def number(location):
    """The version in the name of a metadata file."""
    return int(os.path.basename(location).split("-", 1)[0])


def test_register_over_a_table(catalog, namespace, people):
    name = (*namespace, "table")
    table = catalog.create_table(name, people.schema)
    table.append(people)
    old, version = table.metadata_location, number(table.metadata_location)
    table.append(people)
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table(name, old)
    assert ids(catalog.load_table(name)) == [1, 1, 2, 2, 3, 3]

    back = catalog.register_table(name, old, overwrite=True)
    assert ids(back) == [1, 2, 3]
    back.append(pa.table({"id": [4], "name": ["dan"]}))
    loaded = catalog.load_table(name)
    assert ids(loaded) == [1, 2, 3, 4]
    assert number(loaded.metadata_location) == version + 1


def test_register_what_is_no_table(catalog, namespace, people):
    table = catalog.create_table((*namespace, "table"), people.schema)
    for location in (write_file(table, f"{table.location()}/metadata/00001-x.metadata.json"), f"{table.location()}/missing.json"):
        with pytest.raises(RESTError):
            catalog.register_table((*namespace, "other"), location)
    assert catalog.list_tables(namespace) == [(*namespace, "table")]


def test_log_of_metadata_files(catalog, namespace, people):
    properties = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"}
    table = catalog.create_table((*namespace, "table"), people.schema, properties=properties)
    locations = [table.metadata_location]
    for _ in range(4):
        table.append(people)
        locations.append(table.metadata_location)
    log = [entry.metadata_file for entry in catalog.load_table((*namespace, "table")).metadata.metadata_log]
    assert log == locations[-3:-1]
    assert [number(location) for location in locations] == [0, 1, 2, 3, 4]
    # PyIceberg itself deletes what fell off the log, at once.
    assert [exists(table, location) for location in locations] == [False, False, True, True, True]


@pytest.mark.parametrize("codec, ending", [("gzip", ".gz.metadata.json"), ("none", ".metadata.json")])
def test_compressed_metadata(catalog, connect, namespace, people, codec, ending):
    properties = {"write.metadata.compression-codec": codec}
    table = catalog.create_table((*namespace, "table"), people.schema, properties=properties)
    table.append(people)
    assert table.metadata_location.endswith(ending)
    # The file itself can be read, by a client that has no catalog.
    assert StaticTable.from_metadata(table.metadata_location, table.io.properties).metadata == table.metadata
    assert ids(connect().load_table((*namespace, "table"))) == [1, 2, 3]


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
