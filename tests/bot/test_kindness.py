"""Second presses, old buttons, other people's buttons, things nobody understands: each has a right and kind answer."""

import asyncio
import io
from pathlib import Path

import pytest
from PIL import Image
from telegram import Update

from genlock.bot.rules import BotRules
from genlock.domain.job import Delivery, State
from genlock.sandbox.telegram.faults import Fault
from genlock.stores.sqlite import SqliteStore
from tests.bot.world import Customer, Town, sqlite_url, town


def picture(size: int = 64) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (size, size), "navy").save(file, "PNG")
    return file.getvalue()


async def confirmed(ann: Customer, text: str = "a fox") -> None:
    await ann.say(text)
    await ann.sees("Shall I")
    await ann.tap("Generate")


async def test_a_second_press_of_generate_orders_once(here: Town) -> None:
    ann = await here.person()
    await ann.say("a fox")
    screen = await ann.sees("Shall I")
    data = screen.buttons[0]["callback_data"]
    first = await ann.press(screen, data)
    second = await ann.press(screen, data)
    await ann.sees("Generation complete")

    assert (first.answered, second.answered) == (True, True)
    assert second.text == "Your order is already on its way."
    assert len(await here.jobs(ann)) == 1
    assert [message.kind for message in ann.from_bot] == ["photo", "text"]


async def test_an_old_button_shows_where_one_is_now(here: Town) -> None:
    ann = await here.person()
    await ann.say("/models z-image")
    await ann.tap("Z-Image")
    await ann.say("a cat")
    choice = await ann.sees("Aspect ratio")
    old = next(one["callback_data"] for one in choice.buttons if "1:1" in one["text"])
    await ann.tap("3:4")
    await ann.sees("Price")
    press = await ann.press(choice, old)
    shown = await ann.sees("Price")

    assert press.answered
    assert "Aspect ratio: 3:4" in shown.text


async def test_a_button_of_an_earlier_screen_brings_the_present_one(here: Town) -> None:
    ann = await here.person()
    await ann.say("/models z-image")
    list_ = ann.screen
    back = next(one["callback_data"] for one in list_.buttons if "Back" in one["text"])
    await ann.tap("Z-Image")
    await ann.say("a cat")
    await ann.sees("Aspect ratio")
    press = await ann.press(list_, back)

    assert press.text == "This button is out of date. Here is where you are now."
    assert "Aspect ratio" in ann.screen.text
    assert len(ann.from_bot) == 1


async def test_a_button_nobody_knows_is_answered(here: Town) -> None:
    ann = await here.person()
    await ann.say("/start")
    for data in ("", "nonsense", "w:zz:go", "w:::", "cat:nothing:0", "model:00000000:all", "again:x", "order:999999"):
        press = await ann.press(ann.screen, data)
        assert press.answered, data
    assert len(ann.from_bot) == 1


async def test_every_kind_of_message_gets_an_answer(here: Town) -> None:
    ann = await here.person()
    await ann.say("/start")
    for content in ({"sticker": {"file_id": "s", "file_unique_id": "u", "width": 1, "height": 1, "type": "regular",
                                 "is_animated": False, "is_video": False}},
                    {"location": {"longitude": 1.0, "latitude": 1.0}},
                    {"contact": {"phone_number": "1", "first_name": "B"}},
                    {"dice": {"emoji": "🎲", "value": 3}}):  # fmt: skip
        before = len(ann.from_bot)
        async with here.done():
            ann.hands._write(content, None, reply_to=None)
        assert len(ann.from_bot) == before + 1
        assert "I cannot read this kind of message" in ann.hands.last.text
    await ann.say("/nonsense")
    await ann.sees("I do not know this command")
    await ann.send("document", b"%PDF-1.7 hello", name="a.pdf")
    await ann.sees("I cannot do anything with a file of this kind")


async def test_an_edited_message_is_not_taken_silently(here: Town) -> None:
    ann = await here.person()
    message = await ann.say("a fox")
    async with here.done():
        await ann.hands.edit(message, "a bear")

    await ann.sees("I read messages once")


