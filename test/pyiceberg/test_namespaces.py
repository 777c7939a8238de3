import pytest
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
)
from pyiceberg.schema import Schema


def test_create_list_and_drop(catalog, namespace):
    assert namespace in catalog.list_namespaces()
    assert catalog.namespace_exists(namespace)
    catalog.drop_namespace(namespace)
    assert namespace not in catalog.list_namespaces()
    assert not catalog.namespace_exists(namespace)
    catalog.create_namespace(namespace)


def test_existing_namespace_is_refused(catalog, namespace):
    with pytest.raises(NamespaceAlreadyExistsError, match="Namespace already exists"):
        catalog.create_namespace(namespace)


def test_missing_namespace(catalog, namespace):
    missing = (*namespace, "missing")
    with pytest.raises(NoSuchNamespaceError, match="Namespace does not exist"):
        catalog.load_namespace_properties(missing)
    with pytest.raises(NoSuchNamespaceError, match="Namespace does not exist"):
        catalog.list_tables(missing)
    with pytest.raises(NoSuchNamespaceError, match="Namespace does not exist"):
        catalog.list_namespaces(missing)
    with pytest.raises(NoSuchNamespaceError, match="Namespace does not exist"):
        catalog.drop_namespace(missing)


def test_nested(catalog, namespace):
    child, sibling = (*namespace, "child"), (*namespace, "child2")
    grandchild = (*child, "grandchild")
    for name in (child, sibling, grandchild):
        catalog.create_namespace(name, {"depth": str(len(name))})

    # Listing is one level deep, and "child" is no prefix of "child2".
    assert sorted(catalog.list_namespaces(namespace)) == [child, sibling]
    assert catalog.list_namespaces(child) == [grandchild]
    assert catalog.list_namespaces(sibling) == []
    assert child not in catalog.list_namespaces()
    assert catalog.load_namespace_properties(grandchild)["depth"] == "3"

    # A table in a nested namespace is not a table of its parents.
    catalog.create_table((*grandchild, "deep"), Schema())
    assert catalog.list_tables(grandchild) == [(*grandchild, "deep")]
    assert catalog.list_tables(child) == []


def test_namespace_in_use_is_not_dropped(catalog, namespace):
    catalog.create_namespace((*namespace, "child"))
    with pytest.raises(NamespaceNotEmptyError, match="is not empty"):
        catalog.drop_namespace(namespace)
    catalog.drop_namespace((*namespace, "child"))

    catalog.create_table((*namespace, "table"), Schema())
    with pytest.raises(NamespaceNotEmptyError, match="is not empty"):
        catalog.drop_namespace(namespace)


def test_properties(catalog, namespace):
    summary = catalog.update_namespace_properties(namespace, updates={"owner": "ann", "tier": "gold"})
    assert sorted(summary.updated) == ["owner", "tier"]

    summary = catalog.update_namespace_properties(namespace, removals={"tier", "never"}, updates={"owner": "bob"})
    assert summary.removed == ["tier"]
    assert summary.missing == ["never"]
    assert summary.updated == ["owner"]

    properties = catalog.load_namespace_properties(namespace)
    assert properties["owner"] == "bob"
    assert "tier" not in properties
