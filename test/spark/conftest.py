"""Starts one Spark and connects it to a running Landfast.

    pytest --uri http://127.0.0.1:8181 --warehouse NAME --s3-warehouse NAME [--ivy DIR]

Every test gets a namespace of its own and leaves the warehouse as it found it. Tests marked `s3` run a
second time in the warehouse on S3, whose keys are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; without
one, leave them out by -k 'not s3lake'. No test is ever skipped: without a server all of them fail.
"""

import contextlib
import pathlib
import re
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from pyspark.sql import SparkSession

PACKAGES = (pathlib.Path(__file__).parent / "packages.txt").read_text().split()

# The names that Spark knows the warehouses by: one of files, one on S3, and that of a client who names none.
FILE, S3, MAIN = "lake", "s3lake", "main"

# Two cores, little memory, and nothing that listens beyond the loopback interface. Compilers, in the JVM
# and in Spark, are kept from work that pays only for more rows than these tests have.
SPARK_DEFAULTS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}

# Seconds, for all of a test's threads and for a purge that the server goes on with after its answer.
WAIT_MAX, PURGE_MAX = 120, 30


def pytest_addoption(parser):
    parser.addoption("--uri", required=True, help="base URI of the catalog, without /v1")
    parser.addoption("--warehouse", required=True, help="name of a warehouse that these tests may write to")
    parser.addoption("--s3-warehouse", required=True, help="name of another one, on S3")
    parser.addoption("--ivy", help="folder where Spark keeps the packages that it has fetched")


def pytest_generate_tests(metafunc):
    if "lake" in metafunc.fixturenames:
        on_s3 = metafunc.definition.get_closest_marker("s3") is not None
        metafunc.parametrize("lake", [FILE, S3] if on_s3 else [FILE], indirect=True)


@pytest.fixture(scope="session")
def spark_env(pytestconfig, tmp_path_factory):
    """A folder of configuration that every Spark these tests start reads."""
    folder = tmp_path_factory.mktemp("conf")
    defaults = dict(SPARK_DEFAULTS)
    if ivy := pytestconfig.getoption("ivy"):
        defaults["spark.jars.ivy"] = ivy
    (folder / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in defaults.items()))
    return {"SPARK_CONF_DIR": str(folder), "SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.fixture(scope="session")
def spark(pytestconfig, spark_env, tmp_path_factory):
    warehouses = {MAIN: None, FILE: pytestconfig.getoption("warehouse"), S3: pytestconfig.getoption("s3_warehouse")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in spark_env.items():
            patch.setenv(name, value)
        builder = (
            SparkSession.builder.config("spark.jars.packages", ",".join(PACKAGES))
            .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
            .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("session-catalog")))
        )
        for name, warehouse in warehouses.items():
            catalog = f"spark.sql.catalog.{name}"
            builder = (
                builder.config(catalog, "org.apache.iceberg.spark.SparkCatalog")
                .config(f"{catalog}.type", "rest")
                .config(f"{catalog}.uri", pytestconfig.getoption("uri"))
                # However slow the machine: what a session has not refreshed is stale, not sometimes fresh.
                .config(f"{catalog}.cache.expiration-interval-ms", "-1")
            )
            if warehouse:
                builder = builder.config(f"{catalog}.warehouse", warehouse)
        session = builder.getOrCreate()
    yield session
    session.stop()