async def test_a_running_order_can_be_cancelled(here: Town) -> None:
    here.kie.service.speed = 0.01
    ann = await here.person()
    await confirmed(ann)
    assert await ann.available() == 1_000_000 - 800
    await ann.say("/cancel")
    await ann.sees("Which order shall I cancel?")
    press = await ann.tap("#1 · ⏳ a fox")
    told = await ann.sees("Order #1 is cancelled")

    assert press.text == "Cancelled. Nothing was charged."
    assert "Returned to your balance: 0.8 credits" in told.text
    assert await ann.available() == 1_000_000
    [job] = await here.jobs(ann)
    assert job.state is State.CANCELLED
    await here.quiet()
    assert len([message for message in ann.from_bot if "cancelled" in message.text]) == 1
    again = await ann.press(told, f"cancel:{job.id}")
    assert again.text == "It has already ended."


@pytest.mark.parametrize(("language", "told"), [("en", "too late to cancel"), ("ru", "Отменить уже нельзя")])
async def test_orders_the_provider_has_are_cancelled_only_so_often(tmp_path: Path, language: str, told: str) -> None:
    async with town(sqlite_url(tmp_path), rules=BotRules(late_cancels_per_day=1)) as here:
        here.kie.service.speed = 0.01
        ann = await here.person(language=language)
        for _ in range(2):
            await ann.say("/gen z-image a fox")
            await reached(here, ann, State.RUNNING)
            [job, *_] = await here.jobs(ann)
            press = await ann.press(ann.from_bot[-1], f"cancel:{job.id}")
            assert (told in press.text) is (job.id > 1)

        assert [job.state for job in await here.jobs(ann)] == [State.RUNNING, State.CANCELLED]


async def reached(here: Town, ann: Customer, state: State) -> None:
    """Wait until the newest order is in this state."""
    async with asyncio.timeout(20):
        while (await here.jobs(ann))[0].state is not state:  # noqa: ASYNC110 - the engine sets no event of ours
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("by_command", [True, False])
async def test_an_order_can_be_cancelled_from_its_own_message_at_once(here: Town, *, by_command: bool) -> None:
    here.kie.service.speed = 0.01
    ann = await here.person()
    if by_command:
        await ann.say("/gen z-image a fox")
    else:
        await confirmed(ann)
    shown = await ann.sees("akes about 55 seconds.")
    await ann.tap("Cancel the order", on=shown)
    await ann.sees("Order #1 is cancelled")

    assert await ann.available() == 1_000_000


async def test_an_old_menu_button_does_not_write_over_an_order(here: Town) -> None:
    here.kie.service.speed = 0.01
    ann = await here.person()
    await ann.say("/start")
    screen = ann.screen
    await ann.tap("Text to image")
    await ann.tap("Z-Image")
    await ann.tap("Use the example")
    await ann.tap("1:1")
    await ann.tap("Generate")
    order = await ann.sees("Your order is accepted")
    assert order.id == screen.id
    for number in range(10):  # however many came after it
        await ann.say(f"/gen z-image {number}")
    await ann.press(screen, "cat:music:0")
    shown = await ann.sees("Music")

    assert shown.id != order.id
    assert "Your order is accepted" in order.text


async def test_progress_is_shown_on_the_message_that_becomes_the_result(here: Town) -> None:
    here.kie.service.speed = 55 / 6
    ann = await here.person()
    await confirmed(ann)
    accepted = await ann.sees("Your order is accepted")
    progress = await ann.sees("%")
    assert progress.id == accepted.id
    assert "Z-Image · #1" in progress.text
    assert any("Cancel the order" in one["text"] for one in progress.buttons)
    await ann.sees("Generation complete")
    picture_ = next(message for message in ann.from_bot if message.id == accepted.id)

    assert picture_.kind == "photo"


async def test_data_that_no_button_had_is_answered_and_breaks_nothing(here: Town) -> None:
    ann = await here.person()
    await ann.say("a fox")
    await ann.sees("Shall I")
    for verb in ("example", "pick:0", "skip", "clear", "edit:99", "turn:9999", "done", "topup", "nothing"):
        data = [one["callback_data"].split(":") for one in ann.screen.buttons]
        version = next((words[1] for words in data if words[0] == "w"), "0")
        press = await ann.press(ann.screen, f"w:{version}:{verb}")
        assert press.answered, verb
    assert await here.jobs(ann) == []


