"""What becomes of the files of a table that is dropped.

Spark deletes the files of a purged table itself, with the catalog's FileIO, and asks the server only to
forget the table. Other engines ask the server to purge, as the Java catalog does here.
"""

import pytest
from conftest import Files, plain, refused


@pytest.fixture
def t(lake):
    """A table with everything that a purge must find: files of several snapshots, deletes, statistics."""
    table = lake.create(**{"write.delete.mode": "merge-on-read"})
    lake.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, string(id) FROM range(4)")
    lake.sql(f"DELETE FROM {table} WHERE id = 1")
    lake.call("compute_table_stats", f"table => '{table}'")
    lake.sql(f"INSERT OVERWRITE {table} VALUES (9, 'nine')")
    return table


@pytest.mark.s3
def test_drop_leaves_the_files(lake, t):
    files = Files(lake, t)
    before = files.list()
    lake.sql(f"DROP TABLE {t}")
    assert files.list() == before


@pytest.mark.s3
def test_purge_by_spark(lake, t):
    files = Files(lake, t)
    assert len(files.list()) > 10
    lake.sql(f"DROP TABLE {t} PURGE")
    assert files.list() == set()


@pytest.mark.s3
def test_purge_by_the_server(lake, t):
    files = Files(lake, t)
    assert len(files.list()) > 10
    assert lake.java_catalog().dropTable(lake.java_name("t"), True)
    assert files.wait_until_gone() == set()
    with refused("cannot be found"):
        lake.sql(f"SELECT * FROM {t}")


def test_purge_leaves_what_is_not_the_tables_own(lake, source):
    t = f"{lake.prefix}.t"
    lake.call("snapshot", f"source_table => '{source}'", f"table => '{t}'")
    lake.sql(f"INSERT INTO {t} VALUES (9, 'nine')")
    files = Files(lake, t)
    with refused("GC is disabled"):
        lake.sql(f"DROP TABLE {t} PURGE")
    # Whoever allows deletion still deletes only what lies below the snapshot's own location.
    lake.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('gc.enabled' = 'true')")
    assert lake.java_catalog().dropTable(lake.java_name("t"), True)
    assert files.wait_until_gone() == set()
    assert lake.column(f"SELECT id FROM {source} ORDER BY id") == [0, 1, 2]


def test_purge_without_garbage_collection_keeps_the_data(lake, t):
    lake.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('gc.enabled' = 'false')")
    files = Files(lake, t)
    data = {plain(path) for path in lake.column(f"SELECT file_path FROM {t}.all_data_files")}
    assert lake.java_catalog().dropTable(lake.java_name("t"), True)
    assert data <= files.list()
