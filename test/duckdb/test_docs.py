"""Runs what docs/clients/duckdb.md tells people to paste, as it stands there.

Only the address is replaced by that of the server under test, and on S3 the warehouse and the keys.
"""

import os
import pathlib
import re

import pytest
from conftest import open_duckdb
from pyiceberg.catalog.rest import RestCatalog

PAGE = pathlib.Path(__file__).parents[2] / "docs/clients/duckdb.md"
WRITTEN = "http://127.0.0.1:8181"


def run(kind, *replaced):
    """Runs the blocks of one kind, each statement for itself, and returns the rows of the last one that had some."""
    blocks = re.findall(r"^```sql ?(\w*)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert {kind for kind, _ in blocks} == {"install", "", "s3"}
    text = "".join(block for of, block in blocks if of == kind)
    for written, meant in replaced:
        assert written in text
        text = text.replace(written, meant)
    connection, rows = open_duckdb(), []
    for statement in connection.extract_statements(text):
        rows = connection.execute(statement).fetchall() or rows
    connection.close()
    return rows


def assert_empty(pytestconfig, warehouse):
    catalog = RestCatalog("landfast", uri=pytestconfig.getoption("uri"), **({"warehouse": warehouse} if warehouse else {}))
    assert not catalog.namespace_exists("sales"), "the namespace sales is there"
    catalog.close()


def test_page(pytestconfig):
    assert_empty(pytestconfig, None)
    rows = run("", (WRITTEN, pytestconfig.getoption("uri")))
    assert [row[:2] for row in sorted(rows)] == [(1, "ICE"), (3, "sleet"), (4, "hail")]
    assert_empty(pytestconfig, None)


def test_page_on_s3(pytestconfig):
    warehouse = pytestconfig.getoption("s3_warehouse")
    if not warehouse:
        pytest.fail("this test needs --s3-warehouse")
    assert_empty(pytestconfig, warehouse)
    rows = run(
        "s3",
        (WRITTEN, pytestconfig.getoption("uri")),
        ("ATTACH 'lake'", f"ATTACH '{warehouse}'"),
        ("KEY_ID '...'", f"KEY_ID '{os.environ['AWS_ACCESS_KEY_ID']}'"),
        ("SECRET '...'", f"SECRET '{os.environ['AWS_SECRET_ACCESS_KEY']}'"),
    )
    catalog = RestCatalog("landfast", uri=pytestconfig.getoption("uri"), warehouse=warehouse)
    catalog.drop_table("sales.orders")
    catalog.drop_namespace("sales")
    catalog.close()
    assert rows == [(1, "ice")]
