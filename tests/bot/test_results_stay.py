"""A result, its notice and a spoken prompt are never edited or removed as a screen, whatever failed after the sale."""

import json
from typing import Any

import pytest

from genlock.domain.field import FieldType
from genlock.domain.job import Job, NewJob
from genlock.domain.money import EntryKind
from genlock.sandbox.telegram.chats import Message
from tests.bot.order_by_chat import sample
from tests.bot.pages import label, page
from tests.bot.steps import opened
from tests.bot.test_paused_instances import pausing
from tests.bot.world import BotWorld, ChatUser, die_once


async def order_and_die(world: BotWorld, monkeypatch: pytest.MonkeyPatch, user: ChatUser, button: str) -> Message:
    """Press a button that orders, while nothing can be saved after the sale, on any try; return its message."""
    save, before, pressed = world.store.save_draft, len(await world.jobs(user)), user.screen

    async def die_if_sold(*arguments: Any, **named: Any) -> Any:
        if len(await world.jobs(user)) > before:
            raise ConnectionError("the process dies here")
        return await save(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr("genlock.engine.updates.TRIES", 2)
        patch.setattr(world.store, "save_draft", die_if_sold)
        with pytest.raises(AssertionError):
            await user.tap(label(button), on=pressed)
    assert [type(error) for error in world.intake.failures] == [ConnectionError, ConnectionError]
    world.intake.failures.clear()
    await world.quiet()
    return pressed


@pytest.mark.parametrize("next_message", ["/start", "/gen z-image a dog", "a dog"])
async def test_a_press_that_fails_on_every_try_after_the_sale_does_not_cost_the_user_the_result(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch, next_message: str
) -> None:
    ann = await world.add_user()
    await ann.write("a fox")
    result = await order_and_die(world, monkeypatch, ann, "button.generate")
    [error] = [message for message in ann.from_bot if page("misc.error")(message)]
    assert "charged" not in error.text, "the order may have been made"
    assert result.kind == "photo"
    shown = (result.text, result.file_id)

    await ann.write(next_message)
    await world.quiet()
    assert result in ann.client.messages, "a result is never removed as an old screen"
    await ann.press(result, "menu")
    assert (result.text, result.file_id) == shown, "a result is never edited into a screen"
    dog = json.loads((await world.jobs(ann))[0].input)["prompt"] == "a dog"
    assert len(await world.jobs(ann)) == (2 if next_message.startswith("/gen") else 1)
    assert dog is next_message.startswith("/gen")


async def test_a_text_after_a_press_that_failed_after_the_sale_begins_a_new_order(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order was made: its draft does not wait for a confirmation any more."""
    monkeypatch.setattr("genlock.stores.updates.REPEAT_SECONDS", 0.0)
    ann = await world.add_user()
    await ann.write("a fox")
    [generate] = [button["callback_data"] for button in ann.screen.buttons if button["callback_data"].endswith(":go")]
    result = await order_and_die(world, monkeypatch, ann, "button.generate")
    assert page("order.already")(await ann.press(result, generate))
    await ann.write("a song about the sea")
    await ann.sees(page("confirm.suggestion"))
    await ann.tap(label("button.generate"))
    await world.quiet()
    assert len({job.model for job in await world.jobs(ann)}) == 2


async def test_a_crash_between_the_record_of_a_sale_and_the_sale_orders_once_on_the_pressed_message(
    world: BotWorld,
) -> None:
    ann = await world.add_user()
    await ann.write("a fox")
    pressed = ann.screen
    die_once(world.engine, "order", after=False)
    await ann.tap(label("button.generate"))
    await world.quiet()
    assert (pressed.kind, len(await world.jobs(ann))) == ("photo", 1)
    assert await ann.available() == 1_000_000 - (await world.jobs(ann))[0].price


async def test_credits_that_are_gone_at_the_sale_show_the_order_again_and_its_button_orders_once(
    world: BotWorld,
) -> None:
    """The balance sufficed when it was checked; the message of the press stays the screen."""
    ann = await world.add_user()
    await ann.write("a fox")
    pressed, sell = ann.screen, world.engine.order

    async def spend_first(order: NewJob) -> Job:
        world.engine.order = sell  # type: ignore[method-assign]
        await world.store.transfer(ann.number, EntryKind.DEBIT, 1_000_000, "test:spent")
        return await sell(order)

    world.engine.order = spend_first  # type: ignore[method-assign]
    await ann.tap(label("button.generate"))
    assert page("confirm.short")(pressed)
    assert await world.jobs(ann) == []
    await world.store.transfer(ann.number, EntryKind.GRANT, 5000, "test:again")
    await ann.press(pressed, "here")
    die_once(world.engine, "order", after=True)
    await ann.tap(label("button.generate"), on=pressed)
    await world.quiet()
    assert (pressed.kind, len(await world.jobs(ann))) == ("photo", 1)


async def test_a_screen_that_a_paused_instance_records_after_such_a_sale_is_not_the_result(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The paused instance read the draft before the sale, and nothing but the sale was saved since."""
    ann = await world.add_user()
    await ann.write("a fox")
    await ann.write("/balance")
    async with pausing(world, "set_draft_message") as paused:
        await ann.write("/balance")  # both instances send the page; the other one's is the screen
        first, second = [message for message in ann.from_bot if page("balance.title")(message)]
        await ann.press(first, "here")
        assert second not in ann.client.messages
    result = await order_and_die(world, monkeypatch, ann, "button.generate")
    assert result is first
    await paused.resume()
    await ann.write("/start")
    assert result in ann.client.messages


async def test_a_press_that_fails_between_two_of_its_orders_still_has_its_notice(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await world.add_user()
    await ann.write("a fox")
    await ann.tap(label("variations.button"))
    sell = world.engine.order

    async def sell_one(order: NewJob) -> Job:
        if await world.jobs(ann):
            raise ConnectionError("the process dies here")
        return await sell(order)

    with monkeypatch.context() as patch:
        patch.setattr("genlock.engine.updates.TRIES", 2)
        patch.setattr(world.engine, "order", sell_one)
        with pytest.raises(AssertionError):
            await ann.tap(label("button.generate_all"))
    world.intake.failures.clear()
    await world.quiet()
    assert not any(page("variations.ready")(message) for message in ann.from_bot)
    for _ in range(2):
        await ann.write("/balance")
    await ann.sees(page("variations.ready", n=1))
    await ann.write("/balance")
    assert sum(page("variations.ready", n=1)(message) for message in ann.from_bot) == 1
    assert len(await world.jobs(ann)) == 1


async def test_a_better_prompt_stays_when_nothing_is_saved_after_its_sale(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await world.add_user()
    await opened(ann, "Suno")
    await ann.write("a calm song about the sea")
    await ann.tap(label("button.rest"))
    await ann.tap(label("improve.button"))
    result = await order_and_die(world, monkeypatch, ann, "improve.go")
    [job] = await world.jobs(ann)
    text, improved = result.text, job.parts[0].value.strip()[:60]
    assert improved in text
    await ann.tap(label("improve.take"), on=result)
    assert (result.text, result in ann.client.messages) == (text, True)
    assert page("confirm.price")(ann.screen)
    assert improved in ann.screen.text, "the draft knows its improvement"


async def test_a_notice_stays_after_its_result_was_deleted(world: BotWorld) -> None:
    """Without the result it answers, a notice looks like a screen."""
    ann = await world.add_user()
    await ann.write("/gen z-image a fox")
    await world.quiet()
    result, notice = ann.from_bot
    assert page("order.done")(notice)
    await ann.client.delete(result)
    text = notice.text
    for key in ("button.menu", "button.repeat", "variations.button", "button.menu"):
        await ann.tap(label(key), on=notice)
        assert notice.text == text
        assert ann.screen.id > notice.id


async def test_cancelling_the_offer_of_a_voice_message_after_agreeing_does_not_remove_its_text(
    world: BotWorld,
) -> None:
    """Both taps may be on their way before the first is handled."""
    ann = await world.add_user()
    await ann.send("voice", sample(FieldType.AUDIO))
    offer = await ann.sees(page("voice.offer"))
    agree, as_file, cancel = [button["callback_data"] for button in offer.buttons]
    async with world.done(2):
        await ann.press(offer, agree)
    await world.quiet()
    text = offer.text
    for data in (cancel, as_file):
        assert page("order.already")(await ann.press(offer, data))
        assert (offer in ann.client.messages, offer.text) == (True, text)
