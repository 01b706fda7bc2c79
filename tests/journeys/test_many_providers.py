"""Whole orders with three simulated providers: fail-over, unknown outcomes, and signed callbacks over real HTTP."""

import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from genlock.catalog import load
from genlock.sandbox.fleet import Fleet, running_fleet
from genlock.sandbox.generations.callbacks import STOLEN
from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.generations.generation import Generation
from genlock.sandbox.kie.faults import Fault as KieFault
from genlock.sandbox.kie.simulator import running_kie
from genlock.sandbox.providers import MoreProviders, running_more_providers
from genlock.sandbox.telegram.chats import Message
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import running_telegram
from tests.bot.pages import has_button, label, page
from tests.bot.steps import picture

SPEED = 30.0
OVERLAY = """
[models."z-image"]
offers = ["kie", "fal"]
[models."google/nano-banana"]
offers = ["replicate"]
[models."google/nano-banana-edit"]
offers = ["kie", "fal"]
"""


class ThreeProviders:
    def __init__(self, fleet: Fleet, more: MoreProviders, database: Path) -> None:
        self.fleet = fleet
        self.kie = fleet.kie
        self.fal, self.replicate = more.fal, more.replicate
        self._database = database

    async def user(self, name: str) -> SimulatedUser:
        user = self.fleet.telegram.add_user(name, language="en", started=False)
        await user.start()
        await user.sees(lambda message: bool(message.buttons), seconds=30)
        return user

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with sqlite3.connect(f"file:{self._database}?mode=ro", uri=True) as database:
            return database.execute(query, values).fetchall()

    def attempts(self, prompt: str) -> list[tuple[str, str | None]]:
        query = """
            SELECT attempts.provider, attempts.outcome FROM attempts JOIN jobs ON jobs.id = attempts.job_id
            WHERE jobs.input LIKE ? ORDER BY attempts.number
        """
        return self.rows(query, f"%{prompt}%")

    def kie_tasks(self, prompt: str) -> list[object]:
        return [task for task in self.kie.service.tasks.values() if task.values.get("prompt") == prompt]

    def made_by(self, simulator: Any, prompt: str) -> list[Generation]:
        return [
            generation
            for generation in simulator.service.generations.values()
            if generation.values.get("prompt") == prompt
        ]


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[ThreeProviders]:
    overlay = tmp_path / "catalog.toml"
    overlay.write_text(OVERLAY)
    catalog = load(overlay)
    database = tmp_path / "genlock.db"
    async with (
        running_telegram() as telegram,
        running_kie(catalog=catalog, webhook_key="sandbox-webhook-key", speed=SPEED) as kie,
        running_more_providers(catalog, speed=SPEED) as more,
        running_fleet(
            telegram=telegram,
            kie=kie,
            more=more,
            folder=tmp_path,
            database_url=f"sqlite:///{database}",
            settings={"GENLOCK_WELCOME_CREDITS": "100", "GENLOCK_CATALOG_OVERLAY": str(overlay)},
        ) as fleet,
    ):
        for simulator in (more.fal, more.replicate):
            simulator.faults.switch(Fault.STATUS_500)  # so that only a callback can end an order
        await fleet.start(1)
        yield ThreeProviders(fleet, more, database)


def pictures(user: SimulatedUser) -> int:
    return sum(message.kind == "photo" and message.id > 0 for message in user.messages)


async def test_orders_reach_the_user_once_whichever_provider_makes_them(three: ThreeProviders) -> None:
    # first, because the later ones make the engine leave Kie.ai alone for a while
    await _an_unknown_outcome_at_kie_is_never_ordered_at_fal(three)
    await _a_prompt_is_improved_by_the_text_model_of_fal(three)
    await _an_order_that_kie_refuses_for_lack_of_credit_is_made_by_fal(three)
    await _a_forged_callback_of_fal_changes_nothing(three)
    await _a_signed_callback_of_replicate_ends_the_order(three)
    await _an_order_is_made_while_kie_refuses_connections(three)
    await _an_order_with_a_photo_is_made_while_kie_refuses_connections(three)


async def _finish(user: SimulatedUser, order: str) -> None:
    shown = pictures(user)
    await user.say(order)
    await user.sees(page("order.done"), seconds=40)
    assert pictures(user) == shown + 1


async def _an_order_that_kie_refuses_for_lack_of_credit_is_made_by_fal(three: ThreeProviders) -> None:
    ann = await three.user("Ann")
    credit, three.kie.service.credits = three.kie.service.credits, 0

    await _finish(ann, "/gen z-image poor cat")

    three.kie.service.credits = credit
    [made] = three.made_by(three.fal, "poor cat")
    assert three.kie_tasks("poor cat") == []
    assert [sent.status for sent in three.fal.sender.sent if sent.generation == made.id] == [200]
    [(job, price, hold)] = three.rows("SELECT id, price, hold_state FROM jobs WHERE input LIKE '%poor cat%'")
    assert price > 0
    assert hold == "captured"
    assert three.rows("SELECT amount FROM ledger WHERE kind = 'capture' AND job_id = ?", job) == [(price,)]
    assert [provider for provider, _ in three.attempts("poor cat")] == ["kie", "fal"]


