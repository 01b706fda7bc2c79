"""The secret of the webhook is derived from the token, so that a copy of the database forges no update."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from genlock.app.clock import SystemClock
from genlock.channels.telegram.update_sources import UpdateSecrets, update_secret
from genlock.log import Silent
from genlock.stores.sqlite import SqliteStore
from tests.databases import new_sqlite

TOKEN = "7123456789:AAF0dQ-x5R9fJ3k1Lm_pQ7rS2tU4vW6xY8z"
STORED = "random-secret-of-an-earlier-version"
KEY = "webhook_secret:7123456789"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(new_sqlite(tmp_path), clock=SystemClock(), observer=Silent())
    yield store
    await store.close()


def contents(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.iterdir()]


async def test_the_secret_depends_on_the_token_alone_and_is_not_stored(store: SqliteStore, tmp_path: Path) -> None:
    hidden: list[str] = []
    secrets = UpdateSecrets(store, TOKEN, hidden.append)
    await secrets.read()
    await secrets.retire_stored()
    assert secrets.derived == update_secret(TOKEN) != update_secret(f"{TOKEN}x")
    assert hidden == [secrets.derived], "the log masks it"
    assert secrets.accepts(secrets.derived)
    assert not any(secrets.accepts(wrong) for wrong in ("", "x", "é", "№", secrets.derived + "x", TOKEN, STORED))
    assert not any(secrets.derived.encode() in content for content in contents(tmp_path))


async def test_updates_with_the_stored_secret_are_accepted_until_the_webhook_has_the_derived_one(
    store: SqliteStore,
) -> None:
    await store.kv_put(KEY, STORED)
    leader, other = (UpdateSecrets(store, TOKEN, lambda _: None) for _ in range(2))
    await leader.read()
    await other.read()
    assert all(source.accepts(secret) for source in (leader, other) for secret in (STORED, update_secret(TOKEN)))

    await leader.retire_stored()
    await other.read()

    assert await store.kv_get(KEY) is None
    assert not any(source.accepts(STORED) for source in (leader, other))
    assert all(source.accepts(update_secret(TOKEN)) for source in (leader, other))
