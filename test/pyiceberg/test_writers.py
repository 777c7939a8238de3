"""Writers that meet on one table. Whatever they do, no acknowledged row is lost and none is doubled."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pyarrow as pa
import pytest
from conftest import ids
from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
from pyiceberg.types import StringType

pytestmark = pytest.mark.s3

# PyIceberg commits again by itself after a conflict. These properties say how often and how fast.
NO_RETRY = {"commit.retry.num-retries": "0"}
EAGER_RETRY = {
    "commit.retry.num-retries": "100",
    "commit.retry.min-wait-ms": "5",
    "commit.retry.max-wait-ms": "50",
    "commit.retry.total-timeout-ms": "120000",
}

WAIT_MAX = 120  # seconds for all of a test's threads


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


def test_stale_append_is_refused_and_retried(catalog, connect, namespace, people):
    name = (*namespace, "table")
    first = catalog.create_table(name, people.schema, properties=NO_RETRY)
    second = connect().load_table(name)
    first.append(pa.table({"id": [1], "name": ["first"]}))

    row = pa.table({"id": [2], "name": ["second"]})
    with pytest.raises(CommitFailedException, match="Requirement failed: branch main"):
        second.append(row)
    # Refused is refused: nothing of it is visible.
    assert ids(catalog.load_table(name)) == [1]

    second.refresh()
    second.append(row)
    assert ids(catalog.load_table(name)) == [1, 2]
    assert len(catalog.load_table(name).metadata.snapshots) == 2


def test_stale_schema_change_is_refused(catalog, connect, namespace, people):
    name = (*namespace, "table")
    first = catalog.create_table(name, people.schema)
    second = connect().load_table(name)
    with first.update_schema() as update:
        update.add_column("one", StringType())

    with pytest.raises(CommitFailedException, match="Requirement failed: current schema changed"):
        with second.update_schema() as update:
            update.add_column("two", StringType())
    assert catalog.load_table(name).schema().column_names == ["id", "name", "one"]


def test_writer_of_a_replaced_table_is_refused(catalog, connect, namespace, people):
    # Between load and commit the table is dropped, and another takes its name.
    name = (*namespace, "table")
    stale = catalog.create_table(name, people.schema)
    connect().drop_table(name)
    connect().create_table(name, people.schema)
    with pytest.raises(CommitFailedException, match="Requirement failed: UUID does not match"):
        with stale.transaction() as transaction:
            transaction.set_properties({"owner": "ann"})
    assert "owner" not in catalog.load_table(name).properties


def test_unrelated_changes_do_not_conflict(catalog, connect, namespace, people):
    name = (*namespace, "table")
    first = catalog.create_table(name, people.schema, properties=NO_RETRY)
    second = connect().load_table(name)
    first.append(people)
    with second.transaction() as transaction:
        transaction.set_properties({"owner": "ann"})
    loaded = catalog.load_table(name)
    assert ids(loaded) == [1, 2, 3]
    assert loaded.properties["owner"] == "ann"


def test_concurrent_appends_all_land_once(catalog, connect, namespace, people):
    writers, appends = 4, 6
    name = (*namespace, "table")
    catalog.create_table(name, people.schema, properties=EAGER_RETRY)

    def writer(number):
        def write():
            table = connect().load_table(name)
            for i in range(appends):
                table.append(pa.table({"id": [number * appends + i], "name": [f"writer {number}"]}))

        return write

    assert together([writer(number) for number in range(writers)]) == [None] * writers

    loaded = catalog.load_table(name)
    assert ids(loaded) == list(range(writers * appends))
    snapshots = loaded.metadata.snapshots
    assert len(snapshots) == writers * appends
    # The snapshots form one line: each is the parent of the next.
    assert [snapshot.parent_snapshot_id for snapshot in snapshots[1:]] == [
        snapshot.snapshot_id for snapshot in snapshots[:-1]
    ]
    assert [snapshot.sequence_number for snapshot in snapshots] == list(range(1, writers * appends + 1))


def test_of_concurrent_appends_to_one_base_one_lands(catalog, connect, namespace, people):
    writers = 4
    name = (*namespace, "table")
    catalog.create_table(name, people.schema, properties=NO_RETRY)
    tables = [connect().load_table(name) for _ in range(writers)]

    def append(number):
        return lambda: tables[number].append(pa.table({"id": [number], "name": ["x"]}))

    outcomes = together([append(number) for number in range(writers)])
    landed = [number for number, outcome in enumerate(outcomes) if outcome is None]
    assert len(landed) == 1
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [CommitFailedException] * (writers - 1)
    assert ids(catalog.load_table(name)) == landed


def test_of_concurrent_creates_one_lands(connect, namespace, people):
    writers = 4
    catalogs = [connect() for _ in range(writers)]
    name = (*namespace, "table")

    def create(catalog):
        return lambda: catalog.create_table(name, people.schema).metadata.table_uuid

    outcomes = together([create(catalog) for catalog in catalogs])
    refused = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert [type(outcome) for outcome in refused] == [TableAlreadyExistsError] * (writers - 1)
    (created,) = (outcome for outcome in outcomes if not isinstance(outcome, Exception))
    assert catalogs[0].load_table(name).metadata.table_uuid == created


def test_writers_of_different_tables_do_not_conflict(catalog, connect, namespace, people):
    writers = 4
    for number in range(writers):
        catalog.create_table((*namespace, f"table{number}"), people.schema, properties=NO_RETRY)

    def writer(number):
        def write():
            table = connect().load_table((*namespace, f"table{number}"))
            for _ in range(3):
                table.append(people)

        return write

    assert together([writer(number) for number in range(writers)]) == [None] * writers
    for number in range(writers):
        assert len(ids(catalog.load_table((*namespace, f"table{number}")))) == 9
