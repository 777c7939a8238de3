"""What Landfast promises beyond the specification: warehouses, names it refuses, guarded locations."""

import os
import urllib.parse

import pytest
from pyiceberg.exceptions import BadRequestError, ForbiddenError, RESTError
from pyiceberg.schema import Schema


def test_warehouses_are_apart(catalog, connect, namespace):
    main = connect(warehouse=None)
    assert namespace not in main.list_namespaces()
    main.create_namespace(namespace)
    try:
        main.create_table((*namespace, "only_in_main"), Schema())
        assert catalog.list_tables(namespace) == []
        main.drop_table((*namespace, "only_in_main"))
    finally:
        main.drop_namespace(namespace)
    assert catalog.namespace_exists(namespace)


def test_no_warehouse_is_main(connect, namespace):
    connect(warehouse="main").create_namespace(namespace)
    unnamed = connect(warehouse=None)
    assert unnamed.namespace_exists(namespace)
    unnamed.drop_namespace(namespace)


def test_unknown_warehouse(connect):
    with pytest.raises(RESTError, match="NoSuchWarehouseException"):
        connect(warehouse="no-such-warehouse")


@pytest.mark.parametrize("name", ["", ".", "..", "line\nbreak", "nul\0", "tab\t", "del\x7f", "x" * 256])
def test_refused_names(catalog, namespace, name):
    with pytest.raises(BadRequestError, match="IllegalArgumentException"):
        catalog.create_table((*namespace, name), Schema())
    with pytest.raises(BadRequestError, match="IllegalArgumentException"):
        catalog.create_namespace((*namespace, name))
    assert catalog.list_tables(namespace) == []
    assert catalog.list_namespaces(namespace) == []


@pytest.mark.parametrize(
    "location",
    [
        "file://{outside}",
        "file:{outside}",
        "{outside}",
        "file://elsewhere{root}/table",
        "s3://bucket/table",
        "relative/path",
        "file://{root}/../../../../../../../../../../../..{outside}",
    ],
)
def test_refused_locations(catalog, namespace, tmp_path, location):
    neighbour = catalog.create_table((*namespace, "neighbour"), Schema()).location()
    root = os.path.dirname(urllib.parse.urlparse(neighbour).path)
    location = location.format(root=root, outside=tmp_path / "table")
    with pytest.raises((BadRequestError, ForbiddenError)):
        catalog.create_table((*namespace, "table"), Schema(), location=location)
    assert not catalog.table_exists((*namespace, "table"))
    assert list(tmp_path.iterdir()) == []


def test_locations_of_live_tables_do_not_nest(catalog, namespace):
    first = catalog.create_table((*namespace, "first"), Schema())
    chosen = f"{os.path.dirname(first.location())}/chosen-{namespace[0]}"
    catalog.create_table((*namespace, "second"), Schema(), location=chosen)
    for location in (chosen, f"{chosen}/", f"{chosen}/below", os.path.dirname(chosen)):
        with pytest.raises((BadRequestError, ForbiddenError)):
            catalog.create_table((*namespace, "third"), Schema(), location=location)
    # What only begins with the same letters is not below it.
    catalog.create_table((*namespace, "third"), Schema(), location=f"{chosen}-2")
