"""Runs docs/migration.md: tables of another catalog are registered here, written to, and taken back.

Only addresses and places are replaced in its blocks. The one for Hive is not run.
"""

import json
import os
import re
import urllib.request
import uuid

import pyarrow as pa
import pytest
from conftest import ROOT, WRITTEN, drop_namespace, ids
from moto import mock_aws
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.sql import SqlCatalog


class Page:
    """The Python blocks of the page by their names, and the variables that they share."""

    def __init__(self, uri, warehouse, replaced=()):
        text = (ROOT / "docs/migration.md").read_text(encoding="utf-8")
        self.blocks = dict(re.findall(r"^```python (\w+)\n(.*?)^```$", text, re.M | re.S))
        assert text.count("```python") == len(self.blocks)
        self.variables = {}
        self._replaced = [(WRITTEN, uri), ('"lake"', f'"{warehouse}"'), ("/v1/lake/", f"/v1/{warehouse}/"), *replaced]

    def run(self, name):
        text = self.blocks[name]
        for written, meant in self._replaced:
            text = text.replace(written, meant)
        exec(compile(text, f"docs/migration.md: {name}", "exec"), self.variables)


@pytest.fixture
def make_warehouse(pytestconfig):
    """Makes warehouses that are to be empty, and are deleted, when the test ends."""
    made = []

    def manage(method, path, body=None):
        request = urllib.request.Request(f"{pytestconfig.getoption('uri')}/management/v1/warehouses{path}", method=method)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        urllib.request.urlopen(request, timeout=30).close()

    def make(location, allowed, **options):
        name = f"migration-{uuid.uuid4().hex[:12]}"
        manage("POST", "", {"name": name, "location": location, "allowed-locations": [allowed], **options})
        made.append(name)
        return name

    yield make
    for name in made:
        manage("DELETE", f"/{name}")


def fill(old):
    """Makes tables of several kinds in the old catalog, and returns what ids are in them."""
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["ann", "bob", "cyd"]})
    for namespace in ("sales", "stock"):
        old.create_namespace(namespace, {"owner": "ann"})
    plain = old.create_table("sales.orders", rows.schema)
    for i in range(4):
        plain.append(pa.table({"id": [i * 10], "name": ["x"]}))
    parted = old.create_table("sales.by_name", rows.schema, properties={"format-version": "1"})
    with parted.update_spec() as update:
        update.add_identity("name")
    parted.append(rows)
    branched = old.create_table("stock.items", rows.schema)
    branched.append(rows)
    branched.manage_snapshots().create_branch(branched.current_snapshot().snapshot_id, "audit").commit()
    branched.append(pa.table({"id": [4], "name": ["dan"]}))
    old.create_table("stock.empty", rows.schema)
    return {
        ("sales", "orders"): [0, 10, 20, 30],
        ("sales", "by_name"): [1, 2, 3],
        ("stock", "items"): [1, 2, 3, 4],
        ("stock", "empty"): [],
    }


def number(location):
    """The version in the name of a metadata file."""
    return int(os.path.basename(location).split("-", 1)[0])


