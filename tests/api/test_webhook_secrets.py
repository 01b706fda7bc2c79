"""Secrets of webhooks outlive the bot's token; a secret that no key opens is named, and its events wait."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from genlock.api.webhook_owners import WebhookOwners
from genlock.api.webhook_secret_check import REASON, WebhookSecretCheck
from genlock.api.webhook_secrets import SecretUnreadable, WebhookSecrets
from genlock.domain.events import Event
from genlock.domain.queued_message import QUEUED, QueuedMessage
from genlock.domain.webhook import FAILING_SECONDS_MAX, LOST, NewWebhook, Webhook
from genlock.i18n.translator import package_texts
from genlock.stores.sqlite import SqliteStore
from tests.databases import new_sqlite
from tests.engine.recorder import Recorder
from tests.stores.builders import ManualClock, account_with, ensure_profile

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY, OTHER_KEY = "a" * 32, "b" * 32
TOKEN, NEW_TOKEN = "42:old", "42:new"


def of(*keys: str, token: str = TOKEN) -> WebhookSecrets:
    return WebhookSecrets.of_installation(keys, token)


def webhook(**changes: Any) -> Webhook:
    one = Webhook(
        id=1, account_id=1, public_id="we_1", url="https://example.org", events=frozenset(), description="",
        enabled=True, disabled_reason="", secret_number=1, previous_secret_until=None, created_at=NOW,
    )  # fmt: skip
    return replace(one, **changes)


def test_a_sealed_secret_opens_with_the_key_and_not_without_it() -> None:
    secret, sealed = of(KEY).make("we_1", 1)

    assert of(KEY, token=NEW_TOKEN).current(webhook(secret=sealed)) == secret
    assert of(OTHER_KEY, KEY).current(webhook(secret=sealed)) == secret
    for other in (of(), of(OTHER_KEY)):
        with pytest.raises(SecretUnreadable):
            other.current(webhook(secret=sealed))
    assert secret.hex() not in sealed


def test_a_sealed_secret_opens_only_in_its_own_row_and_as_it_was_written() -> None:
    _, sealed = of(KEY).make("we_1", 1)
    changed = sealed[:-8] + ("A" if sealed[-8] != "A" else "B") + sealed[-7:]

    for wrong in (webhook(secret=sealed, public_id="we_2"), webhook(secret=changed)):
        with pytest.raises(SecretUnreadable):
            of(KEY).current(wrong)


def test_a_row_of_an_earlier_version_keeps_its_secret_when_it_is_sealed() -> None:
    old = webhook(secret_number=3, previous_secret_until=NOW + timedelta(hours=1))
    secrets = of().signing(old, NOW)
    sealed = of(KEY).sealed_anew(old)
    assert sealed is not None
    sealed_row = replace(old, secret=sealed[0], previous_secret=sealed[1])

    assert len(set(secrets)) == 2
    assert of(KEY, token=NEW_TOKEN).signing(sealed_row, NOW) == secrets
    assert of(KEY).sealed_anew(sealed_row) is None
    assert of(KEY).signing(sealed_row, NOW + timedelta(hours=2)) == secrets[:1]


def test_a_rotation_by_an_instance_of_an_earlier_version_is_heeded() -> None:
    _, sealed = of(KEY).make("we_1", 1)
    derived = of().current(webhook(secret_number=2))

    assert of(KEY).current(webhook(secret=sealed, secret_number=2)) == derived


# the check of all endpoints


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(str(new_sqlite(tmp_path)), clock=clock, observer=Recorder())
    yield opened
    await opened.close()


class Check:
    """The check with some keys, and what it told to whom."""

    def __init__(self, store: SqliteStore, *keys: str, token: str = TOKEN) -> None:
        self.recorder = Recorder()
        self.told: list[tuple[int, str]] = []
        owners = WebhookOwners(
            store=store,
            texts=package_texts(),
            observer=self.recorder,
            tell=self._tell,
            send_queued=lambda message: self._tell(message.account_id, message.text),
        )
        self.check = WebhookSecretCheck(
            store=store, secrets=of(*keys, token=token), observer=self.recorder, owners=owners
        )

    async def _tell(self, account_id: int, text: str) -> bool:
        self.told.append((account_id, text))
        return True

    async def round(self) -> int:
        """Run a round; return the lost secrets that the log names."""
        await self.check.round()
        lost = self.recorder.of(Event.WEBHOOK_SECRETS_LOST)
        self.recorder.seen.clear()
        return int(lost[0].facts["endpoints"]) if lost else 0


async def account_in_chat(store: SqliteStore) -> int:
    account_id = await account_with(store)
    await ensure_profile(store, account_id, language="en", name="Ann", username="")
    return account_id


async def add(store: SqliteStore, account_id: int, secrets: WebhookSecrets | None) -> Webhook:
    name = f"we_{os.urandom(4).hex()}"
    sealed = secrets.make(name, 1)[1] if secrets else ""
    new = NewWebhook(account_id=account_id, public_id=name, url="https://example.org", secret=sealed)
    added = await store.add_webhook(new, most=20)
    assert added is not None
    return added


async def test_a_new_token_changes_no_secret_where_a_sealing_key_is_set(store: SqliteStore) -> None:
    account_id = await account_with(store)
    added = [await add(store, account_id, secrets) for secrets in (None, of(), of(KEY))]
    before = [of(KEY).current(stored) for stored in added]

    assert await Check(store, KEY).round() == 0
    assert await Check(store, KEY, token=NEW_TOKEN).round() == 0

    after = [of(KEY, token=NEW_TOKEN).current(stored) for stored in await store.webhooks(account_id)]
    assert after == before


async def test_a_lost_secret_is_named_in_every_round_and_its_owner_is_told_once(store: SqliteStore) -> None:
    account_id = await account_in_chat(store)
    await add(store, account_id, of())
    check = Check(store, token=NEW_TOKEN)

    assert [await check.round(), await check.round()] == [1, 1]
    [(told, text)] = check.told
    assert told == account_id
    assert "example.org" in text
    assert await Check(store, KEY, TOKEN, token=NEW_TOKEN).round() == 0, "the former token is given as a key"
    assert await store.kv_list(LOST) == []
    assert await check.round() == 1, "and now it is sealed with another key"


async def test_an_endpoint_whose_secret_stays_lost_is_disabled_and_a_rotation_helps(
    store: SqliteStore, clock: ManualClock
) -> None:
    account_id = await account_in_chat(store)
    added = await add(store, account_id, of())
    check = Check(store, token=NEW_TOKEN)
    await check.round()
    clock.advance(FAILING_SECONDS_MAX + 1)
    await check.round()
    await check.round()

    assert [REASON in text for _, text in check.told] == [False, True]
    queued = [QueuedMessage.load(entry.key, entry.value) for entry in await store.kv_list(QUEUED)]
    assert [message.text for message in queued] == [check.told[-1][1]], "it is queued in the commit that disables"
    [disabled] = await store.webhooks(account_id)
    assert not disabled.enabled
    assert "make a new one" in disabled.disabled_reason
    secret, sealed = of(token=NEW_TOKEN).make(added.public_id, 2)
    rotated = await store.rotate_webhook_secret(disabled, sealed, 60.0)
    assert rotated is not None
    assert of(token=NEW_TOKEN).signing(rotated, clock.now()) == [secret], "the former one cannot sign"
    assert await check.round() == 0
