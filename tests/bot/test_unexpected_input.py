"""Repeated taps, outdated buttons, buttons of other users, unsupported messages: each gets the right answer."""

import asyncio
import io
from pathlib import Path

import pytest
from PIL import Image
from telegram import Update

from genlock.bot.rules import BotRules
from genlock.channels.telegram import channel
from genlock.domain.job import Delivery, State
from genlock.sandbox.telegram.faults import Fault
from genlock.stores.sqlite import SqliteStore
from tests.bot.pages import label, page
from tests.bot.world import BotWorld, ChatUser, running_bot, sqlite_url


def picture(size: int = 64) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (size, size), "navy").save(file, "PNG")
    return file.getvalue()


async def confirmed(ann: ChatUser, text: str = "a fox") -> None:
    await ann.write(text)
    await ann.sees(page("confirm.suggestion"))
    await ann.tap(label("button.generate"))


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

    assert (first.answered, second.answered) == (True, True)
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


async def test_an_outdated_button_shows_the_current_draft(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/models z-image")
    await ann.tap("Z-Image")
    await ann.write("a cat")
    choice = await ann.sees("Aspect ratio")
    old = next(one["callback_data"] for one in choice.buttons if "1:1" in one["text"])
    await ann.tap("3:4")
    await ann.sees(page("confirm.price"))
    press = await ann.press(choice, old)
    shown = await ann.sees(page("confirm.price"))

    assert press.answered
    assert "Aspect ratio: 3:4" in shown.text


async def test_a_button_of_an_earlier_screen_shows_the_current_one(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/models z-image")
    list_ = ann.screen
    back = next(one["callback_data"] for one in list_.buttons if "Back" in one["text"])
    await ann.tap("Z-Image")
    await ann.write("a cat")
    await ann.sees("Aspect ratio")
    press = await ann.press(list_, back)

    assert press.text == "This button is out of date. Here's where you are now."
    assert "Aspect ratio" in ann.screen.text
    assert len(ann.from_bot) == 1


async def test_an_unknown_button_is_answered(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    for data in ("", "nonsense", "w:zz:go", "w:::", "cat:nothing:0", "model:00000000:all", "again:x", "order:999999"):
        press = await ann.press(ann.screen, data)
        assert press.answered, data
    assert len(ann.from_bot) == 1


async def test_every_kind_of_message_gets_an_answer(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    for content in ({"sticker": {"file_id": "s", "file_unique_id": "u", "width": 1, "height": 1, "type": "regular",
                                 "is_animated": False, "is_video": False}},
                    {"location": {"longitude": 1.0, "latitude": 1.0}},
                    {"contact": {"phone_number": "1", "first_name": "B"}},
                    {"dice": {"emoji": "🎲", "value": 3}}):  # fmt: skip
        before = len(ann.from_bot)
        async with world.done():
            ann.client._write(content, None, reply_to=None)
        assert len(ann.from_bot) == before + 1
        assert page("misc.not_understood")(ann.client.last)
    await ann.write("/nonsense")
    await ann.sees(page("misc.unknown_command"))
    await ann.send("document", b"%PDF-1.7 hello", name="a.pdf")
    await ann.sees(page("misc.no_models_for_file"))


async def test_an_edited_message_is_answered(world: BotWorld) -> None:
    ann = await world.add_user()
    message = await ann.write("a fox")
    async with world.done():
        await ann.client.edit(message, "a bear")

    await ann.sees(page("misc.edited"))


async def test_a_running_order_can_be_cancelled(world: BotWorld) -> None:
    world.kie.service.speed = 0.01
    ann = await world.add_user()
    await confirmed(ann)
    assert await ann.available() == 1_000_000 - 800
    await ann.write("/cancel")
    await ann.sees(page("menu.which_to_cancel"))
    press = await ann.tap("#1 · ⏳ a fox")
    told = await ann.sees("Order #1 cancelled")

    assert press.text == "Cancelled. You weren't charged."
    assert "Your credits are back on your balance: 0.8 credits" in told.text
    assert await ann.available() == 1_000_000
    [job] = await world.jobs(ann)
    assert job.state is State.CANCELLED
    await world.quiet()
    assert len([message for message in ann.from_bot if "cancelled" in message.text]) == 1
    again = await ann.press(told, f"cancel:{job.id}")
    assert again.text == "This order has already finished."


@pytest.mark.parametrize(("language", "told"), [("en", "too late to cancel"), ("ru", "Отменить уже нельзя")])
async def test_cancelling_submitted_orders_is_limited_per_day(tmp_path: Path, language: str, told: str) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=BotRules(late_cancels_per_day=1)) as world:
        world.kie.service.speed = 0.01
        ann = await world.add_user(language=language)
        for _ in range(2):
            await ann.write("/gen z-image a fox")
            await reached(world, ann, State.RUNNING)
            [job, *_] = await world.jobs(ann)
            press = await ann.press(ann.from_bot[-1], f"cancel:{job.id}")
            assert (told in press.text) is (job.id > 1)

        assert [job.state for job in await world.jobs(ann)] == [State.RUNNING, State.CANCELLED]


async def reached(world: BotWorld, ann: ChatUser, state: State) -> None:
    """Wait until the newest order is in this state."""
    async with asyncio.timeout(20):
        while (await world.jobs(ann))[0].state is not state:  # noqa: ASYNC110 - the engine sets no event of ours
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("by_command", [True, False])
async def test_an_order_can_be_cancelled_from_its_own_message_at_once(world: BotWorld, *, by_command: bool) -> None:
    world.kie.service.speed = 0.01
    ann = await world.add_user()
    if by_command:
        await ann.write("/gen z-image a fox")
    else:
        await confirmed(ann)
    shown = await ann.sees("akes about 55 seconds.")
    await ann.tap(label("button.stop"), on=shown)
    await ann.sees("Order #1 cancelled")

    assert await ann.available() == 1_000_000


async def test_an_old_menu_button_does_not_overwrite_an_order(world: BotWorld) -> None:
    world.kie.service.speed = 0.01
    ann = await world.add_user()
    await ann.write("/start")
    screen = ann.screen
    await ann.tap(label("wish.draw"))
    await ann.tap("Z-Image")
    await ann.tap(label("button.example"))
    await ann.tap(label("button.generate"))
    order = await ann.sees(page("order.accepted"))
    assert order.id == screen.id
    for number in range(10):  # it is no longer among the newest orders
        await ann.write(f"/gen z-image {number}")
    await ann.press(screen, "cat:music:0")
    shown = await ann.sees("Music")

    assert shown.id != order.id
    assert page("order.accepted")(order)


@pytest.mark.slow
async def test_progress_is_shown_on_the_message_that_becomes_the_result(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "PROGRESS_POINTS", (0.08,))  # of 55 s, while the task takes 6
    world.kie.service.speed = 55 / 6
    ann = await world.add_user()
    await confirmed(ann)
    accepted = await ann.sees(page("order.accepted"))
    progress = await ann.sees("%")
    assert progress.id == accepted.id
    assert "Z-Image · #1" in progress.text
    assert any("Cancel the order" in one["text"] for one in progress.buttons)
    await ann.sees(page("order.done"))
    picture_ = next(message for message in ann.from_bot if message.id == accepted.id)

    assert picture_.kind == "photo"


async def test_forged_button_data_is_answered_and_breaks_nothing(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a fox")
    await ann.sees(page("confirm.suggestion"))
    for verb in ("example", "pick:0", "skip", "clear", "edit:99", "turn:9999", "done", "topup", "nothing"):
        data = [one["callback_data"].split(":") for one in ann.screen.buttons]
        version = next((words[1] for words in data if words[0] == "w"), "0")
        press = await ann.press(ann.screen, f"w:{version}:{verb}")
        assert press.answered, verb
    assert await world.jobs(ann) == []


async def test_a_poison_result_cannot_be_sent_again_by_the_user(world: BotWorld) -> None:
    ann = await world.add_user()
    await confirmed(ann)
    notice = await ann.sees(page("order.done"))
    await world.quiet()
    assert isinstance(world.store, SqliteStore)
    words = "the worker crashed 8 times while processing it"
    await world.store.session.call(
        lambda connection: connection.execute(
            "UPDATE jobs SET attention_code = 'poison', attention_reason = ?", (words,)
        )
    )

    press = await ann.press(notice, f"again:{(await world.jobs(ann))[0].id}")

    assert press.text.startswith("I can't show this result")
    [job] = await world.jobs(ann)
    assert (job.delivery, job.due_at, job.attention_reason) == (Delivery.DELIVERED, None, words)


async def test_a_result_can_be_sent_again_repeated_and_changed(world: BotWorld) -> None:
    ann = await world.add_user()
    await confirmed(ann)
    notice = await ann.sees(page("order.done"))
    await ann.tap(label("button.what_next"), on=notice)
    await ann.sees(page("next.choose"))
    press = await ann.tap(label("button.again"))
    await ann.sees(lambda message: message.kind == "photo" and message.id > notice.id)
    assert press.text == "Sending it now."
    shown = world.telegram.calls("editMessageMedia")[-1]
    assert shown.uploaded == 0, "from Telegram's own copy"
    assert not shown.arguments["media"]["media"].startswith("http")
    assert await ann.available() == 1_000_000 - 800

    await ann.tap(label("button.change_repeat"), on=notice)
    options = await ann.sees(page("options.title"))
    assert options.id > notice.id, "the notice stays, with its buttons"
    await ann.tap("Aspect ratio")
    await ann.tap("9:16")
    await ann.tap(label("button.done"))
    await ann.sees("a fox")
    await ann.tap(label("button.generate"))
    second = await ann.sees(lambda message: "#2" in message.text and page("order.done")(message))
    jobs = await world.jobs(ann)
    assert '"9:16"' in jobs[0].input

    await ann.tap(label("button.repeat"), on=second)
    await ann.sees(lambda message: message.id > second.id and page("confirm.price")(message))
    assert any("Repeat" in one["text"] for one in second.buttons)
    await ann.tap(label("button.generate"))
    await ann.sees(lambda message: "#3" in message.text and page("order.done")(message))
    jobs = await world.jobs(ann)
    assert jobs[0].input == jobs[1].input


async def test_the_history_has_pages_and_buttons_for_each_order(world: BotWorld) -> None:
    ann = await world.add_user()
    for number in range(10):
        await ann.write(f"/gen z-image fox {number}")
    await ann.sees(lambda message: "#10" in message.text and page("order.done")(message))
    await world.quiet()  # all notices have arrived, so the list is the newest message
    await ann.write("/history")
    rows = [one["text"] for one in ann.screen.buttons if one["callback_data"].startswith("order:")]
    assert len(rows) == 8
    await ann.tap(label("button.more"))
    rows = [one["text"] for one in ann.screen.buttons if one["callback_data"].startswith("order:")]
    assert len(rows) == 2
    await ann.tap(label("button.newer"))
    await ann.tap("fox 9")
    await ann.sees(page("history.delivered"))
    await ann.tap(label("button.repeat"))
    await ann.sees(page("confirm.price"))


async def test_a_user_cannot_act_on_the_order_of_another_user(world: BotWorld) -> None:
    ann, bob = await world.add_user("Ann"), await world.add_user("Bob")
    await confirmed(ann)
    await ann.sees(page("order.done"))
    await bob.write("/start")
    for verb in ("again", "repeat", "change", "cancel", "order"):
        press = await bob.press(bob.screen, f"{verb}:1")
        assert page("order.not_yours")(press), verb


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


async def test_two_instances_with_the_same_update_order_once(world: BotWorld) -> None:
    """After a lease has expired, two instances may handle the same update."""
    ann = await world.add_user()
    async with world.another_bot() as other:
        handle = other.handle

        async def both(update: Update, *, first: bool, **_: object) -> None:
            await asyncio.gather(handle(update, first=first), world.bot.handle(update, first=False))

        other.handle = both  # type: ignore[method-assign]
        await ann.write("/models z-image")
        await ann.tap("Z-Image")
        await ann.write("a cat")
        await ann.sees("Aspect ratio")
        await ann.tap("4:3")
        await ann.sees(page("confirm.price"))
        await ann.tap(label("button.generate"))
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


async def test_a_screen_deleted_by_the_user_is_sent_again(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/models z-image")
    await ann.tap("Z-Image")
    screen = ann.screen
    await ann.client.delete(screen)
    await ann.write("a cat")
    await ann.sees("Aspect ratio")

    assert len(ann.from_bot) == 1


async def test_blocking_and_unblocking_the_bot_is_recorded(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    async with world.done():
        await ann.client.block()
    assert (await world.store.profile(ann.number)).blocked_at is not None
    async with world.done(2):
        await ann.client.say("/start")

    assert (await world.store.profile(ann.number)).blocked_at is None


async def test_commands_are_registered_once_in_both_languages(world: BotWorld) -> None:
    await world.bot.start()
    calls = world.telegram.calls("setMyCommands")
    languages = [call.arguments.get("language_code") for call in calls]
    assert {None, "ru"} <= set(languages)
    await world.bot.start()
    assert len(world.telegram.calls("setMyCommands")) == len(calls)


async def test_a_command_by_another_word_or_with_a_typo_is_understood_in_both_languages(world: BotWorld) -> None:
    ann, olya = await world.add_user(), await world.add_user("Olya", language="ru")
    for user, language in ((ann, "en"), (olya, "ru")):
        for written, shown in (
            ("/gallery", "gallery.none"), ("/галерея", "gallery.none"), ("/Галерея", "gallery.none"),
            ("/wallet", "balance.title"), ("/баланс", "balance.title"), ("/избранное", "favourite.none"),
        ):  # fmt: skip
            await user.write(written)
            assert page(shown, language=language)(user.from_bot[-1]), written
        for written, command in (
            ("/galery", "results"), ("/галирея", "results"), ("/histroy", "history"), ("/ифдфтсу", "balance"),
            ("/balans", "balance"), ("/topap", "topup"), ("/langage", "language"), ("/помошь", "help"),
            ("/apii", "api"),
        ):  # fmt: skip
            await user.write(written)
            key = "command_guess.text" if command == "api" else "command_guess.text_about"
            assert page(key, language=language, typed=written[1:], command=command)(user.from_bot[-1]), written
        for written in ("/admin", "/xyzzy"):
            await user.write(written)
            assert page("misc.unknown_command", language=language)(user.from_bot[-1]), written
        for written in ("/imagine a red fox", "/нарисуй красную лису", "/слон в саду"):
            await user.write(written)
            assert page("confirm.suggestion", "confirm.price", language=language)(user.from_bot[-1]), written
    assert world.intake.failures == []
    assert await world.jobs(ann) == []