class Lake:
    """A namespace in one of the catalogs, as one Spark session sees it."""

    def __init__(self, session, catalog, namespace):
        self.session, self.catalog, self.namespace = session, catalog, namespace
        self.prefix = f"{catalog}.{namespace}"

    def another_session(self):
        """A session with a catalog client, and a cache of tables, of its own."""
        return Lake(self.session.newSession(), self.catalog, self.namespace)

    def sql(self, statement):
        return [tuple(row) for row in self.session.sql(statement).collect()]

    def column(self, statement):
        return [row[0] for row in self.sql(statement)]

    def listed(self, what, namespace=None):
        """The names of the TABLES or VIEWS, without Spark's temporary ones."""
        return sorted(
            name for _, name, temporary in self.sql(f"SHOW {what} IN {namespace or self.prefix}") if not temporary
        )

    def drop(self):
        for name in self.listed("VIEWS"):
            self.sql(f"DROP VIEW {self.prefix}.`{name}`")
        for name in self.listed("TABLES"):
            self.sql(f"DROP TABLE {self.prefix}.`{name}`")
        self.sql(f"DROP NAMESPACE {self.prefix}")
        assert not self.exists()

    def exists(self):
        return self.namespace in self.column(f"SHOW NAMESPACES IN {self.catalog}")

    def call(self, procedure, *arguments):
        """Calls a procedure and returns its first row."""
        return self.session.sql(f"CALL {self.catalog}.system.{procedure}({', '.join(arguments)})").first()

    def create(self, name="t", **properties):
        """Creates a table of id and name, and returns what to call it in a statement."""
        table = f"{self.prefix}.{name}"
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in ({"format-version": 2} | properties).items())
        self.sql(f"CREATE TABLE {table} (id bigint, name string) USING iceberg TBLPROPERTIES ({listed})")
        return table

    def snapshots(self, table):
        """The ids of the snapshots, oldest first."""
        return self.column(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")

    def java_table(self, table):
        return self._jvm.spark.Spark3Util.loadIcebergTable(self.session._jsparkSession, table)

    def java_catalog(self):
        return self._jvm.spark.Spark3Util.loadIcebergCatalog(self.session._jsparkSession, self.catalog)

    def java_name(self, name):
        return self._jvm.catalog.TableIdentifier.parse(f"{self.namespace}.{name}")

    @property
    def _jvm(self):
        return self.session._jvm.org.apache.iceberg


def plain(location):
    """A location without what stands for the same: file:/x, file:///x and /x."""
    return re.sub("^file:/+", "/", location)


class Files:
    """The files of a table, seen through the FileIO that the catalog configured; also once it is dropped."""

    def __init__(self, lake, table):
        self._table = lake.java_table(table)  # Held, because its FileIO is closed with it.
        self.location = self._table.location()

    def list(self):
        return {plain(file.location()) for file in self._table.io().listPrefix(self.location).iterator()}

    def wait_until_gone(self):
        """Returns what a purge has left behind, after some time if that is anything."""
        deadline = time.monotonic() + PURGE_MAX
        while (left := self.list()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def write(self, path):
        stream = self._table.io().newOutputFile(path).create()
        stream.write(b"something")
        stream.close()


@pytest.fixture
def lake(spark, request):
    """A fresh namespace. What a test leaves in it is dropped, which is itself one more check."""
    here = Lake(spark, request.param, f"test_{uuid.uuid4().hex[:12]}")
    here.sql(f"CREATE NAMESPACE {here.prefix}")
    yield here
    here.drop()


@pytest.fixture
def source(spark, tmp_path):
    """A Parquet table in the session catalog, which Iceberg knows nothing of."""
    spark.sql(
        f"CREATE TABLE spark_catalog.default.source (id bigint, name string) USING parquet LOCATION '{tmp_path}/source'"
    )
    spark.sql("INSERT INTO spark_catalog.default.source SELECT /*+ COALESCE(1) */ id, string(id) FROM range(3)")
    yield "spark_catalog.default.source"
    spark.sql("DROP TABLE spark_catalog.default.source")


@contextlib.contextmanager
def refused(*words):
    """Expects a statement to fail, and its message to have the words."""
    with pytest.raises(Exception) as caught:
        yield
    message = str(caught.value)
    assert all(word in message for word in words), message


def together(actions):
    """Runs the actions in one thread each, starting together, and returns what each returned or raised."""
    start = Barrier(len(actions))

    def run(action):
        start.wait(WAIT_MAX)
        try:
            return action()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.result(WAIT_MAX) for future in [pool.submit(run, action) for action in actions]]
