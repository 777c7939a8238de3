"""Runs the quick start of docs/clients/trino.md. The other sections' properties are the catalogs of all tests."""

import re

from conftest import blocks


def test_quick_start(connect):
    run = connect("landfast")
    (block,) = blocks("Quick start", "sql")
    assert run("SHOW SCHEMAS LIKE 'winter'") == [], "the schema is there before the test"
    try:
        for statement in re.split(r";\s*(?:\n|\Z)", block):
            if statement.strip():
                answer = run(statement)
        (shown,) = blocks("Quick start", "text")
        assert [[str(value) for value in row] for row in answer] == [
            [cell.strip() for cell in line.split("|")] for line in shown.splitlines()[2:]
        ]
    finally:
        run("DROP SCHEMA IF EXISTS winter CASCADE")
    assert run("SHOW SCHEMAS LIKE 'winter'") == []