async def test_a_result_that_processes_die_of_is_not_shown_again_at_one_persons_wish(here: Town) -> None:
    ann = await here.person()
    await confirmed(ann)
    notice = await ann.sees("Generation complete")
    await here.quiet()
    assert isinstance(here.store, SqliteStore)
    words = "its work ended the process 8 times"
    await here.store.session.call(
        lambda connection: connection.execute(
            "UPDATE jobs SET attention_code = 'poison', attention_reason = ?", (words,)
        )
    )

    press = await ann.tap("Show again", on=notice)

    assert press.text.startswith("I cannot show this result")
    [job] = await here.jobs(ann)
    assert (job.delivery, job.due_at, job.attention_reason) == (Delivery.DELIVERED, None, words)


async def test_a_result_is_shown_again_and_repeated_and_changed(here: Town) -> None:
    ann = await here.person()
    await confirmed(ann)
    notice = await ann.sees("Generation complete")
    press = await ann.tap("Show again", on=notice)
    await ann.sees(lambda message: message.kind == "photo" and message.id > notice.id)
    assert press.text == "Here it comes."
    shown = here.telegram.calls("editMessageMedia")[-1]
    assert shown.uploaded == 0, "from Telegram's own copy"
    assert not shown.arguments["media"]["media"].startswith("http")
    assert await ann.available() == 1_000_000 - 800

    await ann.tap("Change", on=notice)
    options = await ann.sees("what would you like to change?")
    assert options.id > notice.id, "the notice stays, with its buttons"
    await ann.tap("Aspect ratio")
    await ann.tap("9:16")
    await ann.tap("Done")
    await ann.sees("a fox")
    await ann.tap("Generate")
    second = await ann.sees(lambda message: "#2" in message.text and "complete" in message.text)
    jobs = await here.jobs(ann)
    assert '"9:16"' in jobs[0].input

    await ann.tap("Repeat", on=second)
    await ann.sees(lambda message: message.id > second.id and "Price" in message.text)
    assert any("Repeat" in one["text"] for one in second.buttons)
    await ann.tap("Generate")
    await ann.sees(lambda message: "#3" in message.text and "complete" in message.text)
    jobs = await here.jobs(ann)
    assert jobs[0].input == jobs[1].input


async def test_history_has_pages_and_each_order_its_buttons(here: Town) -> None:
    ann = await here.person()
    for number in range(10):
        await ann.say(f"/gen z-image fox {number}")
    await ann.sees(lambda message: "#10" in message.text and "complete" in message.text)
    await here.quiet()  # the notices have come, and the list is the newest message
    await ann.say("/history")
    rows = [one["text"] for one in ann.screen.buttons if one["callback_data"].startswith("order:")]
    assert len(rows) == 8
    await ann.tap("Older")
    rows = [one["text"] for one in ann.screen.buttons if one["callback_data"].startswith("order:")]
    assert len(rows) == 2
    await ann.tap("Newer")
    await ann.tap("fox 9")
    await ann.sees("✅ delivered")
    await ann.tap("Repeat")
    await ann.sees("Price")


async def test_somebody_elses_order_stays_theirs(here: Town) -> None:
    ann, bob = await here.person("Ann"), await here.person("Bob")
    await confirmed(ann)
    await ann.sees("Generation complete")
    await bob.say("/start")
    for verb in ("again", "repeat", "change", "cancel", "order"):
        press = await bob.press(bob.screen, f"{verb}:1")
        assert press.text == "This order belongs to somebody else. Write /start to make your own.", verb


