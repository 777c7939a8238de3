"""Points PyIceberg's own integration tests at a running Landfast. A plugin for pytest.

    pytest -p landfast --landfast URI --landfast-warehouse NAME --run-min N -m integration tests/integration

The tests stay as PyIceberg publishes them. They know the address of a catalog that a Docker Compose file
of theirs starts, so that address is replaced when a test connects. Which tests do not run, and why, is in
not_run.txt beside this file; every line of it must name a test.
"""

import pathlib
import re
import sys
import types

import pytest
from pyiceberg.catalog.rest import RestCatalog

# What the tests ask of a catalog before they try it, as far as the default is not what Landfast can do.
CAPABILITIES = {"supports_slash_in_identifier": "true"}

# Tests of the catalogs that PyIceberg brings itself, and of that which only an environment variable names.
OTHER_CATALOGS = ("memory_catalog", "sqlite_catalog_memory", "sqlite_catalog_file", "hive", "rest_test_catalog")

# What the modules import of Spark, for annotations. No test that uses it runs.
SPARK = {"pyspark": [], "pyspark.sql": ["SparkSession", "DataFrame"], "pyspark.sql.utils": ["AnalysisException"]}


def pytest_addoption(parser):
    parser.addoption("--landfast", required=True, help="base URI of the catalog, without /v1")
    parser.addoption("--landfast-warehouse", required=True, help="name of a warehouse that the tests may write to")
    parser.addoption("--run-min", type=int, required=True, help="fail when fewer tests than that would run")


def pytest_configure(config):
    properties = {"uri": config.getoption("landfast"), "warehouse": config.getoption("landfast_warehouse")} | CAPABILITIES
    connect = RestCatalog.__init__

    def connect_to_landfast(self, name, **written):
        # The keys are in the environment, and the endpoint is what the catalog says.
        kept = {key: value for key, value in written.items() if not key.startswith("s3.")}
        connect(self, name, **kept | properties)

    RestCatalog.__init__ = connect_to_landfast

    for module, names in SPARK.items():
        sys.modules[module] = types.ModuleType(module)
        vars(sys.modules[module]).update(dict.fromkeys(names, object))


def not_run():
    """What the lines say: `fixture` or `test`, which, and the reason."""
    for line in (pathlib.Path(__file__).parent / "not_run.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            kind, pattern, reason = re.fullmatch(r"(fixture|test) (\S+): (.+)", line).groups()
            yield kind, pattern, reason


def pytest_collection_modifyitems(config, items):
    others = [item for item in items if any(name in item.nodeid for name in OTHER_CATALOGS)]
    items[:] = [item for item in items if item not in others]
    config.hook.pytest_deselected(items=others)

    for kind, pattern, reason in not_run():
        if kind == "fixture":
            named = [item for item in items if pattern in item.fixturenames]
        else:
            named = [item for item in items if re.search(pattern, item.nodeid)]
        if not named:
            raise pytest.UsageError(f"not_run.txt names no test with: {kind} {pattern}")
        for item in named:
            item.add_marker(pytest.mark.skip(reason=reason))

    run = sum(item.get_closest_marker("skip") is None for item in items)
    if run < config.getoption("run_min"):
        raise pytest.UsageError(f"only {run} tests would run, expected at least {config.getoption('run_min')}")


@pytest.fixture(scope="session", autouse=True)
def default_namespace():
    """The namespace that the tests expect to be there."""
    catalog = RestCatalog("landfast")
    catalog.create_namespace_if_not_exists("default")
    catalog.close()
