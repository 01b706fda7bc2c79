"""The named statements: the same ones for both databases, all described, all executed."""

import math
import re
from collections.abc import Sequence
from typing import Any

import pytest

from genlock.stores.batch import Params
from genlock.stores.database import SqlDatabase
from genlock.stores.postgres import PostgresStore
from genlock.stores.queries import array, load, positional, scripts, statements
from genlock.stores.rows import Row
from tests.stores.builders import ManualClock
from tests.stores.every_method.everything import SQLITE_ONLY, use_everything

DIALECTS = ("sqlite", "postgres")
PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
ITEM_FIELD = re.compile(r"value ->> '([a-z_]+)'")


def parameters(text: str) -> set[str]:
    """The names a statement needs. A batch on SQLite is one JSON array, whose fields are the names."""
    names = set(PARAMETER.findall(text))
    return (names - {"items"}) | set(ITEM_FIELD.findall(text)) if "items" in names else names


def test_both_databases_have_the_same_statements() -> None:
    sqlite, postgres = (load(dialect) for dialect in DIALECTS)

    assert sqlite.keys() - SQLITE_ONLY == postgres.keys()
    assert sqlite.keys() >= SQLITE_ONLY
    assert len(postgres) > 40


def test_both_databases_need_the_same_parameters() -> None:
    sqlite, postgres = ({name: parameters(query.text) for name, query in load(dialect).items()} for dialect in DIALECTS)

    # Only PostgreSQL needs the position of an item in its batch, as on SQLite items run one by one, and from when on
    # a claim reads, as on SQLite no entries of ended rows are in the way.
    own = {"ord", "due_since", "full"}
    wrong = [f"{name}: {sqlite[name] ^ needed}" for name, needed in postgres.items() if sqlite[name] != needed - own]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_statement_has_a_description(dialect: str) -> None:
    for query in load(dialect).values():
        assert query.description[:1].isupper(), query.name
        assert query.description.endswith("."), query.name
        assert query.text.endswith(";"), query.name
        assert not query.text.startswith("--"), query.name


def test_no_statement_relies_on_the_order_of_texts() -> None:
    """PostgreSQL orders texts by the language of the server: ';' may come before ':'."""
    wrong = [
        name for name, query in load("postgres").items() if re.search(r"[^-<>=]\s[<>]=?\s*'[a-z_]+[:;]'", query.text)
    ]
    assert not wrong


def test_both_databases_describe_the_rules_alike() -> None:
    """A rule's description is what `doctor` shows."""
    sqlite, postgres = (load(dialect) for dialect in DIALECTS)

    for name in postgres:
        if name.startswith(("check_", "settled_")):
            assert sqlite[name].description == postgres[name].description


def test_statement_names_are_unique() -> None:
    for dialect in DIALECTS:
        names = re.findall(r"^-- name: (\w+)$", "\n".join(scripts(dialect)), re.MULTILINE)
        assert len(names) == len(set(names)) == len(load(dialect))


def test_a_parameter_used_twice_has_one_place_and_casts_are_left_alone() -> None:
    text, names = positional("SELECT :b::text, :a, x::int, :b WHERE t = :now;")

    assert names == ("b", "a", "now")
    assert text == "SELECT $1::text, $2, x::int, $1 WHERE t = coalesce($3::timestamptz, now())"


def test_the_columns_of_a_batch_come_as_text() -> None:
    text, names = positional("SELECT * FROM unnest(:a::bigint[], :b::text[]) WHERE x = :c::text")

    assert names == ("a", "b", "c")
    assert text == "SELECT * FROM unnest($1::text::bigint[], $2::text::text[]) WHERE x = $3::text"


@pytest.mark.parametrize(
    "values",
    [
        ["a", 'quo"te', "back\\slash", "com,ma {brace}", "", "NULL", "line\nbreak", "кот"],
        ["a", None, 'quo"te', "NULL"],
        [None, None],
        [1, -2, 2**62],
        [1, None],
        [1.5, None, math.inf],
        [1.5, -0.0, math.inf],
        [True, False, None],
        [True, False],
        [b"", b'\x00\xff\\"', None],
    ],
)
async def test_postgres_reads_a_column_as_it_was_written(postgres: PostgresStore, values: list[Any]) -> None:
    kind = {str: "text", int: "bigint", float: "float8", bool: "boolean", bytes: "bytea"}
    known = next((kind[type(value)] for value in values if value is not None), "text")

    assert await postgres.session.pool.fetchval(f"SELECT $1::text::{known}[]", array(values)) == values


def test_a_column_with_a_text_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        array(["good", "nu\0l"])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_parameter_is_inside_a_literal(dialect: str) -> None:
    """`'$2 minutes'` is text, not a parameter."""
    for query in load(dialect).values():
        code = re.sub(r"--.*", "", query.text)
        literals = re.findall(r"'[^']*'", code)
        assert [literal for literal in literals if PARAMETER.search(literal)] == [], query.name


def test_a_script_is_split_where_sqlite_would() -> None:
    script = "INSERT INTO t VALUES (';'); -- not; here\nSELECT 1;\n\nSELECT 2;"

    assert [statement.splitlines()[-1] for statement in statements(script)] == [
        "INSERT INTO t VALUES (';');",
        "SELECT 1;",
        "SELECT 2;",
    ]


async def test_every_statement_runs(store: SqlDatabase, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that is new and not yet in `use_everything` fails here."""
    executed = set(SQLITE_ONLY)
    one, many = store.session.one, store.session.many

    async def seen_one(name: str, /, **params: Any) -> list[Row]:
        executed.add(name)
        return await one(name, **params)

    async def seen_many(name: str, shared: Params, items: Sequence[Params]) -> list[Row]:
        executed.add(name)
        return await many(name, shared, items)

    monkeypatch.setattr(store.session, "one", seen_one)
    monkeypatch.setattr(store.session, "many", seen_many)

    await use_everything(store, clock)

    assert store.session.queries.keys() - executed == set()
