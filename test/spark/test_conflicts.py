"""Sessions that meet on one table. Whatever they do, no acknowledged row is lost and none is doubled."""

import pytest
from conftest import refused, together

# How often and how fast Iceberg commits again after a conflict.
EAGER_RETRY = {
    "commit.retry.num-retries": "100",
    "commit.retry.min-wait-ms": "5",
    "commit.retry.max-wait-ms": "50",
}


def ids(lake, table):
    lake.sql(f"REFRESH TABLE {table}")
    return lake.column(f"SELECT id FROM {table} ORDER BY id")


def line(lake, table):
    """The number of snapshots, which must form one line: each is the parent of the next."""
    lake.sql(f"REFRESH TABLE {table}")
    snapshots = lake.sql(f"SELECT snapshot_id, parent_id FROM {table}.snapshots ORDER BY committed_at")
    parents = dict(snapshots)
    (current,) = lake.column(f"SELECT snapshot_id FROM {table}.refs")
    length = 0
    while current is not None:
        length, current = length + 1, parents.pop(current)
    assert not parents
    return length


@pytest.mark.s3
def test_stale_append_lands_too(lake):
    t = lake.create()
    other = lake.another_session()
    assert ids(other, t) == []  # Now the other session has the empty table in its cache.
    lake.sql(f"INSERT INTO {t} VALUES (1, 'first')")
    other.sql(f"INSERT INTO {t} VALUES (2, 'second')")
    assert ids(lake, t) == [1, 2]
    assert line(lake, t) == 2


@pytest.mark.s3
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_stale_update_is_refused(lake, mode):
    t = lake.create(**{"write.update.mode": mode, "write.merge.mode": mode})
    lake.sql(f"INSERT INTO {t} VALUES (1, 'ann')")
    other = lake.another_session()
    assert ids(other, t) == [1]
    lake.sql(f"UPDATE {t} SET name = 'anna' WHERE id = 1")
    # The rows that it read are gone: to commit would undo the first update.
    with refused("ValidationException"):
        other.sql(
            f"MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'hanna'"
        )
    other.sql(f"REFRESH TABLE {t}")
    other.sql(f"UPDATE {t} SET name = concat(name, '!') WHERE id = 1")
    lake.sql(f"REFRESH TABLE {t}")
    assert lake.sql(f"SELECT * FROM {t}") == [(1, "anna!")]


def test_stale_schema_changes_add_up(lake):
    t = lake.create()
    other = lake.another_session()
    assert ids(other, t) == []
    lake.sql(f"ALTER TABLE {t} ADD COLUMN one string")
    other.sql(f"ALTER TABLE {t} ADD COLUMN two string")
    lake.sql(f"REFRESH TABLE {t}")
    assert lake.session.table(t).columns == ["id", "name", "one", "two"]


def test_writer_of_a_replaced_table_is_refused(lake):
    t = lake.create()
    other = lake.another_session()
    assert ids(other, t) == []
    lake.sql(f"DROP TABLE {t}")
    lake.create()
    with refused("UUID"):
        other.sql(f"INSERT INTO {t} VALUES (1, 'lost')")
    assert ids(lake, t) == []


@pytest.mark.s3
def test_concurrent_appends_all_land_once(lake):
    writers, appends = 3, 4
    t = lake.create(**EAGER_RETRY)

    def writer(number):
        session = lake.another_session()

        def write():
            for i in range(appends):
                session.sql(f"INSERT INTO {t} VALUES ({number * appends + i}, 'writer {number}')")

        return write

    assert together([writer(number) for number in range(writers)]) == [None] * writers
    assert ids(lake, t) == list(range(writers * appends))
    assert line(lake, t) == writers * appends


@pytest.mark.s3
def test_concurrent_updates_are_not_lost(lake):
    writers, updates = 2, 3
    t = lake.create()
    lake.sql(f"INSERT INTO {t} VALUES (0, 'counter')")

    def writer():
        session = lake.another_session()

        def write():
            landed = 0
            for _ in range(updates):
                session.sql(f"REFRESH TABLE {t}")
                try:
                    session.sql(f"UPDATE {t} SET id = id + 1")
                except Exception as error:
                    assert any(name in str(error) for name in ("ValidationException", "CommitFailedException")), error
                else:
                    landed += 1
            return landed

        return write

    landed = together([writer() for _ in range(writers)])
    assert all(isinstance(outcome, int) for outcome in landed), landed
    assert sum(landed) > 0
    assert ids(lake, t) == [sum(landed)]


def test_of_concurrent_creates_one_lands(lake):
    t = f"{lake.prefix}.t"

    def create(number):
        session = lake.another_session()
        return lambda: session.sql(f"CREATE TABLE {t} USING iceberg AS SELECT {number} AS id")

    outcomes = together([create(number) for number in range(3)])
    landed = [number for number, outcome in enumerate(outcomes) if not isinstance(outcome, Exception)]
    assert len(landed) == 1
    assert all("already exists" in str(outcome) for outcome in outcomes if isinstance(outcome, Exception)), outcomes
    assert ids(lake, t) == landed
