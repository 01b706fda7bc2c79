"""The same tap or update twice, and answers of Telegram that were lost: one order."""

import asyncio
import re

import pytest
from telegram import Update

from genlock.sandbox.telegram.faults import Fault
from tests.bot.pages import label, page
from tests.bot.world import BotWorld, ChatUser


@pytest.mark.parametrize("repeat_seconds", [10.0, 0.0], ids=["deduplicated", "handled"])
async def test_two_taps_on_generate_order_once(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch, repeat_seconds: float
) -> None:
    """A second tap within the repeat window is not handled; a later one is told that the order is running."""
    monkeypatch.setattr("genlock.stores.updates.REPEAT_SECONDS", repeat_seconds)
    ann = await world.add_user()
    await ann.write("a fox")
    screen = await ann.sees(page("confirm.suggestion"))
    data = screen.buttons[0]["callback_data"]
    first = await ann.press(screen, data)
    second = await ann.press(screen, data)
    await ann.sees(page("order.done"))
    await world.telegram.until(lambda: second.answered)  # a repeated press is settled before it is answered

    assert first.answered
    assert page("order.already")(second) is (repeat_seconds == 0.0)
    assert len(await world.jobs(ann)) == 1
    assert [message.kind for message in ann.from_bot] == ["photo", "text"]


async def test_a_button_pressed_again_after_another_one_is_handled(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.stores.updates.REPEAT_SECONDS", 60.0)
    ann = await world.add_user()
    await ann.write("/start")
    for _ in range(3):
        await ann.press(ann.screen, "cat:music:0")
        await ann.sees(page("wish.title", title="Music"))
        await ann.press(ann.screen, "menu")
        await ann.sees(page("menu.nothing_chosen"))
    assert ann.screen.buttons[0]["callback_data"] != "menu"


async def test_a_repeated_update_changes_nothing(world: BotWorld) -> None:
    """After a crash an update is handled again."""
    ann = await world.add_user()
    updates: list[Update] = []
    handle = world.bot.handle

    async def twice(update: Update, *, first: bool, **_: object) -> None:
        updates.append(update)
        await handle(update, first=first)
        await handle(update, first=False)

    world.bot.handle = twice  # type: ignore[method-assign]
    await ann.write("/models z-image")
    await ann.tap("Z-Image")
    await ann.write("a cat")
    shown = await ann.sees("Aspect ratio")
    assert "⚠️" not in shown.text, "the text is not taken for the next answer"
    await ann.tap("4:3")
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.generate"))
    await ann.sees(page("order.done"))
    await ann.write("/gen z-image a dog")
    await ann.sees(lambda message: "#2" in message.text and page("order.done")(message))

    assert len(updates) == 6
    assert len(await world.jobs(ann)) == 2
    assert await ann.available() == 1_000_000 - 1600
    assert len([message for message in ann.from_bot if message.kind == "photo"]) == 2


async def test_an_order_whose_update_is_dead_is_not_ordered_again_by_another_tap(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await world.add_user()
    await ann.write("a fox")
    screen = await ann.sees(page("confirm.suggestion"))
    data = screen.buttons[0]["callback_data"]

    async def die(*_: object) -> None:
        raise ConnectionError("the process dies here")

    monkeypatch.setattr("genlock.engine.updates.TRIES", 1)
    monkeypatch.setattr(world.drafts, "save", die)
    with pytest.raises(AssertionError):
        await ann.press(screen, data)
    world.intake.failures.clear()
    monkeypatch.undo()
    await ann.sees(page("misc.error"))
    await ann.press(screen, data)
    await ann.sees(page("order.done"))

    assert len(await world.jobs(ann)) == 1


async def tap_screen(ann: ChatUser, text: str | re.Pattern[str]) -> None:
    """Tap a button of the recorded screen: two instances may have sent two, and a tap on the other only moves it."""
    draft = await ann.world.store.draft(ann.number, ann.client.id)
    assert draft is not None
    [screen] = [message for message in ann.from_bot if message.id == draft.message]
    await ann.tap(text, on=screen)


async def test_two_instances_with_the_same_update_order_once(world: BotWorld) -> None:
    """After a lease has expired, two instances may handle the same update."""
    ann = await world.add_user()
    async with world.another_bot() as other:
        handle = other.handle

        async def both(update: Update, *, first: bool, **_: object) -> None:
            await asyncio.gather(handle(update, first=first), world.bot.handle(update, first=False))

        other.handle = both  # type: ignore[method-assign]
        await ann.write("/models z-image")
        await tap_screen(ann, "Z-Image")
        await ann.write("a cat")
        await ann.sees("Aspect ratio")
        await tap_screen(ann, "4:3")
        await ann.sees(page("confirm.price"))
        await tap_screen(ann, label("button.generate"))
        await ann.sees(page("order.done"))
        await world.quiet()

    assert len(await world.jobs(ann)) == 1
    assert await ann.available() == 1_000_000 - 800
    assert len([message for message in ann.from_bot if message.kind == "photo"]) == 1


@pytest.mark.parametrize("method", ["editMessageText", "sendMessage", "answerCallbackQuery", "deleteMessage"])
async def test_a_lost_answer_from_telegram_still_gives_one_order(world: BotWorld, method: str) -> None:
    ann = await world.add_user()
    world.telegram.faults.once(Fault.DROP_AFTER, method=method)
    await ann.write("/models z-image")
    await ann.tap("Z-Image")
    await ann.write("a cat")
    await ann.sees("Aspect ratio")
    await ann.tap("4:3")
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.generate"))
    await ann.sees(page("order.done"))

    assert [call.faults for call in world.telegram.calls(method) if call.faults] == [["drop_after"]]
    assert len(await world.jobs(ann)) == 1


async def test_an_order_after_the_draft_was_pruned_is_a_new_one(world: BotWorld) -> None:
    """Versions of drafts are part of idempotency keys: a draft that began again would find the orders of before."""
    ann = await world.add_user()
    for number in range(1, 3):
        await ann.write("a fox")
        screen = await ann.sees(page("confirm.suggestion"))
        await ann.press(screen, screen.buttons[0]["callback_data"])
        await ann.sees(page("order.done", code=f"#{number}"))
        await world.quiet()
        role = await world.store.take_role("active", "leader", 60.0)
        while await world.store.prune_next("drafts", -1.0, 10, role):
            pass

    assert len(await world.jobs(ann)) == 2