async def _a_forged_callback_of_fal_changes_nothing(three: ThreeProviders) -> None:
    bob = await three.user("Bob")
    credit, three.kie.service.credits = three.kie.service.credits, 0
    three.fal.faults.order(Fault.CALLBACK_FORGED)

    await _finish(bob, "/gen z-image honest cat")

    three.kie.service.credits = credit
    [made] = three.made_by(three.fal, "honest cat")
    sent = [callback for callback in three.fal.sender.sent if callback.generation == made.id]
    forged = [callback.status for callback in sent if STOLEN.encode() in callback.body]
    assert len(forged) == 2
    assert all(status in (401, 403) for status in forged)
    assert [callback.status for callback in sent if STOLEN.encode() not in callback.body] == [200]
    assert three.rows("SELECT COUNT(*) FROM jobs WHERE parts LIKE ?", f"%{STOLEN}%") == [(0,)]


async def _a_signed_callback_of_replicate_ends_the_order(three: ThreeProviders) -> None:
    eve = await three.user("Eve")
    three.replicate.faults.order(Fault.CALLBACK_FORGED)

    await _finish(eve, "/gen google/nano-banana swift cat")

    [made] = three.made_by(three.replicate, "swift cat")
    sent = [callback for callback in three.replicate.sender.sent if callback.generation == made.id]
    assert [callback.status for callback in sent if STOLEN.encode() not in callback.body] == [200]
    assert all(callback.status in (401, 403) for callback in sent if STOLEN.encode() in callback.body)
    genuine = next(callback for callback in sent if STOLEN.encode() not in callback.body)
    changed = json.loads(genuine.body) | {"status": "failed"}
    async with (
        aiohttp.ClientSession(headers=dict(genuine.headers)) as session,
        session.post(genuine.url, data=json.dumps(changed)) as answer,
    ):
        assert answer.status in (401, 403), "the signature is of another body"
    assert three.attempts("swift cat") == [("replicate", "succeeded")]


async def _an_order_is_made_while_kie_refuses_connections(three: ThreeProviders) -> None:
    dan = await three.user("Dan")
    await three.kie.listener.close()

    await _finish(dan, "/gen z-image stranded cat")

    await three.kie.listener.open()
    assert len(three.made_by(three.fal, "stranded cat")) == 1


async def _an_order_with_a_photo_is_made_while_kie_refuses_connections(three: ThreeProviders) -> None:
    """One photo is stored at Kie.ai before, the other is sent during the outage. fal gets its own copy of both."""
    kim = await three.user("Kim")
    early = await _suggestion(kim, "a photo of before")
    await three.kie.listener.close()
    shown = pictures(kim)
    await _generate(kim, early)
    await kim.sees(lambda _: pictures(kim) == shown + 1, seconds=40)
    await _generate(kim, await _suggestion(kim, "a photo of now"))
    await kim.sees(lambda _: pictures(kim) > shown + 2, seconds=40)
    await three.kie.listener.open()

    stored = {}
    for prompt, first in (("a photo of before", three.kie.files_url), ("a photo of now", three.fal.service.files.url)):
        [made] = three.made_by(three.fal, prompt)
        [address] = made.values["image_urls"]
        stored[prompt] = address
        [(given,)] = three.rows("SELECT input FROM jobs WHERE input LIKE ?", f"%{prompt}%")
        assert json.loads(given)["image_urls"][0].startswith(first)
    assert all(address.startswith(three.fal.service.files.url) for address in stored.values())
    copies = three.rows("SELECT provider, url FROM upload_copies ORDER BY expires_at, provider")
    assert [provider for provider, _ in copies].count("fal") == 2
    assert {url for provider, url in copies if provider == "fal"} == set(stored.values())


async def _a_prompt_is_improved_by_the_text_model_of_fal(three: ThreeProviders) -> None:
    joe = await three.user("Joe")
    await joe.say("a green lighthouse")
    await _tap(joe, "improve.button", "improve.button_free")
    await _tap(joe, "improve.go", "improve.go_free")
    await _tap(joe, "improve.take", seconds=40)
    await joe.sees(
        lambda message: (
            "green lighthouse, in warm" in message.text
            and has_button(message, "button.generate", "button.generate_free")
        ),
        seconds=20,
    )

    [made] = [
        generation
        for generation in three.fal.service.generations.values()
        if "green lighthouse" in generation.values["prompt"]
    ]
    assert made.values["prompt"].startswith("Rewrite the prompt at the end")
    query = "SELECT state, hold_state, price FROM jobs WHERE input LIKE '%green lighthouse%'"
    [(state, hold, price)] = three.rows(query)
    assert (state, hold) == ("succeeded", "captured")
    assert price > 0


async def _tap(user: SimulatedUser, *keys: str, seconds: float = 20.0) -> None:
    message = await user.sees(lambda one: has_button(one, *keys), seconds=seconds)
    await _press(user, message, *keys)


async def _press(user: SimulatedUser, message: Message, *keys: str) -> None:
    pattern = label(*keys)
    await user.press(message, next(button["text"] for button in message.buttons if pattern.search(button["text"])))


async def _suggestion(user: SimulatedUser, prompt: str) -> Message:
    await user.send_photo(picture(), caption=prompt)
    return await user.sees(lambda message: prompt in message.text and bool(message.buttons), seconds=30)


async def _generate(user: SimulatedUser, message: Message) -> None:
    await _press(user, message, "button.generate", "button.generate_free")


async def _an_unknown_outcome_at_kie_is_never_ordered_at_fal(three: ThreeProviders) -> None:
    sam = await three.user("Sam")
    three.kie.faults.order(KieFault.CREATE_CUT)

    await _finish(sam, "/gen z-image lost cat")

    assert len(three.kie_tasks("lost cat")) == 1
    assert three.made_by(three.fal, "lost cat") == []
    assert [provider for provider, _ in three.attempts("lost cat")] == ["kie"]
