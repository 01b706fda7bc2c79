"""How updates come in, against the simulated Telegram: nothing confirmed before it is kept, nothing dropped."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from telegram.error import Conflict

from genlock.app import SystemClock
from genlock.channels.telegram import update_sources as intake
from genlock.channels.telegram.caller import Caller, make_bot
from genlock.channels.telegram.rate_limiter import TelegramRateLimiter
from genlock.channels.telegram.update_sources import ALLOWED, Poller, WebhookKeeper, webhook_secret
from genlock.domain.errors import StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.update import NewUpdate, UpdateState
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from genlock.stores.sqlite import SqliteStore
from tests.engine.world import Recorder

SECRET = "a-secret_of-the-webhook"


class House:
    """One or more instances that ask the same Telegram, and one who writes to it."""

    def __init__(self, telegram: TelegramSimulator, store: SqliteStore, recorder: Recorder) -> None:
        self.telegram = telegram
        self.store = store
        self.recorder = recorder
        self.ann = telegram.add_user("Ann")
        self.kept: list[str] = []
        self.active = "first"
        self.fails = 0

    async def take_in(self, update: NewUpdate) -> None:
        if self.fails:
            self.fails -= 1
            raise StoreUnavailable
        self.kept.append(update.body)

    def texts(self) -> list[str]:
        return [text for body in self.kept for text in ("one", "two", "three") if text in body]

    @asynccontextmanager
    async def caller(self) -> AsyncIterator[Caller]:
        caller = Caller(
            make_bot(self.telegram.token, self.telegram.url), TelegramRateLimiter(self.store, "42"), self.recorder
        )
        yield caller
        await caller.close()

    @asynccontextmanager
    async def polling(self, name: str = "first") -> AsyncIterator[asyncio.Task[None]]:
        async with self.caller() as caller:
            poller = Poller(caller, take_in=self.take_in, is_active=lambda: self.active == name, observer=self.recorder)
            task = asyncio.create_task(poller.run())
            yield task
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(15):
            while not condition():  # noqa: ASYNC110 - the simulator sets no event of ours
                await asyncio.sleep(0.01)

    def polls(self) -> int:
        return len(self.telegram.calls("getUpdates"))


@pytest.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr(intake, "WATCH_SECONDS", 0.02)
    monkeypatch.setattr(intake, "CONFLICT_SECONDS", 0.1)
    recorder = Recorder()
    store = await SqliteStore.open(str(tmp_path / "g.db"), clock=SystemClock(), observer=recorder)
    async with running_telegram(speed=20.0) as telegram:
        yield House(telegram, store, recorder)
    await store.close()


# polling


async def test_updates_are_fetched_in_order_by_the_active_instance(house: House) -> None:
    async with house.polling("first"), house.polling("second"):
        for text in ("one", "two"):
            await house.ann.say(text)
        await house.until(lambda: house.texts() == ["one", "two"])
        house.active = "second"
        await house.until(lambda: len(house.recorder.of(Event.POLLING)) == 2)
        await house.ann.say("three")
        await house.until(lambda: "three" in house.texts())


async def test_whoever_is_not_active_does_not_ask(house: House) -> None:
    house.active = "nobody"
    async with house.polling():
        await asyncio.sleep(0.2)
        assert house.polls() == 0


async def test_what_cannot_be_kept_is_not_confirmed_and_comes_again(house: House) -> None:
    house.fails = 1
    async with house.polling():
        await house.ann.say("one")
        await house.until(lambda: house.texts() == ["one"])
    assert house.telegram.state.updates.pending or house.polls() >= 2
    assert house.recorder.of(Event.STAGE_ERROR, step="poll updates")


async def test_what_is_kept_is_confirmed_by_the_next_question(house: House) -> None:
    async with house.polling():
        await house.ann.say("one")
        await house.until(lambda: house.texts() == ["one"] and not house.telegram.state.updates.pending)


@pytest.mark.parametrize(
    "fault", [Fault.DROP_BEFORE, Fault.DROP_AFTER, Fault.SERVER_ERROR, Fault.BAD_GATEWAY, Fault.UNDECODABLE]
)
async def test_a_question_that_fails_is_asked_again(house: House, fault: Fault) -> None:
    house.telegram.faults.switch(fault, method="getUpdates", times=2)
    await house.ann.say("one")
    async with house.polling():
        await house.until(lambda: "one" in house.texts())


async def test_a_webhook_that_is_set_is_removed_and_what_waits_there_is_fetched(house: House) -> None:
    async with house.caller() as caller:
        await caller.bot.set_webhook("http://127.0.0.1:9/nobody")
    await house.ann.say("one")
    async with house.polling():
        await house.until(lambda: house.texts() == ["one"])
    [removed] = house.telegram.calls("deleteWebhook")
    assert removed.arguments.get("drop_pending_updates") in (None, "false", False)
    assert len(house.recorder.of(Event.WEBHOOK_REMOVED)) == 1


async def test_a_webhook_that_is_set_meanwhile_is_removed_too(house: House) -> None:
    async with house.polling():
        await house.until(lambda: house.polls() > 0)
        async with house.caller() as caller:
            await caller.bot.set_webhook("http://127.0.0.1:9/nobody")
        await house.ann.say("two")
        await house.until(lambda: house.texts() == ["two"])


async def test_somebody_else_with_the_same_token_is_met_with_patience(house: House) -> None:
    async with house.polling():
        await house.until(lambda: house.polls() > 0)
        async with house.caller() as caller:
            with suppress(Conflict):  # it may be the other one that is told
                await caller.bot.get_updates(timeout=0)
        await house.until(lambda: bool(house.recorder.of(Event.POLL_CONFLICT)))
        await house.ann.say("one")
        await house.until(lambda: "one" in house.texts())


async def test_one_who_loses_the_role_lets_the_question_go(house: House) -> None:
    async with house.polling():
        await house.until(lambda: house.polls() > 0)
        house.active = "nobody"
        await asyncio.sleep(0.1)
        asked = house.polls()
        await house.ann.say("one")
        await asyncio.sleep(0.2)
        assert (house.polls(), house.texts()) == (asked, [])


async def test_an_update_that_is_none_does_not_keep_out_the_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def strange(*_: object) -> list[object]:
        await asyncio.sleep(0.01)
        return [None, {"update_id": "x"}, {"update_id": 5, "message": {"text": "one"}}]

    monkeypatch.setattr(intake, "_ask", strange)
    async with house.polling():
        await house.until(lambda: "one" in house.texts())
    assert house.recorder.of(Event.UPDATE_REFUSED)


@pytest.mark.parametrize("data", ["x\0y", "\ud800"])
async def test_a_press_with_any_data_is_kept(house: House, monkeypatch: pytest.MonkeyPatch, data: str) -> None:
    press = {"from": {"id": 5}, "data": data, "message": {"message_id": 1, "chat": {"id": 5}}}
    asked: list[int | None] = []

    async def ask(_: object, offset: int | None) -> list[Any]:
        await asyncio.sleep(0.01)
        asked.append(offset)
        said: list[Any] = [{"update_id": 5, "callback_query": press}, {"update_id": 6, "message": {"text": data}}]
        return [one for one in said if offset is None or one["update_id"] >= offset]

    monkeypatch.setattr(intake, "_ask", ask)
    monkeypatch.setattr(house, "take_in", house.store.store_update)
    async with house.polling():
        await house.until(lambda: 7 in asked)
    kept = await house.store.updates(UpdateState.NEW, 10)
    assert sorted(update.update_id for update in kept) == [5, 6]
    assert not house.recorder.of(Event.UPDATE_REFUSED)


@pytest.mark.parametrize("bad", [4, 6])
async def test_an_update_that_nobody_can_keep_does_not_keep_out_the_others(
    house: House, monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    asked: list[int | None] = []

    async def ask(_: object, offset: int | None) -> list[Any]:
        await asyncio.sleep(0.01)
        asked.append(offset)
        said: list[Any] = [{"update_id": 5, "message": {"text": "one"}}, {"update_id": bad, "message": {"text": "two"}}]
        return [one for one in said if offset is None or one["update_id"] >= offset]

    async def take_in(update: NewUpdate) -> None:
        if update.update_id == bad:
            raise RuntimeError("unforeseen")
        house.kept.append(update.body)

    monkeypatch.setattr(intake, "_ask", ask)
    monkeypatch.setattr(house, "take_in", take_in)
    async with house.polling():
        await house.until(lambda: max(5, bad) + 1 in asked)
    assert house.texts() == ["one"]
    assert house.recorder.of(Event.UPDATE_REFUSED, update=bad)


# webhooks


def keeper(house: House, caller: Caller, url: str = "http://127.0.0.1:81", secret: str = SECRET) -> WebhookKeeper:
    return WebhookKeeper(
        caller, house.store, public_url=url, secret=secret, is_active=lambda: True, observer=house.recorder
    )


async def test_the_webhook_is_set_once(house: House) -> None:
    async with house.caller() as caller:
        assert await keeper(house, caller).ensure()
        assert not await keeper(house, caller).ensure()
        assert not await keeper(house, caller).ensure()
    [call] = house.telegram.calls("setWebhook")
    assert call.arguments["url"] == "http://127.0.0.1:81/telegram/webhook"
    assert call.arguments["secret_token"] == SECRET
    assert call.arguments.get("drop_pending_updates") in (None, "false", False)
    assert house.telegram.state.updates.allowed == list(ALLOWED)


@pytest.mark.parametrize("change", ["url", "secret", "removed", "allowed", "forgotten"])
async def test_the_webhook_is_set_again_when_it_is_not_as_it_should_be(house: House, change: str) -> None:
    async with house.caller() as caller:
        await keeper(house, caller).ensure()
        url, secret = "http://127.0.0.1:81", SECRET
        match change:
            case "url":
                url = "http://127.0.0.1:82"
            case "secret":
                secret = "another-secret"
            case "removed":
                await caller.bot.delete_webhook()
            case "allowed":
                await caller.bot.set_webhook(f"{url}/telegram/webhook", allowed_updates=["message"])
            case _:
                await house.store.kv_delete("webhook:42")
        assert await keeper(house, caller, url, secret).ensure()
        assert not await keeper(house, caller, url, secret).ensure()


async def test_updates_that_wait_are_not_dropped_when_the_webhook_is_set(house: House) -> None:
    await house.ann.say("one")
    async with house.caller() as caller:
        await keeper(house, caller).ensure()
    assert len(house.telegram.state.updates.pending) == 1


async def test_the_secret_is_made_once_and_kept(house: House) -> None:
    told = await asyncio.gather(*(webhook_secret(house.store, "42") for _ in range(3)))
    assert len({*told, await webhook_secret(house.store, "42")}) == 1
    assert await webhook_secret(house.store, "43") not in told
    assert len(told[0]) >= 40


async def test_a_telegram_that_is_away_is_told_later(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "FAILED_SECONDS", 0.05)
    house.telegram.faults.switch(Fault.SERVER_ERROR, method="setWebhook", times=2)
    async with house.caller() as caller:
        task = asyncio.create_task(keeper(house, caller).run())
        await house.until(lambda: bool(house.recorder.of(Event.WEBHOOK_SET)))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(house.telegram.calls("setWebhook")) == 3