def move_and_return(page, expected):
    """Runs the page once it has connected, with writes between its steps."""
    old, new = page.variables["old"], page.variables["new"]
    before = {name: old.load_table(name) for name in expected}
    page.run("register")
    assert page.variables["moved"] == {name: table.metadata_location for name, table in before.items()}
    page.run("register")  # Again: nothing is registered twice, and nothing is refused.
    page.run("verify")

    assert {name for namespace in new.list_namespaces() for name in new.list_tables(namespace)} == set(expected)
    assert new.load_namespace_properties("sales")["owner"] == "ann"
    assert sorted(new.load_table("stock.items").scan().use_ref("audit").to_arrow()["id"].to_pylist()) == [1, 2, 3]
    for name, had in expected.items():
        then, now = before[name], new.load_table(name)
        assert now.metadata == then.metadata
        assert ids(now) == had
        now.append(pa.table({"id": [99], "name": ["new"]}))
        assert ids(new.load_table(name)) == [*had, 99]
        # Numbers continue, and files come to lie beside the old ones.
        assert number(now.metadata_location) == number(then.metadata_location) + 1
        assert os.path.dirname(now.metadata_location) == os.path.dirname(then.metadata_location)
        assert now.snapshots()[:-1] == then.snapshots()
        # The old catalog knows nothing of it.
        assert ids(old.load_table(name)) == had
    with pytest.raises(AssertionError, match="is another table"):
        page.run("register")

    # There and back, and there again.
    page.run("back")
    for namespace in new.list_namespaces():
        assert new.list_tables(namespace) == []
    for name, had in expected.items():
        assert ids(old.load_table(name)) == [*had, 99]
        assert old.load_table(name).metadata.table_uuid == before[name].metadata.table_uuid
    page.run("register")
    page.run("verify")
    page.run("forget")
    assert not any(old.table_exists(name) for name in expected)
    for name, had in expected.items():
        assert ids(new.load_table(name)) == [*had, 99]
    for namespace in new.list_namespaces():
        drop_namespace(new, namespace)


def test_from_a_sql_catalog(pytestconfig, make_warehouse, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    expected = fill(SqlCatalog("default", uri=f"sqlite:///{lake}/catalog.db", warehouse=f"file://{lake}"))
    warehouse = make_warehouse(f"file://{tmp_path}/root", f"file://{lake}")

    page = Page(pytestconfig.getoption("uri"), warehouse, [("/srv/lake", str(lake))])
    page.run("open")
    page.run("sql")
    move_and_return(page, expected)


def test_table_elsewhere_is_refused(pytestconfig, make_warehouse, tmp_path):
    for name in ("lake", "elsewhere"):
        (tmp_path / name).mkdir()
    old = SqlCatalog("default", uri=f"sqlite:///{tmp_path}/lake/catalog.db", warehouse=f"file://{tmp_path}/elsewhere")
    fill(old)
    warehouse = make_warehouse(f"file://{tmp_path}/root", f"file://{tmp_path}/lake")

    page = Page(pytestconfig.getoption("uri"), warehouse, [("/srv/lake", f"{tmp_path}/lake")])
    page.run("open")
    page.run("sql")
    with pytest.raises(Exception, match="elsewhere"):
        page.run("register")
    new = page.variables["new"]
    for namespace in new.list_namespaces():
        assert new.list_tables(namespace) == []
        new.drop_namespace(namespace)


@pytest.mark.only_s3
def test_from_glue(pytestconfig, make_warehouse, catalog, namespace, people):
    # The bucket and the endpoint of the warehouse on S3. The keys are in the environment.
    probe = catalog.create_table((*namespace, "probe"), people.schema)
    bucket = probe.location().split("/")[2]
    endpoint, region = probe.io.properties["s3.endpoint"], probe.io.properties["s3.region"]
    there = f"s3://{bucket}/glue-{uuid.uuid4().hex[:12]}"
    access = {
        "endpoint": endpoint,
        "region": region,
        "access-key-id": os.environ["AWS_ACCESS_KEY_ID"],
        "secret-access-key": os.environ["AWS_SECRET_ACCESS_KEY"],
    }
    warehouse = make_warehouse(f"{there}/root", f"{there}/lake", s3=access)

    with mock_aws(config={"core": {"mock_credentials": False}}):
        here = {"glue.region": "eu-central-1", "s3.endpoint": endpoint, "s3.region": region}
        expected = fill(GlueCatalog("glue", warehouse=f"{there}/lake", **here))
        page = Page(pytestconfig.getoption("uri"), warehouse, [('{"glue.region": "eu-central-1"}', str(here))])
        page.run("open")
        page.run("glue")
        move_and_return(page, expected)
