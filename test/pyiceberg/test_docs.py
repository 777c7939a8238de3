"""Runs what README.md, docs/quickstart.md and docs/clients/pyiceberg.md tell people to paste, as it stands there.

Only the address is replaced by that of the server under test. The pages use the namespace `sales` of
the warehouse that a client gets who names none, so that is what these tests use and clean up.
"""

import re
import subprocess

import pyarrow as pa
import pytest

from conftest import ROOT, WRITTEN, drop_namespace

CLIENT = "docs/clients/pyiceberg.md"


def blocks(page, section, language):
    """The code blocks of one language in a section, which must have some."""
    text = (ROOT / page).read_text(encoding="utf-8")
    body = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert body, f"{page} has no section {section!r}"
    found = re.findall(rf"^```{language}\n(.*?)^```$", body[1], re.M | re.S)
    assert found, f"{page}, {section!r}: no {language} block"
    return found


@pytest.fixture
def main(connect):
    catalog = connect(warehouse=None)
    for missing_before in (True, False):
        if catalog.namespace_exists("sales"):
            assert not missing_before, "the namespace sales is there before the test"
            drop_namespace(catalog, ("sales",))
        if missing_before:
            yield catalog


@pytest.mark.parametrize(
    "page, section",
    [("README.md", "First table"), ("docs/quickstart.md", "PyIceberg (run by our tests)")],
)
def test_python(page, section, main, pytestconfig, capsys):
    names = {}
    for block in blocks(page, section, "python"):
        assert WRITTEN in block or names, f"{page}: the first block does not connect"
        exec(compile(block.replace(WRITTEN, pytestconfig.getoption("uri")), page, "exec"), names)
    assert "snow" in capsys.readouterr().out
    if "append" in names:
        names["append"](names["table"].name(), pa.table({"id": [3], "item": ["sleet"]}))
    assert main.load_table(names["table"].name()).scan().to_arrow().num_rows == (3 if "append" in names else 2)


def page(kind, *replaced):
    """The Python blocks of one kind of docs/clients/pyiceberg.md, as one program."""
    found = re.findall(r"^```python ?(\w*)\n(.*?)^```$", (ROOT / CLIENT).read_text(encoding="utf-8"), re.M | re.S)
    assert {kind for kind, _ in found} == {"", "s3"}
    text = "".join(block for of, block in found if of == kind)
    for written, meant in replaced:
        assert written in text
        text = text.replace(written, meant)
    return compile(text, CLIENT, "exec")


def test_client_page(main, pytestconfig, capsys):
    exec(page("", (WRITTEN, pytestconfig.getoption("uri"))), {})
    assert capsys.readouterr().out.splitlines() == [
        "[{'id': 2, 'item': 'snow'}, {'id': 3, 'item': 'sleet'}]",
        "3",
        "4 3",
        "[('sales', 'articles')]",
    ]
    assert main.list_tables("sales") == []


@pytest.mark.only_s3
def test_client_page_on_s3(catalog, pytestconfig, capsys):
    assert not catalog.namespace_exists("sales"), "the namespace sales is there before the test"
    warehouse = pytestconfig.getoption("s3_warehouse")
    exec(page("s3", (WRITTEN, pytestconfig.getoption("uri")), ('"lake"', f'"{warehouse}"')), {})
    drop_namespace(catalog, ("sales",))
    assert capsys.readouterr().out == "[{'id': 1, 'item': 'ice'}, {'id': 2, 'item': 'snow'}]\n"


def test_shell(pytestconfig):
    for block in blocks("docs/quickstart.md", "The REST API itself", "sh"):
        for line in block.replace(WRITTEN, pytestconfig.getoption("uri")).splitlines():
            done = subprocess.run([*line.split(), "--fail"], capture_output=True, text=True, timeout=30)
            assert done.returncode == 0, f"{line}: {done.stderr}"
            assert done.stdout.startswith("{"), f"{line}: {done.stdout}"
