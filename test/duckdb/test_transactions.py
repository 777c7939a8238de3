"""Transactions, which DuckDB sends to transactions/commit, of one table and of several."""

import duckdb
import pyarrow as pa
import pytest
from conftest import FILE
from pyiceberg.exceptions import CommitFailedException

pytestmark = pytest.mark.s3


@pytest.fixture
def tables(duck):
    for name in ("a", "b"):
        duck.sql(f"CREATE TABLE {name} (id bigint)")
        duck.sql(f"INSERT INTO {name} VALUES (0)")


def read(catalog, namespace, name):
    return sorted(catalog.load_table((namespace, name)).scan().to_arrow()["id"].to_pylist())


def test_commit_of_two_tables(duck, ducks, tables, catalog, namespace):
    other = ducks()
    duck.sql("CALL enable_logging('HTTP')")
    duck.sql("BEGIN")
    duck.sql("INSERT INTO a VALUES (1)")
    duck.sql("UPDATE b SET id = 10")
    duck.sql("INSERT INTO b SELECT id + 100 FROM a")
    # Its own changes are seen within, and by nobody else.
    assert (duck.ids("a"), duck.ids("b")) == ([0, 1], [10, 100, 101])
    assert (other.ids("a"), other.ids("b")) == ([0], [0])
    assert duck.posted() == []
    duck.sql("COMMIT")

    assert duck.posted() == ["transactions/commit"]
    assert (other.ids("a"), other.ids("b")) == ([0, 1], [10, 100, 101])
    assert (read(catalog, namespace, "a"), read(catalog, namespace, "b")) == ([0, 1], [10, 100, 101])


def test_rollback(duck, tables, catalog, namespace):
    duck.sql("BEGIN")
    duck.sql("INSERT INTO a VALUES (1)")
    duck.sql("DELETE FROM b")
    duck.sql("ALTER TABLE b ADD COLUMN extra varchar")
    duck.sql("ROLLBACK")
    assert (duck.ids("a"), duck.ids("b")) == ([0], [0])
    assert catalog.load_table((namespace, "b")).schema().column_names == ["id"]
    assert len(catalog.load_table((namespace, "a")).metadata.snapshots) == 1


def test_conflict_on_one_table_stops_all(duck, tables, catalog, namespace):
    duck.sql("BEGIN")
    duck.sql("INSERT INTO a VALUES (1)")
    duck.sql("DELETE FROM b")
    catalog.load_table((namespace, "b")).append(pa.table({"id": [2]}))
    with pytest.raises(duckdb.TransactionException, match="Requirement failed: branch main"):
        duck.sql("COMMIT")

    # All or nothing: nothing.
    assert read(catalog, namespace, "a") == [0]
    assert read(catalog, namespace, "b") == [0, 2]
    assert len(catalog.load_table((namespace, "a")).metadata.snapshots) == 1
    # The same again succeeds.
    duck.sql("BEGIN")
    duck.sql("INSERT INTO a VALUES (1)")
    duck.sql("DELETE FROM b")
    duck.sql("COMMIT")
    assert (read(catalog, namespace, "a"), read(catalog, namespace, "b")) == ([0, 1], [])


def test_dropped_table_stops_all(duck, tables, catalog, namespace):
    duck.sql("BEGIN")
    duck.sql("INSERT INTO a VALUES (1)")
    duck.sql("INSERT INTO b VALUES (1)")
    catalog.drop_table((namespace, "b"))
    with pytest.raises(duckdb.TransactionException, match="Table does not exist"):
        duck.sql("COMMIT")
    assert read(catalog, namespace, "a") == [0]


def test_first_of_two_transactions_wins(duck, ducks, tables, catalog, namespace):
    other = ducks()
    for one in (duck, other):
        one.sql("BEGIN")
        one.sql("INSERT INTO a VALUES (1)")
        one.sql("INSERT INTO b VALUES (1)")
    other.sql("COMMIT")
    with pytest.raises(duckdb.TransactionException, match="Requirement failed: branch main"):
        duck.sql("COMMIT")
    assert (read(catalog, namespace, "a"), read(catalog, namespace, "b")) == ([0, 1], [0, 1])


def test_writer_beside_a_transaction_is_refused(duck, tables, catalog, namespace):
    table = catalog.load_table((namespace, "a"))
    with table.transaction() as transaction:
        transaction.set_properties({"commit.retry.num-retries": "0"})
    duck.sql("BEGIN")
    duck.sql("INSERT INTO a VALUES (1)")
    duck.sql("INSERT INTO b VALUES (1)")
    duck.sql("COMMIT")
    with pytest.raises(CommitFailedException, match="Requirement failed: branch main"):
        table.append(pa.table({"id": [2]}))
    assert read(catalog, namespace, "a") == [0, 1]


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_table_made_in_a_transaction(duck, tables, catalog, namespace, place, end):
    duck.sql("BEGIN")
    duck.sql("CREATE TABLE made (id bigint)")
    duck.sql("INSERT INTO made VALUES (1)")
    duck.sql("INSERT INTO a VALUES (1)")
    # On files the tests attach so that tables are not staged: they are made at once.
    assert catalog.table_exists((namespace, "made")) == (place == FILE)
    duck.sql(end)
    if end == "COMMIT":
        assert (read(catalog, namespace, "made"), read(catalog, namespace, "a")) == ([1], [0, 1])
    else:
        assert read(catalog, namespace, "a") == [0]
        assert catalog.table_exists((namespace, "made")) == (place == FILE)
