"""Finds where a text is stored: every column of every table, of either database."""

import json
import sqlite3
from typing import Any

import asyncpg

SQLITE = "sqlite:///"


async def places_of(marker: str, database_url: str) -> set[str]:
    """Return the columns, as `table.column`, in which a value contains the text."""
    rows = await rows_in(database_url)
    return {f"{table}.{column}" for table, row in rows for column, value in row.items() if marker in _text(value)}


async def rows_in(database_url: str) -> list[tuple[str, dict[str, Any]]]:
    """Return every row with the name of its table."""
    return _sqlite_rows(database_url) if database_url.startswith(SQLITE) else await _postgres_rows(database_url)


def _text(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    # JSON inside JSON may have its letters escaped
    return text if "\\u" not in text else text + json.dumps(text).encode().decode("unicode_escape", "replace")


def _sqlite_rows(url: str) -> list[tuple[str, dict[str, Any]]]:
    connection = sqlite3.connect(url.removeprefix(SQLITE))
    try:
        tables = [name for [name] in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = []
        for table in tables:
            cursor = connection.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - the database's own name
            names = [column[0] for column in cursor.description]
            found += [(table, dict(zip(names, row, strict=True))) for row in cursor]
        return found
    finally:
        connection.close()


async def _postgres_rows(url: str) -> list[tuple[str, dict[str, Any]]]:
    connection = await asyncpg.connect(url)
    try:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        return [
            (table, dict(row))
            for [table] in tables
            for row in await connection.fetch(f'SELECT * FROM "{table}"')  # noqa: S608 - the database's own name
        ]
    finally:
        await connection.close()
