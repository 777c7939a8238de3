"""Branches, tags and time travel."""

import pytest
from conftest import refused


@pytest.fixture
def t(lake):
    """A table of two snapshots, of one and of two rows."""
    table = lake.create()
    lake.sql(f"INSERT INTO {table} VALUES (1, 'ann')")
    lake.sql(f"INSERT INTO {table} VALUES (2, 'bob')")
    return table


def ids(lake, table, suffix=""):
    return lake.column(f"SELECT id FROM {table} {suffix} ORDER BY id")


@pytest.mark.s3
def test_branch_and_fast_forward(lake, t):
    first, second = lake.snapshots(t)
    lake.sql(f"ALTER TABLE {t} CREATE BRANCH audit")
    lake.sql(f"INSERT INTO {t}.branch_audit VALUES (3, 'cyd')")
    lake.sql(f"DELETE FROM {t}.branch_audit WHERE id = 1")
    assert ids(lake, t) == [1, 2]
    assert ids(lake, t, "VERSION AS OF 'audit'") == [2, 3]
    assert ids(lake, f"{t}.branch_audit") == [2, 3]

    moved = lake.call("fast_forward", f"table => '{t}'", "branch => 'main'", "to => 'audit'")
    assert moved.previous_ref == second
    assert ids(lake, t) == [2, 3]
    lake.sql(f"ALTER TABLE {t} DROP BRANCH audit")
    assert ids(lake, t) == [2, 3]
    assert lake.column(f"SELECT name FROM {t}.refs") == ["main"]
    # What is not an ancestor cannot be fast-forwarded.
    lake.sql(f"ALTER TABLE {t} CREATE BRANCH old AS OF VERSION {first}")
    lake.sql(f"INSERT INTO {t}.branch_old VALUES (4, 'dan')")
    with refused("is not an ancestor"):
        lake.call("fast_forward", f"table => '{t}'", "branch => 'main'", "to => 'old'")


@pytest.mark.s3
def test_tags_and_time_travel(lake, t):
    first, _ = lake.snapshots(t)
    lake.sql(f"ALTER TABLE {t} CREATE TAG start AS OF VERSION {first} RETAIN 7 DAYS")
    assert ids(lake, t, "VERSION AS OF 'start'") == [1]
    assert ids(lake, f"{t}.tag_start") == [1]
    assert ids(lake, t, f"VERSION AS OF {first}") == [1]
    (at,) = lake.column(f"SELECT string(committed_at) FROM {t}.snapshots WHERE snapshot_id = {first}")
    assert ids(lake, t, f"TIMESTAMP AS OF '{at}'") == [1]
    assert lake.sql(f"SELECT name, type, snapshot_id, max_reference_age_in_ms FROM {t}.refs WHERE name = 'start'") == [
        ("start", "TAG", first, 7 * 24 * 3600 * 1000)
    ]
    with refused("Cannot write to table at a specific snapshot"):
        lake.sql(f"INSERT INTO {t}.tag_start VALUES (9, 'no')")
    lake.sql(f"ALTER TABLE {t} DROP TAG start")
    with refused("Cannot find matching snapshot ID or reference name for version start"):
        ids(lake, t, "VERSION AS OF 'start'")


def test_replace_of_refs(lake, t):
    first, second = lake.snapshots(t)
    lake.sql(
        f"ALTER TABLE {t} CREATE BRANCH b AS OF VERSION {first} "
        "RETAIN 30 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS"
    )
    assert lake.sql(
        f"SELECT max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms FROM {t}.refs WHERE name = 'b'"
    ) == [(30 * 24 * 3600 * 1000, 3, 2 * 24 * 3600 * 1000)]
    with refused("already exists"):
        lake.sql(f"ALTER TABLE {t} CREATE BRANCH b")
    lake.sql(f"ALTER TABLE {t} CREATE BRANCH IF NOT EXISTS b")
    lake.sql(f"ALTER TABLE {t} REPLACE BRANCH b AS OF VERSION {second}")
    lake.sql(f"ALTER TABLE {t} CREATE OR REPLACE TAG v AS OF VERSION {first}")
    lake.sql(f"ALTER TABLE {t} CREATE OR REPLACE TAG v AS OF VERSION {second}")
    assert dict(lake.sql(f"SELECT name, snapshot_id FROM {t}.refs")) == {"main": second, "b": second, "v": second}
    with refused("unknown snapshot"):
        lake.sql(f"ALTER TABLE {t} CREATE TAG w AS OF VERSION 12345")


def test_write_audit_publish(lake, t):
    lake.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    lake.session.conf.set("spark.wap.id", "load-1")
    try:
        lake.sql(f"INSERT INTO {t} VALUES (3, 'cyd')")
    finally:
        lake.session.conf.unset("spark.wap.id")
    assert ids(lake, t) == [1, 2]
    lake.call("publish_changes", f"table => '{t}'", "wap_id => 'load-1'")
    assert ids(lake, t) == [1, 2, 3]


def test_cherry_pick(lake, t):
    lake.sql(f"ALTER TABLE {t} CREATE BRANCH side")
    lake.sql(f"INSERT INTO {t}.branch_side VALUES (3, 'cyd')")
    lake.sql(f"INSERT INTO {t} VALUES (4, 'dan')")
    (picked,) = lake.column(f"SELECT snapshot_id FROM {t}.refs WHERE name = 'side'")
    lake.call("cherrypick_snapshot", f"table => '{t}'", f"snapshot_id => {picked}")
    assert ids(lake, t) == [1, 2, 3, 4]
