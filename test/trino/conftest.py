"""Starts Trino, with the catalogs of docs/clients/trino.md, and connects the tests to it.

    CLASSPATH=... S3_ENDPOINT=... pytest --uri http://127.0.0.1:8181 --warehouse NAME --s3-warehouse NAME \
        --java .../bin/java --home DIR

suite.sh says what the arguments are. Every test has a schema of its own. None is ever skipped: without
Trino, or without Landfast, all of them fail.
"""

import contextlib
import os
import pathlib
import re
import socket
import subprocess
import time
import uuid
import xml.etree.ElementTree

import pytest
import requests
import trino

HERE = pathlib.Path(__file__).parent
PAGE = (HERE.parents[1] / "docs/clients/trino.md").read_text(encoding="utf-8")
WRITTEN = "http://127.0.0.1:8181"
START_MAX = 180  # seconds
STOP_MAX = 30
POLL = 0.1


def pytest_addoption(parser):
    parser.addoption("--uri", required=True, help="base URI of the catalog, without /v1")
    parser.addoption("--warehouse", required=True, help="name of a warehouse of files")
    parser.addoption("--s3-warehouse", required=True, help="name of a warehouse on S3")
    parser.addoption("--java", required=True, help="the java to run Trino with")
    parser.addoption("--home", required=True, type=pathlib.Path, help="a folder for Trino, which must not exist")


def blocks(section, language):
    """The code blocks of one language in a section of the page, which must have some."""
    body = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert body, f"the page has no section {section!r}"
    found = re.findall(rf"^```{language}\n(.*?)^```$", body[1], re.M | re.S)
    assert found, f"{section!r} has no {language} block"
    return found


def properties(section, **replaced):
    """A section's file of properties with the values of this run in it."""
    (text,) = blocks(section, "properties")
    for key, value in replaced.items():
        key = key.replace("__", ".").replace("_", "-")
        text, count = re.subn(rf"^{re.escape(key)}=.*$", f"{key}={value}", text, flags=re.M)
        assert count == 1, f"{section!r} has {count} lines for {key}"
    return text


@pytest.fixture(scope="session")
def server(pytestconfig):
    """The address of a Trino server with four catalogs: landfast, files, nocase and s3."""
    option = pytestconfig.getoption
    home = option("--home")
    uri = {"iceberg__rest_catalog__uri": option("--uri")}
    files = {"iceberg__rest_catalog__warehouse": option("--warehouse")}
    on_s3 = {"iceberg__rest_catalog__warehouse": option("--s3-warehouse")}
    s3 = {"s3__endpoint": os.environ["S3_ENDPOINT"], "s3__region": os.environ["S3_REGION"]}
    catalogs = home / "catalog"
    catalogs.mkdir(parents=True)
    for name, text in {
        "landfast": properties("Quick start", **uri),
        "files": properties("Another warehouse, nested schemas, more procedures", **uri, **files),
        "nocase": properties("Names with capital letters", **uri, **files),
        "s3": properties("Files on S3", **uri, **on_s3, **s3),
    }.items():
        (catalogs / f"{name}.properties").write_text(text)

    # Trino loads a connector from a folder of its jars, and finds its class in a file beside them.
    plugin = home / "plugin" / "iceberg"
    services = plugin / "services" / "META-INF" / "services"
    services.mkdir(parents=True)
    (services / "io.trino.spi.Plugin").write_text("io.trino.plugin.iceberg.IcebergPlugin\n")
    for jar in os.environ["CLASSPATH"].split(":"):
        (plugin / os.path.basename(jar)).symlink_to(jar)

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    pom = xml.etree.ElementTree.parse(HERE / "pom.xml")
    version = pom.findtext(".//m:trino.version", namespaces={"m": "http://maven.apache.org/POM/4.0.0"})
    log = home / "server.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [
                option("--java"),
                # Most of the run is start and first use, where the second compiler costs more than it gains.
                "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "--add-modules=jdk.incubator.vector", "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                f"-Dnode.data-dir={home}", f"-Dconfig={HERE / 'config.properties'}",
                HERE / "TrinoServer.java", version,
            ],
            env={**os.environ, "TRINO_PORT": str(port), "TRINO_HOME": str(home)},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=home,
        )  # fmt: skip
    try:
        await_started(process, port, log)
        yield "127.0.0.1", port
    finally:
        process.terminate()
        try:
            process.wait(STOP_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def await_started(process, port, log):
    deadline = time.monotonic() + START_MAX
    while True:
        with contextlib.suppress(requests.RequestException, KeyError, ValueError):
            if not requests.get(f"http://127.0.0.1:{port}/v1/info", timeout=5).json()["starting"]:
                return
        if process.poll() is not None or time.monotonic() > deadline:
            pytest.exit(f"Trino ended, or was not ready within {START_MAX} s; see {log}", returncode=1)
        time.sleep(POLL)


class Client:
    """One user of Trino, with a catalog and a schema for names that have none."""

    def __init__(self, server, catalog, schema=None, user="ann", **session):
        host, port = server
        self.catalog, self.schema = catalog, schema
        self.connection = trino.dbapi.connect(
            host=host, port=port, user=user, catalog=catalog, schema=schema, session_properties=session
        )

    def __call__(self, sql):
        """Runs one statement and returns its rows, as tuples."""
        cursor = self.connection.cursor()
        cursor.execute(sql)
        return [tuple(row) for row in cursor.fetchall()]

    def ids(self, table):
        """The ids in a table, sorted, because a table promises no order."""
        return [id for (id,) in self(f"SELECT id FROM {table} ORDER BY id")]

    def value(self, sql):
        """The only value of a statement."""
        ((value,),) = self(sql)
        return value

    def location(self, table):
        return self.value(f"""SELECT value FROM "{table}$properties" WHERE key = 'location'""")


@pytest.fixture
def connect(server, request):
    """Connects further users to the schema of a test."""
    opened = []

    def connect(catalog, schema=None, **options):
        client = Client(server, catalog, schema, **options)
        opened.append(client)
        return client

    yield connect
    for client in opened:
        client.connection.close()


@pytest.fixture
def sql(connect, catalog):
    """A client in a fresh schema. That the schema can be dropped with all it holds is one more check."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    connect(catalog)(f"CREATE SCHEMA {name}")
    client = connect(catalog, name)
    yield client
    # Trino drops tables and views with the schema, but no schemas below it.
    for (child,) in client(f"SHOW SCHEMAS LIKE '{name}.%'"):
        client(f'DROP SCHEMA "{child}" CASCADE')
    client(f"DROP SCHEMA {name} CASCADE")
    assert client(f"SHOW SCHEMAS LIKE '{name}'") == []


@pytest.fixture
def catalog():
    """The catalog that `sql` uses. Tests for both kinds of files are marked with BOTH."""
    return "files"


BOTH = pytest.mark.parametrize("catalog", ["files", "s3"])


@pytest.fixture
def rest(pytestconfig):
    """Calls Landfast itself, in the warehouse of files, for what no other client of these tests does."""
    base = f"{pytestconfig.getoption('--uri')}/v1/{pytestconfig.getoption('--warehouse')}"

    def rest(method, path, body=None):
        answer = requests.request(method, base + path, json=body, timeout=30)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    return rest


@contextlib.contextmanager
def refused(error, text):
    """Expects that Trino refuses a statement with an error of that name and a message with that text."""
    with pytest.raises(trino.exceptions.TrinoQueryError) as caught:
        yield
    assert (caught.value.error_name, text in caught.value.message) == (error, True), caught.value
