"""Views, as far as PyIceberg has them: it creates, lists, loads, registers and drops them."""

import pytest
from pyiceberg.exceptions import (
    NamespaceNotEmptyError,
    NoSuchTableError,
    NoSuchViewError,
    RESTError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

pytestmark = pytest.mark.s3

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType(), doc="of a person"))


def version(namespace, **queries):
    """A version that has the queries, by dialect."""
    representations = [
        ViewRepresentation(SQLViewRepresentation(type="sql", sql=sql, dialect=dialect)) for dialect, sql in queries.items()
    ]
    return ViewVersion(
        version_id=1,
        schema_id=SCHEMA.schema_id,
        timestamp_ms=1_700_000_000_000,
        summary={"engine-name": "test"},
        representations=representations,
        default_namespace=namespace,
    )


@pytest.fixture
def view(catalog, namespace):
    queries = {"spark": "SELECT * FROM people", "trino": 'SELECT * FROM "people"'}
    return catalog.create_view((*namespace, "view"), SCHEMA, version(namespace, **queries), properties={"owner": "ann"})


def test_create_and_load(catalog, connect, namespace, view):
    loaded = connect().load_view((*namespace, "view"))
    assert loaded.metadata == view.metadata
    assert loaded.schema().as_struct() == SCHEMA.as_struct()
    assert loaded.properties["owner"] == "ann"
    assert loaded.sql_for("trino").sql == 'SELECT * FROM "people"'
    assert loaded.sql_for("spark").sql == "SELECT * FROM people"
    assert loaded.current_version().summary["engine-name"] == "test"
    assert loaded.current_version().default_namespace == namespace
    assert len(loaded.history()) == 1
    assert len(loaded.versions) == 1


def test_list_and_exists(catalog, connect, namespace, view):
    for name in ("b", "a"):
        catalog.create_view((*namespace, name), SCHEMA, version(namespace, spark="SELECT 1"))
    names = [(*namespace, name) for name in ("a", "b", "view")]
    assert sorted(catalog.list_views(namespace)) == names
    assert sorted(connect(**{"rest-page-size": "2"}).list_views(namespace)) == names
    assert catalog.view_exists(names[0])
    assert not catalog.view_exists((*namespace, "missing"))
    # A view is no table.
    assert catalog.list_tables(namespace) == []
    assert not catalog.table_exists(names[0])
    with pytest.raises(NoSuchTableError):
        catalog.load_table(names[0])


def test_drop(catalog, namespace, view):
    catalog.drop_view((*namespace, "view"))
    assert not catalog.view_exists((*namespace, "view"))
    assert catalog.list_views(namespace) == []
    with pytest.raises(NoSuchViewError):
        catalog.drop_view((*namespace, "view"))
    with pytest.raises(NoSuchViewError):
        catalog.load_view((*namespace, "view"))


def test_names_are_shared_with_tables(catalog, namespace, view):
    with pytest.raises(ViewAlreadyExistsError):
        catalog.create_view((*namespace, "view"), SCHEMA, version(namespace, spark="SELECT 1"))
    with pytest.raises(TableAlreadyExistsError, match="View with same name already exists"):
        catalog.create_table((*namespace, "view"), SCHEMA)
    catalog.create_table((*namespace, "table"), SCHEMA)
    with pytest.raises(ViewAlreadyExistsError, match="Table with same name already exists"):
        catalog.create_view((*namespace, "table"), SCHEMA, version(namespace, spark="SELECT 1"))
    with pytest.raises((RESTError, TableAlreadyExistsError), match="already exists"):
        catalog.rename_table((*namespace, "table"), (*namespace, "view"))
    with pytest.raises(NoSuchViewError):
        catalog.load_view((*namespace, "table"))


def test_namespace_with_a_view_is_not_dropped(catalog, namespace, view):
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(namespace)
    assert catalog.view_exists((*namespace, "view"))


def test_dropped_view_is_registered_again(catalog, namespace, view):
    # PyIceberg keeps no location of the metadata, so this asks for it.
    answer = catalog._session.get(catalog.url(f"namespaces/{namespace[0]}/views/view"))
    location = answer.json()["metadata-location"]
    catalog.drop_view((*namespace, "view"))
    back = catalog.register_view((*namespace, "back"), location)
    assert back.metadata == view.metadata
    assert catalog.list_views(namespace) == [(*namespace, "back")]


def test_two_queries_of_one_dialect_are_refused(catalog, namespace):
    twice = version(namespace, spark="SELECT 1")
    twice.representations.append(twice.representations[0])
    with pytest.raises(RESTError, match="Cannot add multiple queries for dialect spark"):
        catalog.create_view((*namespace, "view"), SCHEMA, twice)
    assert catalog.list_views(namespace) == []
