"""Updates from the simulated Telegram: none is confirmed before it is stored, none is dropped."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from telegram.error import Conflict

from genlock.app.clock import SystemClock
from genlock.channels.telegram import update_sources
from genlock.channels.telegram.bot_refusals import BotRefusals
from genlock.channels.telegram.caller import Caller, make_bot
from genlock.channels.telegram.rate_limiter import TelegramRateLimiter
from genlock.channels.telegram.update_sources import (
    ALLOWED_UPDATES,
    Poller,
    UpdateSecrets,
    WebhookRegistrar,
    update_secret,
)
from genlock.domain.errors import StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.update import NewUpdate, UpdateState
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from genlock.stores.sqlite import SqliteStore
from tests.changes import Condition
from tests.databases import new_sqlite
from tests.engine.recorder import Recorder

TOKEN = "42:token-of-the-bot"
PATIENCE_SECONDS = 60


class Harness:
    """One or more instances that poll the same Telegram, and a user who writes to it."""

    def __init__(self, telegram: TelegramSimulator, store: SqliteStore, recorder: Recorder) -> None:
        self.telegram = telegram
        self.store = store
        self.recorder = recorder
        self.ann = telegram.add_user("Ann")
        self.stored: list[str] = []
        self.active = "first"
        self.leader_checks = 0
        self.fails = 0
        self.received = 0

    def is_active(self, name: str) -> bool:
        self.leader_checks += 1
        self.recorder.changes.note()
        return self.active == name

    async def receive(self, update: NewUpdate) -> None:
        self.received += 1
        if self.fails:
            self.fails -= 1
            raise StoreUnavailable
        self.stored.append(update.body)
        self.recorder.changes.note()

    def texts(self) -> list[str]:
        return [text for body in self.stored for text in ("one", "two", "three") if text in body]

    @asynccontextmanager
    async def caller(self) -> AsyncIterator[Caller]:
        caller = Caller(
            make_bot(self.telegram.token, self.telegram.url),
            TelegramRateLimiter(self.store, "42"),
            self.recorder,
            BotRefusals(self.store, self.recorder).record,
        )
        try:
            yield caller
        finally:
            await caller.close()

    @asynccontextmanager
    async def polling(self, name: str = "first") -> AsyncIterator[asyncio.Task[None]]:
        async with self.caller() as caller:
            is_active = partial(self.is_active, name)
            poller = Poller(caller, receive=self.receive, is_active=is_active, observer=self.recorder)
            task = asyncio.create_task(poller.run())
            try:
                yield task
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def until(self, condition: Condition) -> None:
        """Wait for an update, an event or a check of the leader."""
        await self.recorder.changes.until(condition, PATIENCE_SECONDS)

    async def until_polled(self) -> None:
        await self.telegram.until(lambda: self.polls() > 0, PATIENCE_SECONDS)

    async def pass_leader_checks(self, count: int) -> None:
        wanted = self.leader_checks + count
        await self.until(lambda: self.leader_checks >= wanted)

    def polls(self) -> int:
        return len(self.telegram.calls("getUpdates"))


@pytest.fixture
async def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    monkeypatch.setattr(update_sources, "LEADER_CHECK_SECONDS", 0.02)
    monkeypatch.setattr(update_sources, "CONFLICT_SECONDS", 0.1)
    recorder = Recorder()
    store = await SqliteStore.open(new_sqlite(tmp_path), clock=SystemClock(), observer=recorder)
    async with running_telegram(speed=20.0) as telegram:
        yield Harness(telegram, store, recorder)
    await store.close()


# polling


async def nothing_new() -> Any:
    """A long poll that no update ends."""
    await asyncio.Event().wait()


async def test_the_leader_fetches_updates_in_order(harness: Harness) -> None:
    async with harness.polling("first"), harness.polling("second"):
        for text in ("one", "two"):
            await harness.ann.say(text)
        await harness.until(lambda: harness.texts() == ["one", "two"])
        # The next request of the leader confirms them; a new leader gets unconfirmed ones again.
        await harness.until(lambda: not harness.telegram.state.updates.webhook_info()["pending_update_count"])
        harness.active = "second"
        await harness.until(lambda: len(harness.recorder.of(Event.POLLING)) == 2)
        await harness.ann.say("three")
        await harness.until(lambda: "three" in harness.texts())
    assert harness.texts() == ["one", "two", "three"]


async def test_a_poll_that_telegram_refuses_the_whole_bot_is_recorded_for_the_alarm(harness: Harness) -> None:
    harness.telegram.faults.switch(Fault.REFUSED, method="getUpdates", text="Bad Request: logged out")
    async with harness.polling():

        async def is_recorded() -> bool:
            return bool((await harness.store.stats())["bot_refused"])

        await harness.until(is_recorded)
    assert (await harness.store.stats())["bot_refused"] == 1


async def test_an_instance_that_is_not_the_leader_does_not_poll(harness: Harness) -> None:
    harness.active = "none"
    async with harness.polling():
        await harness.pass_leader_checks(5)
        assert harness.polls() == 0


async def test_an_update_that_was_not_stored_is_not_confirmed_and_comes_again(harness: Harness) -> None:
    harness.fails = 1
    async with harness.polling():
        await harness.ann.say("one")
        await harness.until(lambda: harness.texts() == ["one"])
    assert harness.received == 2
    assert harness.recorder.of(Event.STAGE_ERROR, step="poll updates")


async def test_a_stored_update_is_confirmed_by_the_next_request(harness: Harness) -> None:
    async with harness.polling():
        await harness.ann.say("one")
        await harness.until(lambda: harness.texts() == ["one"])
        await harness.telegram.until(lambda: not harness.telegram.state.updates.pending, PATIENCE_SECONDS)
    assert harness.received == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [Fault.DROP_BEFORE, Fault.DROP_AFTER, Fault.SERVER_ERROR, Fault.BAD_GATEWAY, Fault.UNDECODABLE]
)
async def test_a_failed_request_is_repeated(harness: Harness, fault: Fault) -> None:
    harness.telegram.faults.switch(fault, method="getUpdates", times=2)
    await harness.ann.say("one")
    async with harness.polling():
        await harness.until(lambda: "one" in harness.texts())
    assert [call.faults for call in harness.telegram.calls("getUpdates")][:3] == [[fault], [fault], []]
    assert harness.received == 1


async def test_an_existing_webhook_is_removed_and_its_pending_updates_are_fetched(harness: Harness) -> None:
    async with harness.caller() as caller:
        await caller.bot.set_webhook("http://127.0.0.1:9/unreachable")
    await harness.ann.say("one")
    async with harness.polling():
        await harness.until(lambda: harness.texts() == ["one"])
    [removed] = harness.telegram.calls("deleteWebhook")
    assert removed.arguments.get("drop_pending_updates") in (None, "false", False)
    assert len(harness.recorder.of(Event.WEBHOOK_REMOVED)) == 1


async def test_a_webhook_that_appears_while_polling_is_removed(harness: Harness) -> None:
    async with harness.polling():
        await harness.until_polled()
        async with harness.caller() as caller:
            await caller.bot.set_webhook("http://127.0.0.1:9/unreachable")
        await harness.ann.say("two")
        await harness.until(lambda: harness.texts() == ["two"])
    assert (harness.received, len(harness.recorder.of(Event.WEBHOOK_REMOVED))) == (1, 1)


async def test_polling_continues_after_a_conflict_with_another_program(harness: Harness) -> None:
    async with harness.polling():
        await harness.until_polled()
        async with harness.caller() as caller:
            with suppress(Conflict):  # Telegram may refuse either of the two requests
                await caller.bot.get_updates(timeout=0)
        await harness.until(lambda: bool(harness.recorder.of(Event.POLL_CONFLICT)))
        await harness.ann.say("one")
        await harness.until(lambda: "one" in harness.texts())
    assert harness.received == 1


async def test_an_instance_that_loses_the_leadership_stops_polling(harness: Harness) -> None:
    async with harness.polling():
        await harness.until_polled()
        harness.active = "none"
        await harness.pass_leader_checks(3)
        before = harness.polls()
        await harness.ann.say("one")
        await harness.pass_leader_checks(5)
        assert (harness.polls(), harness.texts()) == (before, [])


async def test_an_invalid_update_does_not_block_the_others(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[list[object]] = [[None, {"update_id": "x"}, {"update_id": 5, "message": {"text": "one"}}]]

    async def invalid_updates(*_: object) -> list[object]:
        return answers.pop() if answers else await nothing_new()

    monkeypatch.setattr(update_sources, "_get_updates", invalid_updates)
    async with harness.polling():
        await harness.until(lambda: "one" in harness.texts())
    assert harness.recorder.of(Event.UPDATE_REFUSED)


@pytest.mark.parametrize("data", ["x\0y", "\ud800"])
async def test_a_button_press_with_any_data_is_stored(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    press = {"from": {"id": 5}, "data": data, "message": {"message_id": 1, "chat": {"id": 5}}}
    offsets: list[int | None] = []

    async def get_updates(_: object, offset: int | None, *_allowed: object) -> list[Any]:
        offsets.append(offset)
        updates: list[Any] = [{"update_id": 5, "callback_query": press}, {"update_id": 6, "message": {"text": data}}]
        return [update for update in updates if offset is None or update["update_id"] >= offset] or await nothing_new()

    monkeypatch.setattr(update_sources, "_get_updates", get_updates)
    monkeypatch.setattr(harness, "receive", harness.store.store_update)
    async with harness.polling():
        await harness.until(lambda: 7 in offsets)
    stored = await harness.store.updates(UpdateState.NEW, 10)
    assert sorted(update.update_id for update in stored) == [5, 6]
    assert not harness.recorder.of(Event.UPDATE_REFUSED)


@pytest.mark.parametrize("bad", [4, 6])
async def test_an_update_that_cannot_be_stored_does_not_block_the_others(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    offsets: list[int | None] = []

    async def get_updates(_: object, offset: int | None, *_allowed: object) -> list[Any]:
        offsets.append(offset)
        updates: list[Any] = [
            {"update_id": 5, "message": {"text": "one"}},
            {"update_id": bad, "message": {"text": "two"}},
        ]
        return [update for update in updates if offset is None or update["update_id"] >= offset] or await nothing_new()

    async def receive(update: NewUpdate) -> None:
        if update.update_id == bad:
            raise RuntimeError("unexpected")
        harness.stored.append(update.body)

    monkeypatch.setattr(update_sources, "_get_updates", get_updates)
    monkeypatch.setattr(harness, "receive", receive)
    async with harness.polling():
        await harness.until(lambda: max(5, bad) + 1 in offsets)
    assert harness.texts() == ["one"]
    assert harness.recorder.of(Event.UPDATE_REFUSED, update=bad)


# webhooks


def registrar(
    harness: Harness, caller: Caller, url: str = "http://127.0.0.1:81", token: str = TOKEN
) -> WebhookRegistrar:
    secrets = UpdateSecrets(harness.store, token, lambda _: None)
    return WebhookRegistrar(
        caller, harness.store, public_url=url, secrets=secrets, is_active=lambda: True, observer=harness.recorder
    )


async def test_the_webhook_is_registered_once(harness: Harness) -> None:
    async with harness.caller() as caller:
        assert await registrar(harness, caller).ensure()
        assert not await registrar(harness, caller).ensure()
        assert not await registrar(harness, caller).ensure()
    [call] = harness.telegram.calls("setWebhook")
    assert call.arguments["url"] == "http://127.0.0.1:81/telegram/webhook"
    assert call.arguments["secret_token"] == update_secret(TOKEN)
    assert call.arguments.get("drop_pending_updates") in (None, "false", False)
    assert harness.telegram.state.updates.allowed == list(ALLOWED_UPDATES)


@pytest.mark.parametrize("change", ["url", "secret", "removed", "allowed", "marker deleted"])
async def test_the_webhook_is_registered_again_when_its_settings_differ(harness: Harness, change: str) -> None:
    async with harness.caller() as caller:
        await registrar(harness, caller).ensure()
        url, token = "http://127.0.0.1:81", TOKEN
        match change:
            case "url":
                url = "http://127.0.0.1:82"
            case "secret":
                token = f"{TOKEN}-revoked"
            case "removed":
                await caller.bot.delete_webhook()
            case "allowed":
                await caller.bot.set_webhook(f"{url}/telegram/webhook", allowed_updates=["message"])
            case _:
                await harness.store.kv_delete("webhook:42")
        assert await registrar(harness, caller, url, token).ensure()
        assert not await registrar(harness, caller, url, token).ensure()


async def test_pending_updates_are_not_dropped_when_the_webhook_is_registered(harness: Harness) -> None:
    await harness.ann.say("one")
    async with harness.caller() as caller:
        await registrar(harness, caller).ensure()
    assert len(harness.telegram.state.updates.pending) == 1


async def test_a_failed_registration_is_repeated(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_sources, "RETRY_SECONDS", 0.05)
    harness.telegram.faults.switch(Fault.SERVER_ERROR, method="setWebhook", times=2)
    async with harness.caller() as caller:
        task = asyncio.create_task(registrar(harness, caller).run())
        await harness.until(lambda: bool(harness.recorder.of(Event.WEBHOOK_SET)))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(harness.telegram.calls("setWebhook")) == 3