async def test_a_repeated_update_changes_nothing(here: Town) -> None:
    """After a crash every handler is called again."""
    ann = await here.person()
    updates: list[Update] = []
    handle = here.bot.handle

    async def twice(update: Update, *, first: bool, **_: object) -> None:
        updates.append(update)
        await handle(update, first=first)
        await handle(update, first=False)

    here.bot.handle = twice  # type: ignore[method-assign]
    await ann.say("/models z-image")
    await ann.tap("Z-Image")
    await ann.say("a cat")
    shown = await ann.sees("Aspect ratio")
    assert "⚠️" not in shown.text, "the text is not taken for the next answer"
    await ann.tap("4:3")
    await ann.sees("Price")
    await ann.tap("Generate")
    await ann.sees("Generation complete")
    await ann.say("/gen z-image a dog")
    await ann.sees(lambda message: "#2" in message.text and "complete" in message.text)

    assert len(updates) == 6
    assert len(await here.jobs(ann)) == 2
    assert await ann.available() == 1_000_000 - 1600
    assert len([message for message in ann.from_bot if message.kind == "photo"]) == 2


async def test_an_order_whose_handler_failed_for_good_is_not_ordered_again_by_another_press(
    here: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await here.person()
    await ann.say("a fox")
    screen = await ann.sees("Shall I")
    data = screen.buttons[0]["callback_data"]

    async def die(*_: object) -> None:
        raise ConnectionError("the process dies here")

    monkeypatch.setattr(here.bot._view, "keep", die)
    with pytest.raises(AssertionError):
        await ann.press(screen, data)
    here.postman.failures.clear()
    monkeypatch.undo()
    await ann.sees("Something went wrong on our side")
    await ann.press(screen, data)
    await ann.sees("Generation complete")

    assert len(await here.jobs(ann)) == 1


async def test_two_instances_with_the_same_update_order_once(here: Town) -> None:
    """A lane whose lease ran out is worked on by two for a moment."""
    ann = await here.person()
    async with here.another_bot() as other:
        handle = other.handle

        async def both(update: Update, *, first: bool, **_: object) -> None:
            await asyncio.gather(handle(update, first=first), here.bot.handle(update, first=False))

        other.handle = both  # type: ignore[method-assign]
        await ann.say("/models z-image")
        await ann.tap("Z-Image")
        await ann.say("a cat")
        await ann.sees("Aspect ratio")
        await ann.tap("4:3")
        await ann.sees("Price")
        await ann.tap("Generate")
        await ann.sees("Generation complete")
        await here.quiet()

    assert len(await here.jobs(ann)) == 1
    assert await ann.available() == 1_000_000 - 800
    assert len([message for message in ann.from_bot if message.kind == "photo"]) == 1


@pytest.mark.parametrize("method", ["editMessageText", "sendMessage", "answerCallbackQuery", "deleteMessage"])
async def test_a_lost_answer_of_telegrams_ends_in_the_same_order(here: Town, method: str) -> None:
    ann = await here.person()
    here.postman.patient = True
    here.telegram.faults.once(Fault.DROP_AFTER, method=method)
    await ann.say("/models z-image")
    await ann.tap("Z-Image")
    await ann.say("a cat")
    await ann.sees("Aspect ratio")
    await ann.tap("4:3")
    await ann.sees("Price")
    await ann.tap("Generate")
    await ann.sees("Generation complete")

    assert [call.faults for call in here.telegram.calls(method) if call.faults] == [["drop_after"]]
    assert len(await here.jobs(ann)) == 1


async def test_a_screen_that_the_person_deleted_comes_anew(here: Town) -> None:
    ann = await here.person()
    await ann.say("/models z-image")
    await ann.tap("Z-Image")
    screen = ann.screen
    await ann.hands.delete(screen)
    await ann.say("a cat")
    await ann.sees("Aspect ratio")

    assert len(ann.from_bot) == 1


async def test_whoever_blocks_the_bot_is_remembered_and_comes_back(here: Town) -> None:
    ann = await here.person()
    await ann.say("/start")
    async with here.done():
        await ann.hands.block()
    assert (await here.store.profile(ann.number)).blocked_at is not None
    async with here.done(2):
        await ann.hands.say("/start")

    assert (await here.store.profile(ann.number)).blocked_at is None


async def test_commands_are_registered_once_in_both_languages(here: Town) -> None:
    calls = here.telegram.calls("setMyCommands")
    languages = [call.arguments.get("language_code") for call in calls]
    assert {None, "ru"} <= set(languages)
    await here.bot.start()
    assert len(here.telegram.calls("setMyCommands")) == len(calls)
