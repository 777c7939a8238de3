"""Connects the tests to a running Landfast.

    pytest --uri http://127.0.0.1:8181 --warehouse NAME [--s3-warehouse NAME]

Every test gets a namespace of its own and leaves the warehouse as it found it, so that tests need no
order and a warehouse may be used again. Tests marked `s3` run a second time in the warehouse on S3, when
there is one; those marked `only_s3` run there alone. The keys are those in AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY. No test is ever skipped: without a server all of them fail.
"""

import pathlib
import uuid

import pyarrow as pa
import pytest
from pyarrow.fs import FileSelector, FileType
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO

FILE, S3 = "file", "s3"

# The checkout, and the address that its pages give the catalog.
ROOT = pathlib.Path(__file__).parents[2]
WRITTEN = "http://127.0.0.1:8181"


def pytest_addoption(parser):
    parser.addoption("--uri", required=True, help="base URI of the catalog, without /v1")
    parser.addoption("--warehouse", required=True, help="name of a warehouse that these tests may write to")
    parser.addoption("--s3-warehouse", help="name of another one, on S3")


def pytest_generate_tests(metafunc):
    if "place" in metafunc.fixturenames:
        places, marked = [FILE], metafunc.definition.get_closest_marker
        if marked("only_s3"):
            places = [S3]
        elif marked("s3") and metafunc.config.getoption("s3_warehouse"):
            places.append(S3)
        metafunc.parametrize("place", places)


@pytest.fixture
def connect(pytestconfig, place):
    """Opens catalogs. Each call is a client of its own, with its own HTTP session.

    RestCatalog is made directly, and not by load_catalog, so that no configuration file of whoever
    runs the tests takes part.
    """
    opened = []
    under_test = pytestconfig.getoption("warehouse" if place == FILE else "s3_warehouse")
    assert under_test, "this test needs --s3-warehouse"

    def connect(warehouse=under_test, **properties):
        if warehouse is not None:
            properties["warehouse"] = warehouse
        opened.append(RestCatalog("landfast", uri=pytestconfig.getoption("uri"), **properties))
        return opened[-1]

    yield connect
    for catalog in opened:
        catalog.close()


@pytest.fixture
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
    for view in catalog.list_views(name):
        catalog.drop_view(view)
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


def exists(table, location):
    """Whether there is a file, seen through the FileIO that the catalog configured."""
    return table.io.new_input(location).exists()


def files(table):
    """The paths of the files below the table's location, likewise."""
    scheme, netloc, path = PyArrowFileIO.parse_location(table.location())
    selector = FileSelector(path, recursive=True, allow_not_found=True)
    found = table.io.fs_by_scheme(scheme, netloc).get_file_info(selector)
    return sorted(info.path for info in found if info.type == FileType.File)


def write_file(table, location):
    """Writes some bytes, and returns the location."""
    with table.io.new_output(location).create() as stream:
        stream.write(b"something")
    return location
