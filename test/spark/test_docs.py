"""Runs docs/clients/spark.md as it stands there.

Only what is of the reader's own is replaced: the address of the server, and on S3 the warehouse and the
keys. The page uses the namespace `shop`, which must not be there before.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import MAIN, PACKAGES, S3, Lake

PAGE = pathlib.Path(__file__).parents[2] / "docs/clients/spark.md"
WRITTEN = "http://127.0.0.1:8181"
RUN_MAX = 240  # seconds for one block


def sections():
    """The code blocks of the page, as (language, text), by section."""
    text = PAGE.read_text(encoding="utf-8")
    parts = re.split(r"^## (.*)\n", "## \n" + text, flags=re.M)[1:]
    return {
        title: re.findall(r"^```(\w+)\n(.*?)^```$", body, re.M | re.S)
        for title, body in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.fixture
def run(pytestconfig, spark_env, tmp_path):
    def run(command, text):
        text = text.replace(WRITTEN, pytestconfig.getoption("uri"))
        done = subprocess.run(
            [*command, text],
            cwd=tmp_path,
            env=os.environ | spark_env,
            capture_output=True,
            text=True,
            timeout=RUN_MAX,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


def sql(run, tmp_path, blocks):
    """Runs a block that ends in spark-sql, and in it the statements of the next, up to the first that fails."""
    (_, shell), (_, statements) = blocks
    (tmp_path / "page.sql").write_text(statements)
    return run(["bash", "-euc"], f"{shell.rstrip()} -f page.sql")


@pytest.fixture
def shop(spark):
    """Says which catalog a page writes to, where its namespace is dropped in the end."""
    used = []

    def shop(catalog):
        namespace = Lake(spark, catalog, "shop")
        assert not namespace.exists(), "the namespace shop is there before the test"
        used.append(namespace)

    yield shop
    for namespace in used:
        namespace.drop()


def test_every_block_is_run():
    found = {title: [language for language, _ in blocks] for title, blocks in sections().items()}
    assert found == {
        "": ["sh"],
        "SQL": ["sh", "sql"],
        "Python": ["python"],
        "On S3": ["sh", "sql"],
        "Worth knowing": [],
    }
    # The packages are those that were fetched for the tests.
    assert set(re.findall(r"org\.apache\.iceberg:[\w.-]+:[\w.]+", PAGE.read_text(encoding="utf-8"))) == set(PACKAGES)


def test_install(run):
    ((_, install),) = sections()[""]
    assert "already satisfied" in run(["bash", "-euc"], install)


def test_sql_and_python(run, tmp_path, shop):
    shop(MAIN)
    page = sections()
    shown = sql(run, tmp_path, page["SQL"])
    assert re.search(r"^1\tICE\t.*\n2\tSNOW\t", shown, re.M), shown
    assert shown.splitlines()[-2:] == ["ICE", "SNOW"]

    ((_, program),) = page["Python"]
    assert "|  2|" in run([sys.executable, "-c"], program)


@pytest.mark.parametrize("catalog", [S3])
def test_s3(run, tmp_path, shop, pytestconfig, catalog):
    shop(catalog)
    (language, shell), statements = sections()["On S3"]
    for written, own in (
        ("export AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=...\n", ""),  # The tests have keys there already.
        ("warehouse=lake", f"warehouse={pytestconfig.getoption('s3_warehouse')}"),
    ):
        assert written in shell
        shell = shell.replace(written, own)
    assert sql(run, tmp_path, [(language, shell), statements]).splitlines()[-1] == "1\tsnow"
