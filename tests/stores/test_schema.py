"""`schema.sql` is what all migrations together make."""

import re
import sqlite3
from collections import Counter
from importlib.resources import files

import asyncpg

from genlock.sandbox.postgres import Postgres
from genlock.stores.migrate import shipped
from genlock.stores.postgres_migrate import migrate

Catalog = dict[str, list[tuple[object, ...]]]
POSTGRES_CATALOG = {
    "columns": """
        SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity::text,
            pg_get_expr(d.adbin, d.adrelid)
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped""",
    "constraints": """
        SELECT c.relname, o.conname, pg_get_constraintdef(o.oid), o.convalidated
        FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid WHERE c.relnamespace = 'public'::regnamespace""",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "options": """
        SELECT relname, relkind::text, reloptions::text FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'm', 'S')""",
    "functions": "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    "triggers": "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
}


def schema(dialect: str) -> str:
    return (files("genlock.stores") / "sql" / dialect / "schema.sql").read_text(encoding="utf-8")


async def postgres_catalog(url: str, *scripts: str) -> Catalog:
    connection = await asyncpg.connect(url)
    for script in scripts:
        await connection.execute(script)
    catalog = {part: [tuple(row) for row in await connection.fetch(query)] for part, query in POSTGRES_CATALOG.items()}
    await connection.close()
    return tidy(catalog)


def sqlite_catalog(*scripts: str) -> Catalog:
    connection = sqlite3.connect(":memory:")
    for script in scripts:
        connection.executescript(script)
    tables = list(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
    catalog: Catalog = {
        "tables": [row[1:] for row in connection.execute("PRAGMA table_list")],
        "indexes": [
            (name, table, sql and " ".join(sql.split()))
            for name, table, sql in connection.execute(
                "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'index'"
            )
        ],
        "others": list(
            connection.execute("SELECT type, name, sql FROM sqlite_master WHERE type IN ('view', 'trigger')")
        ),
        "columns": [(name, *row) for name, _ in tables for row in connection.execute(f"PRAGMA table_xinfo({name})")],
        "foreign keys": [
            (name, *row) for name, _ in tables for row in connection.execute(f"PRAGMA foreign_key_list({name})")
        ],
        "constraints": [(name, *constraint) for name, sql in tables for constraint in constraints(sql)],
    }
    connection.close()
    return tidy(catalog)


def constraints(sql: str) -> list[tuple[str, str]]:
    """The named constraints of a table, which SQLite shows in its text only."""
    found = []
    for match in re.finditer(r"CONSTRAINT (\w+) (CHECK|UNIQUE|FOREIGN KEY|PRIMARY KEY)\s*\(", sql):
        end, depth = match.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(sql[end], 0)
            end += 1
        found.append((match[1], " ".join(sql[match.start() : end].split())))
    return found


def tidy(catalog: Catalog) -> Catalog:
    return {part: sorted(rows, key=str) for part, rows in catalog.items()}


def differences(migrated: Catalog, fresh: Catalog) -> str:
    """Name each row that only one of two schemas has, or has more often."""
    found = []
    for part in sorted(migrated.keys() | fresh.keys()):
        by_migrations, by_schema = (Counter(map(str, catalog.get(part, ()))) for catalog in (migrated, fresh))
        found += [f"{part}: only the migrations make {row}" for row in (by_migrations - by_schema).elements()]
        found += [f"{part}: only schema.sql makes {row}" for row in (by_schema - by_migrations).elements()]
    return "\n".join(found)


async def test_all_migrations_make_the_fresh_schema_on_postgresql(postgres_server: Postgres, postgres_url: str) -> None:
    other_url = postgres_server.create_database()
    fresh = await postgres_catalog(postgres_url, schema("postgres"))
    await migrate(other_url, shipped("postgres"))
    migrated = await postgres_catalog(other_url, "DROP TABLE migrations")
    postgres_server.drop_database(other_url)

    assert len(fresh["columns"]) > 50
    assert len(fresh["constraints"]) > 20
    assert differences(migrated, fresh) == ""


def test_all_migrations_make_the_fresh_schema_on_sqlite() -> None:
    fresh = sqlite_catalog(schema("sqlite"))
    migrated = sqlite_catalog(*(shipped_migration.text for shipped_migration in shipped("sqlite")))

    assert len(fresh["columns"]) > 50
    assert len(fresh["constraints"]) > 15
    assert differences(migrated, fresh) == ""
