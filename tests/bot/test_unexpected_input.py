"""Outdated and forged buttons, buttons of other users, unsupported messages: each gets the right answer."""

from typing import Any

import pytest

from genlock.domain.events import Event
from tests.bot.pages import label, page
from tests.bot.steps import confirmed, picture
from tests.bot.world import BotWorld


async def test_an_outdated_button_shows_the_current_draft(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/models z-image")
    await ann.tap("Z-Image")
    await ann.write("a cat")
    choice = await ann.sees("Aspect ratio")
    old = next(button["callback_data"] for button in choice.buttons if "1:1" in button["text"])
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
    back = next(button["callback_data"] for button in list_.buttons if label("button.back").search(button["text"]))
    await ann.tap("Z-Image")
    await ann.write("a cat")
    await ann.sees("Aspect ratio")
    press = await ann.press(list_, back)

    assert page("order.stale")(press)
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
                    {"checklist": {"title": "To do", "tasks": [{"id": 1, "text": "buy milk"}]}},
                    {"invoice": {"title": "T", "description": "D", "start_parameter": "", "currency": "XTR",
                                 "total_amount": 5}},
                    {"giveaway": {"chats": [], "winners_selection_date": 1, "winner_count": 1}},
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


async def test_a_live_photo_is_its_picture(world: BotWorld) -> None:
    """A Bot API server may leave out the field `photo`, which it keeps for older bots only."""
    ann = await world.add_user()
    await ann.write("/models Recraft Remove Background")
    await ann.tap("Recraft Remove Background ·")
    stored = await ann.client._stored("photo", picture(), None)
    film = {"file_id": "f", "file_unique_id": "f", "width": 640, "height": 480, "duration": 3}
    async with world.done():
        ann.client._write({"live_photo": {**film, "photo": stored.media_object}}, None, reply_to=None)

    await ann.sees("Your image: 📎 1")


async def test_an_edited_message_is_answered(world: BotWorld) -> None:
    ann = await world.add_user()
    message = await ann.write("a fox")
    async with world.done():
        await ann.client.edit(message, "a bear")

    assert page("misc.edited")(ann.from_bot[-1])
    assert "a fox" in ann.screen.text, "the order stays as it was"


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
    shown = await ann.sees(page("wish.music"))

    assert shown.id != order.id
    assert page("order.accepted")(order)


async def test_forged_button_data_is_answered_and_breaks_nothing(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a fox")
    await ann.sees(page("confirm.suggestion"))
    for verb in ("example", "pick:0", "skip", "clear", "edit:99", "turn:9999", "done", "topup", "nothing"):
        data = [button["callback_data"].split(":") for button in ann.screen.buttons]
        version = next((words[1] for words in data if words[0] == "w"), "0")
        press = await ann.press(ann.screen, f"w:{version}:{verb}")
        assert press.answered, verb
    assert await world.jobs(ann) == []


async def test_a_user_cannot_act_on_the_order_of_another_user(world: BotWorld) -> None:
    ann, bob = await world.add_user("Ann"), await world.add_user("Bob")
    await confirmed(ann)
    await ann.sees(page("order.done"))
    await bob.write("/start")
    for verb in ("again", "repeat", "change", "cancel", "order"):
        press = await bob.press(bob.screen, f"{verb}:1")
        assert page("order.not_yours")(press), verb


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
            assert page("command_guess.text_about", language=language, typed=written[1:], command=command)(
                user.from_bot[-1]
            ), written
        for written in ("/admin", "/xyzzy"):
            await user.write(written)
            assert page("misc.unknown_command", language=language)(user.from_bot[-1]), written
        for written in ("/imagine a red fox", "/нарисуй красную лису", "/слон в саду"):
            await user.write(written)
            assert page("confirm.suggestion", "confirm.price", language=language)(user.from_bot[-1]), written
    assert world.intake.failures == []
    assert await world.jobs(ann) == []


@pytest.mark.parametrize("message", [None, {"message_id": 5, "date": 0}])
async def test_a_press_on_a_message_that_telegram_no_longer_has_is_not_retried_when_its_query_has_expired(
    world: BotWorld, message: dict[str, Any] | None
) -> None:
    ann = await world.add_user()
    query: dict[str, Any] = {"id": "1", "from": ann.client.user.as_json(), "chat_instance": "1", "data": "x"}
    if message is not None:
        query["message"] = {**message, "chat": {"id": ann.client.id, "type": "private", "first_name": "Ann"}}
    await world.deliver({"update_id": 7_000_000, "callback_query": query})

    assert len(world.telegram.calls("answerCallbackQuery")) == 1
    assert world.recorder.of(Event.UPDATE_FAIL) == []
