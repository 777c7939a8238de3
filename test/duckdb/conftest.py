"""Connects DuckDB to a running Landfast.

    pytest --uri http://127.0.0.1:8181 --warehouse NAME [--s3-warehouse NAME]

Every test gets a namespace of its own and leaves the warehouse as it found it. Tests marked `s3` run a
second time in the warehouse on S3, when there is one; the keys are those in AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY. No test is ever skipped: without a server all of them fail.
"""

import functools
import importlib.resources
import os
import uuid

import duckdb
import pytest
from pyiceberg.catalog.rest import RestCatalog

# In the order in which they must be loaded. They come from PyPI, as their wheels hold them.
EXTENSIONS = ("httpfs", "avro", "iceberg")

FILE, S3 = "file", "s3"


def pytest_addoption(parser):
    parser.addoption("--uri", required=True, help="base URI of the catalog, without /v1")
    parser.addoption("--warehouse", required=True, help="name of a warehouse that these tests may write to")
    parser.addoption("--s3-warehouse", help="name of another one, on S3")


def pytest_generate_tests(metafunc):
    if "place" in metafunc.fixturenames:
        places = [FILE]
        if metafunc.definition.get_closest_marker("s3") and metafunc.config.getoption("s3_warehouse"):
            places.append(S3)
        metafunc.parametrize("place", places)


def extension_file(name):
    packaged = importlib.resources.files(f"duckdb_extension_{name}") / "extensions" / f"v{duckdb.__version__}"
    return packaged / f"{name}.duckdb_extension"


def open_duckdb():
    """A DuckDB of its own, in memory, that downloads nothing."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    for name in EXTENSIONS:
        connection.execute(f"LOAD '{extension_file(name)}'")
    return connection


class Duck:
    """A DuckDB that has the warehouse attached as `lake` and a namespace of it as its default schema.

    Those that nobody uses wait in `idle`, because to open one and load the extensions takes longer than most tests.
    """

    idle = []

    def __init__(self, attach, namespace):
        self.namespace = namespace
        self._connection = self.idle.pop() if self.idle else open_duckdb()
        attach(self._connection)
        self.sql(f'USE lake."{namespace}"')

    def sql(self, statement, *values):
        return self._connection.execute(statement, values).fetchall()

    def ids(self, table):
        """The ids of a table, or of whatever else may stand after FROM, sorted."""
        return [row[0] for row in self.sql(f"SELECT id FROM {table} ORDER BY id")]

    def tables(self):
        return sorted(row[0] for row in self.sql("SHOW TABLES"))

    def snapshots(self, table):
        """Pairs of the id of a snapshot and what made it, oldest first."""
        listed = f'iceberg_snapshots(lake."{self.namespace}"."{table}")'
        return self.sql(f"SELECT snapshot_id, operation FROM {listed} ORDER BY sequence_number")

    def posted(self):
        """The paths that were posted to since HTTP logging was enabled, without host and prefix."""
        logged = self.sql("SELECT request.url FROM duckdb_logs_parsed('HTTP') WHERE request.type = 'POST'")
        return [url.split("/v1/", 1)[1].split("/", 1)[1] for (url,) in logged if "/v1/" in url]

    def close(self):
        """Detaches the warehouse, and with it all that DuckDB knows of its tables."""
        for statement in ("USE memory.main", "DETACH lake", "CALL disable_logging()", "CALL truncate_duckdb_logs()"):
            self.sql(statement)
        self.idle.append(self._connection)


@pytest.fixture
def attach(pytestconfig, place):
    """Attaches the warehouse as `lake` to a connection; `options` are more options of ATTACH."""
    uri = pytestconfig.getoption("uri")
    warehouse = pytestconfig.getoption("warehouse" if place == FILE else "s3_warehouse")

    def attach(connection, options=""):
        if place == S3:
            key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
            connection.execute(f"CREATE OR REPLACE SECRET (TYPE s3, KEY_ID '{key}', SECRET '{secret}')")
        else:
            # In a local file system a staged table has no directory yet, and DuckDB makes none.
            options += ", STAGE_CREATE_TABLES false"
        connection.execute(f"ATTACH '{warehouse}' AS lake (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none'{options})")

    return attach


@pytest.fixture
def catalog(pytestconfig, place):
    """PyIceberg on the same warehouse."""
    warehouse = pytestconfig.getoption("warehouse" if place == FILE else "s3_warehouse")
    catalog = RestCatalog("landfast", uri=pytestconfig.getoption("uri"), warehouse=warehouse)
    yield catalog
    catalog.close()


@pytest.fixture
def namespace(catalog):
    """A fresh namespace. What a test leaves in it is dropped, which is itself one more check."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    catalog.create_namespace(name)
    yield name
    drop_namespace(catalog, (name,))
    assert not catalog.namespace_exists(name)


def drop_namespace(catalog, name):
    for child in catalog.list_namespaces(name):
        drop_namespace(catalog, child)
    for table in catalog.list_tables(name):
        catalog.drop_table(table)
    catalog.drop_namespace(name)


@pytest.fixture
def duck(ducks):
    return ducks()


@pytest.fixture
def ducks(attach, namespace):
    """Opens DuckDBs on the test's namespace, or with an argument on another one.

    Each is another process, as far as the catalog can tell.
    """
    opened = []

    def open_on(name=namespace, options=""):
        opened.append(Duck(functools.partial(attach, options=options), name))
        return opened[-1]

    yield open_on
    for duck in opened:
        duck.close()
