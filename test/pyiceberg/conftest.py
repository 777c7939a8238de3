"""Connects the tests to a running Landfast.

    pytest --uri http://127.0.0.1:8181 --warehouse NAME

Every test gets a namespace of its own and leaves the warehouse as it found it, so that tests need no
order and a warehouse may be used again. No test is ever skipped: without a server all of them fail.
"""

import uuid

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog


def pytest_addoption(parser):
    parser.addoption("--uri", required=True, help="base URI of the catalog, without /v1")
    parser.addoption("--warehouse", required=True, help="name of a warehouse that these tests may write to")


@pytest.fixture(scope="session")
def connect(pytestconfig):
    """Opens catalogs. Each call is a client of its own, with its own HTTP session.

    RestCatalog is made directly, and not by load_catalog, so that no configuration file of whoever
    runs the tests takes part.
    """
    opened = []
    under_test = pytestconfig.getoption("warehouse")

    def connect(warehouse=under_test, **properties):
        if warehouse is not None:
            properties["warehouse"] = warehouse
        opened.append(RestCatalog("landfast", uri=pytestconfig.getoption("uri"), **properties))
        return opened[-1]

    yield connect
    for catalog in opened:
        catalog.close()


@pytest.fixture(scope="session")
def catalog(connect):
    return connect()


@pytest.fixture
def namespace(catalog):
    """A fresh namespace. What a test leaves in it is dropped, which is itself one more check."""
    name = (f"test_{uuid.uuid4().hex[:12]}",)
    catalog.create_namespace(name)
    yield name
    drop_namespace(catalog, name)
    assert not catalog.namespace_exists(name)


def drop_namespace(catalog, name):
    for child in catalog.list_namespaces(name):
        drop_namespace(catalog, child)
    for table in catalog.list_tables(name):
        catalog.drop_table(table)
    catalog.drop_namespace(name)


@pytest.fixture
def people():
    """Three rows. The columns are nullable, as Arrow's are by default."""
    return pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["ann", "bob", "cyd"]})


def ids(table, **scan):
    """The ids that a scan of the table returns, sorted: a scan promises no order."""
    return sorted(table.scan(**scan).to_arrow()["id"].to_pylist())
