"""The first screen: what Telegram shows before it, the picture, and three examples to tap."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from genlock.bot.handlers.descriptions import DESCRIPTION_MAX, SHORT_DESCRIPTION_MAX, register_descriptions
from genlock.bot.handlers.welcome import PACKAGED_PICTURE
from genlock.bot.rules import BotRules
from genlock.bot.storefront.menu_screens import EXAMPLES_SHOWN
from genlock.channels.telegram.errors import RateLimited
from genlock.sandbox.telegram.faults import Fault
from tests.bot.pages import label, page
from tests.bot.world import PACKAGES, BotWorld, ChatUser, die_once, running_bot, sqlite_url

LANGUAGES = ("en", "ru")
#: three examples, the wishes two in a row, help and language
FIRST_ROWS = 8


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[BotWorld]:
    rules = BotRules(packages=PACKAGES, per_minute=1000, per_hour=10_000, welcome_picture=PACKAGED_PICTURE)
    async with running_bot(sqlite_url(tmp_path), rules=rules) as found:
        yield found


def examples(user: ChatUser) -> list[str]:
    return [button["callback_data"] for button in user.screen.buttons if button["callback_data"].startswith("try:")]


async def test_a_new_user_sees_a_picture_and_three_examples_ready_to_order(world: BotWorld) -> None:
    for language in LANGUAGES:
        ann = await world.add_user(language=language)
        await ann.write("/start")
        assert [message.kind for message in ann.from_bot] == ["photo", "text"]
        assert page("menu.hello", language=language)(ann.screen)
        menu = ann.screen
        assert len(examples(ann)) == EXAMPLES_SHOWN == 3
        for number, data in enumerate(examples(ann), 1):
            await ann.press(menu, data)
            confirm = await ann.sees(page("confirm.price", language=language))
            key = f"try.prompt_{data.partition(':')[2]}"
            assert world.bot.texts.translator(language).plain(key) in confirm.text
            await ann.tap(label("button.generate", language=language))
            await world.quiet()
            assert len(await world.jobs(ann)) == number
            await ann.write("/start")
            menu = ann.screen
            assert examples(ann) == [], "after the first order the menu is enough"
        photos = [message for message in ann.from_bot if message.kind == "photo"]
        assert len(photos) == 2, "the welcome, and the picture that was made"


async def test_the_first_screen_has_no_more_rows_than_a_phone_shows(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    assert ann.screen.markup
    rows = ann.screen.markup["inline_keyboard"]
    assert len(rows) == FIRST_ROWS
    assert [row[0]["callback_data"].partition(":")[0] for row in rows] == ["try"] * 3 + ["wish"] * 4 + ["help"]
    bob = await world.add_user("Bob", having=0)
    await bob.write("/start")
    assert any(button["callback_data"] == "topup" for button in bob.screen.buttons), (
        "without credits there is a way to get them"
    )


async def test_the_picture_is_uploaded_once_and_then_sent_by_its_id(world: BotWorld) -> None:
    for name in ("Ann", "Bob", "Cid"):
        user = await world.add_user(name)
        await user.write("/start")
        await user.write("/start")
    sent = world.telegram.calls("sendPhoto")
    assert len(sent) == 3
    assert [call.uploaded > 0 for call in sent] == [True, False, False]
    world.telegram.faults.once(Fault.REFUSED, method="sendPhoto", text="Bad Request: wrong file identifier")
    dan = await world.add_user("Dan")
    await dan.write("/start")
    assert [message.kind for message in dan.from_bot] == ["photo", "text"], "Telegram had lost it"


async def test_a_start_handled_twice_sends_the_picture_once(world: BotWorld) -> None:
    ann = await world.add_user()
    die_once(world.drafts, "show", after=False)
    await ann.write("/start")
    assert [message.kind for message in ann.from_bot] == ["photo", "text"]


async def test_an_example_takes_a_model_that_the_user_can_pay(world: BotWorld) -> None:
    ann = await world.add_user(having=20)
    await ann.write("/start")
    await ann.press(ann.screen, "try:video")
    confirm = await ann.sees(page("confirm.price"))
    assert any("✅" in button["text"] for button in confirm.buttons), "the cheaper one of the good models"
    bob = await world.add_user(having=0)
    await bob.write("/start")
    await bob.press(bob.screen, "try:draw")
    await bob.sees(page("confirm.short"))
    await bob.press(bob.screen, "try:nothing")
    await bob.sees(page("menu.nothing_chosen"))


async def test_descriptions_are_told_to_telegram_in_every_language_and_only_when_changed(world: BotWorld) -> None:
    await world.bot.start()
    for method, field, most in (
        ("setMyDescription", "description", DESCRIPTION_MAX),
        ("setMyShortDescription", "short_description", SHORT_DESCRIPTION_MAX),
    ):
        calls = world.telegram.calls(method)
        told = {call.arguments.get("language_code") or "": call.arguments[field] for call in calls}
        for language in LANGUAGES:
            text = world.bot.texts.translator(language).plain(f"profile.{field}")
            assert told["ru" if language == "ru" else ""] == text
            assert len(text) <= most
    before = len(world.telegram.journal)
    async with world.another_bot() as bot:
        await bot.start()
    assert [call.method for call in world.telegram.journal[before:] if call.method.startswith("setMy")] == []

    bundle = world.bot._bundle
    await world.store.kv_put("chat:description:ru", "changed", bundle.id)
    assert await register_descriptions(bundle, world.store) == 1


async def test_a_limit_on_changing_the_description_stops_no_other_call(world: BotWorld) -> None:
    await world.bot.start()
    bundle, stopped = world.bot._bundle, []

    async def stop(chat: int | None, seconds: float) -> None:
        stopped.append((chat, seconds))

    bundle.caller._limiter.stop = stop  # type: ignore[method-assign]
    await world.store.kv_put("chat:description:", "changed", bundle.id)
    world.telegram.faults.once(Fault.TOO_MANY, method="setMyDescription", seconds=3600.0)
    with pytest.raises(RateLimited):
        await register_descriptions(bundle, world.store)
    assert stopped == []
    assert await register_descriptions(bundle, world.store) == 1, "it is tried again"
