"""Names that need care on the way into a URL and out of it again."""

import pytest
from conftest import ids
from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError

NAMES = [
    "with space",
    "ünï çødé",
    "日本語",
    "🧊",
    "dotted.name",
    "plus+sign",
    "a+b c",
    "per%cent",
    "looks%2Fencoded",
    "looks%20encoded",
    "slash/name",
    "back\\slash",
    "question?mark",
    "hash#mark",
    "amper&sand=equals",
    "semi;colon:comma,",
    "quo'te\"s",
    "[brackets]{braces}",
    "tilde~star*at@",
    "...",
    "UPPER",
    "x" * 255,
]


@pytest.mark.s3
@pytest.mark.parametrize("name", NAMES)
def test_table(catalog, namespace, people, name):
    identifier = (*namespace, name)
    table = catalog.create_table(identifier, people.schema)
    table.append(people)
    assert catalog.list_tables(namespace) == [identifier]
    assert catalog.table_exists(identifier)
    assert ids(catalog.load_table(identifier)) == [1, 2, 3]
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(identifier, people.schema)

    catalog.rename_table(identifier, (*namespace, f"{name[:200]} 2"))
    catalog.rename_table((*namespace, f"{name[:200]} 2"), identifier)
    catalog.drop_table(identifier)
    assert catalog.list_tables(namespace) == []


@pytest.mark.parametrize("name", NAMES)
def test_namespace(catalog, namespace, people, name):
    middle, leaf = (*namespace, name), (*namespace, name, name)
    catalog.create_namespace(middle)
    catalog.create_namespace(leaf, {"key": "value"})
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(leaf)
    assert catalog.list_namespaces(namespace) == [middle]
    assert catalog.load_namespace_properties(leaf)["key"] == "value"

    table = catalog.create_table((*leaf, name), people.schema)
    table.append(people)
    assert catalog.list_tables(leaf) == [(*leaf, name)]
    assert ids(catalog.load_table((*leaf, name))) == [1, 2, 3]

    # Children are not listed here, and what was made is dropped by name: PyIceberg encodes the names in
    # ?parent= twice, so that a server that decodes as the specification says sees other names.
    catalog.drop_table((*leaf, name))
    catalog.drop_namespace(leaf)
    catalog.drop_namespace(middle)
    assert catalog.list_namespaces(namespace) == []


def test_dot_is_no_separator(catalog, namespace, people):
    catalog.create_namespace((*namespace, "a"))
    catalog.create_namespace((*namespace, "a", "b"))
    catalog.create_namespace((*namespace, "a.b"))
    catalog.create_table((*namespace, "a.b", "table"), people.schema)
    assert catalog.list_tables((*namespace, "a", "b")) == []
    assert catalog.list_tables((*namespace, "a.b")) == [(*namespace, "a.b", "table")]
    assert sorted(catalog.list_namespaces(namespace)) == [(*namespace, "a"), (*namespace, "a.b")]
    assert not catalog.table_exists((*namespace, "a", "b", "table"))


def test_names_that_look_alike_are_distinct(catalog, namespace, people):
    # Two spellings of é, two cases, and a plus that form decoding would take for a space.
    names = sorted([(*namespace, name) for name in ("caf\u00e9", "cafe\u0301", "Table", "table", "a+b", "a b")])
    for name in names:
        catalog.create_table(name, people.schema)
    assert sorted(catalog.list_tables(namespace)) == names
    assert len({catalog.load_table(name).location() for name in names}) == len(names)
