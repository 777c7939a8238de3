"""Runs what README.md and docs/quickstart.md tell people to paste, as it stands there.

Only the address is replaced by that of the server under test. The pages use the namespace `sales` of
the warehouse that a client gets who names none, so that is what these tests use and clean up.
"""

import pathlib
import re
import subprocess

import pyarrow as pa
import pytest

from conftest import drop_namespace

ROOT = pathlib.Path(__file__).parents[2]
WRITTEN = "http://127.0.0.1:8181"


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


def test_shell(pytestconfig):
    for block in blocks("docs/quickstart.md", "The REST API itself", "sh"):
        for line in block.replace(WRITTEN, pytestconfig.getoption("uri")).splitlines():
            done = subprocess.run([*line.split(), "--fail"], capture_output=True, text=True, timeout=30)
            assert done.returncode == 0, f"{line}: {done.stderr}"
            assert done.stdout.startswith("{"), f"{line}: {done.stdout}"
