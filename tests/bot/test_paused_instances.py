"""An instance that was paused while it handled an update changes nothing when it goes on: another has handled it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from telegram import Update

from genlock.domain.job import Job
from genlock.sandbox.telegram.chats import Message
from tests.bot.pages import label, page
from tests.bot.world import BotWorld, ChatUser


class PausedInstance:
    """Handles the next update until its first call of a store method, and goes on when it is resumed."""

    def __init__(self, world: BotWorld, method: str) -> None:
        self._world, self._method = world, method
        self._real = getattr(world.store, method)
        self._paused, self._resumed = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def take(self, update: Update, place: int) -> None:
        setattr(self._world.store, self._method, self._wait)
        self._task = asyncio.create_task(self._world.bot.handle(update, first=True, place=place))
        await self._paused.wait()

    async def _wait(self, *arguments: Any, **named: Any) -> Any:
        setattr(self._world.store, self._method, self._real)
        self._paused.set()
        await self._resumed.wait()
        return await self._real(*arguments, **named)

    async def resume(self) -> None:
        self._resumed.set()
        assert self._task is not None
        await self._task


@asynccontextmanager
async def pausing(world: BotWorld, method: str) -> AsyncIterator[PausedInstance]:
    """Let another instance handle the updates inside the block; the first of them is also in a paused one."""
    paused = PausedInstance(world, method)
    async with world.another_bot() as other:
        handle = other.handle
        paused_with: list[Update] = []

        async def both(update: Update, *, first: bool, place: int = 0, **more: Any) -> None:
            if not paused_with:
                paused_with.append(update)
                await paused.take(update, place)
                first = False
            await handle(update, first=first, place=place, **more)

        other.handle = both  # type: ignore[method-assign]
        yield paused


async def drawn(ann: ChatUser) -> Message:
    await ann.write("/gen z-image a red fox")
    return await shown(ann)


async def shown(ann: ChatUser) -> Message:
    """Return the newest picture when everything has been delivered."""
    await ann.world.quiet()
    return [message for message in ann.from_bot if message.kind == "photo"][-1]


def edited_file(job: Job) -> object:
    values = json.loads(job.input)
    return next(value for value in values.values() if isinstance(value, list))


async def test_a_screen_that_is_recorded_late_does_not_make_a_result_the_screen(world: BotWorld) -> None:
    ann = await world.add_user()
    fox = await drawn(ann)
    async with pausing(world, "set_draft_message") as paused:
        await ann.write("make it winter", reply_to=fox)
        first, second = [message for message in ann.from_bot if page("confirm.price")(message)]
        await ann.tap(label("button.generate"), on=first)  # not the screen that is recorded: it is from now on
        await ann.press(first, "unknown")
        assert second not in ann.client.messages
        await ann.tap(label("button.generate"), on=first)
        winter = await shown(ann)
        assert winter.id == first.id

        await paused.resume()
        await ann.write("make it spring", reply_to=winter)
        await ann.tap(label("button.generate"))
        await world.quiet()
        await ann.write("/start")

    spring, wintry, _ = await world.jobs(ann)
    assert json.loads(spring.input)["prompt"] == "make it spring"
    assert edited_file(spring) == [wintry.parts[0].value]
    assert winter in ann.client.messages, "a result is never removed as an old screen"


async def test_a_reply_edits_a_result_even_while_it_is_recorded_as_the_screen(world: BotWorld) -> None:
    """A press whose handler failed on every try may have sold the order without saving the draft."""
    ann = await world.add_user()
    fox = await drawn(ann)
    draft = await world.store.draft(ann.number, ann.client.id)
    assert draft is not None
    assert await world.store.set_draft_message(ann.number, ann.client.id, fox.id, version=draft.version)
    await ann.write("make it winter", reply_to=fox)
    await ann.tap(label("button.generate"))
    await world.quiet()

    winter, drew = await world.jobs(ann)
    assert edited_file(winter) == [drew.parts[0].value]


@pytest.mark.parametrize("method", ["save_draft", "ensure_profile_and_draft"])
async def test_an_update_that_another_instance_has_handled_does_not_replace_a_later_draft(
    world: BotWorld, method: str
) -> None:
    ann = await world.add_user()
    fox = await drawn(ann)
    async with pausing(world, method) as paused:
        await ann.write("make it winter", reply_to=fox)
        await ann.tap(label("button.generate"))
        winter = await shown(ann)
        await ann.write("make it spring", reply_to=winter)
        before = [(message.id, message.text) for message in ann.from_bot]

        await paused.resume()
        assert [(message.id, message.text) for message in ann.from_bot] == before
        await ann.tap(label("button.generate"))
        await world.quiet()

    spring, wintry, _ = await world.jobs(ann)
    assert json.loads(spring.input)["prompt"] == "make it spring"
    assert edited_file(spring) == [wintry.parts[0].value]
