"""What users of the bot found confusing on first use."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from genlock.bot.context import UpdateContext
from genlock.bot.handlers.messages import PART_SECONDS, _join_parts
from genlock.bot.order import wizard
from genlock.bot.order.draft import Draft, PartialText, Step
from genlock.bot.storefront.storefront import Storefront, text_only
from genlock.domain.catalog import Category
from genlock.domain.profile import Profile
from genlock.i18n.catalog_texts import category_title
from genlock.i18n.translator import translator
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.media import make_video
from tests.bot.pages import label, page
from tests.bot.steps import picture
from tests.bot.world import BotWorld, holds, running_bot, sqlite_url
from tests.packaged import CATALOG

SHOP = Storefront(CATALOG, markup=2.0, credit_usd=0.01)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[BotWorld]:
    async with running_bot(sqlite_url(tmp_path)) as made:
        yield made


# the name of a model


@pytest.mark.parametrize(
    "line", ["zimage-foo cat", "z-image-foo cat", "z-imagefoo cat", "nano cat", "image cat", "a cat", "- cat", "z cat"]
)
def test_an_incomplete_model_name_matches_nothing(line: str) -> None:
    assert SHOP.match_name(line) is None


def test_a_model_name_ends_at_a_space_a_newline_or_a_colon() -> None:
    for line in ("z-image a cat", "z-image\na cat", "Z Image: a cat", "z-image, a cat"):
        found = SHOP.match_name(line)
        assert found is not None, line
        assert (found[0].id, found[1]) == ("z-image", "a cat"), line


def test_a_mistyped_name_suggests_models() -> None:
    for line, wanted in (
        ("zimage-foo a cat", "z-image"),
        ("z-imge a cat", "z-image"),
        ("nano bananna pro a cat", "nano-banana-pro"),
        ("nano a cat", "google/nano-banana"),
    ):
        models, text = SHOP.similar(line)
        assert (wanted in [model.id for model in models], text) == (True, "a cat"), (line, models, text)
    assert SHOP.similar("qqqqq a cat") == ([], "a cat")
    assert SHOP.similar("") == ([], "")


@pytest.mark.parametrize(("language", "asks"), [("en", "Did you mean"), ("ru", "Может быть")])
async def test_an_unknown_model_suggests_similar_ones_that_keep_the_text(
    world: BotWorld, language: str, asks: str
) -> None:
    ann = await world.add_user(language=language)
    await ann.write("/gen zimage-foo cat with wings")
    screen = await ann.sees(asks)
    assert "zimage-foo" in screen.text
    assert await world.jobs(ann) == []
    await ann.tap("Z-Image")
    confirm = await ann.sees("🧾 Z-Image")

    assert "cat with wings" in confirm.text
    assert "-foo" not in confirm.text
    assert await world.jobs(ann) == []


# past orders


async def test_past_orders_are_listed_with_their_prompts(world: BotWorld) -> None:
    ann = await world.add_user()
    for words in ("a red fox in the snow under the northern lights", "a bear"):
        await ann.write(f"/gen z-image {words}")
    await world.quiet()
    await ann.write("/history")
    screen = await ann.sees(page("history.title"))
    bear, fox = (button["text"] for button in screen.buttons[:2])
    assert "a bear · " in bear
    assert "a red fox in the snow… · " in fox
    await ann.tap("a red fox")

    await ann.sees("a red fox in the snow under the northern lights")
    item = ann.screen
    assert "Z-Image · #1" in item.text
    assert "northern lights" in item.text


@pytest.mark.parametrize("language", ["en", "ru"])
def test_labels_of_paired_buttons_fit_on_a_phone(language: str) -> None:
    t = translator(language)
    for key in ("again", "repeat", "change_repeat", "menu", "try_again"):
        assert len(t.plain(f"button.{key}")) <= 20, key


# results


async def test_a_song_file_is_titled_by_its_prompt(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/gen suno/generate a song about a cat who flew to the Moon")
    await ann.sees(page("order.done"))
    songs = [message.content["audio"] for message in ann.from_bot if message.kind == "audio"]

    assert songs
    for song in songs:
        assert song["title"] == "a song about a cat who flew to the Moon"
        assert song["performer"] == world.catalog.get("suno/generate").title


@pytest.mark.parametrize(
    ("language", "line"),
    [("en", "Order #1 failed. See the message above"), ("ru", "Заказ #1 не выполнен, подробности выше")],
)
async def test_a_failure_is_explained_once_and_notified_once(world: BotWorld, language: str, line: str) -> None:
    ann = await world.add_user(language=language)
    world.kie.faults.order(Fault.TASK_MODERATED)
    await ann.write("/gen z-image something")
    notice = await ann.sees(line)
    told = next(message for message in ann.from_bot if message.id == notice.reply_to)

    assert "\n" not in notice.text
    assert "😔" in told.text
    assert "💰" in told.text
    assert notice.buttons == []
    assert [button["callback_data"] for button in told.buttons] == ["change:1", "menu"], (
        "the same again would fail again"
    )


async def test_the_tap_that_orders_is_answered_with_the_order_number(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a fox")
    press = await ann.tap(label("button.generate"))

    assert press.text == "Order #1 accepted."


# paying


async def test_after_paying_without_an_order_the_menu_is_below_the_receipt(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    await ann.write("/start")
    await ann.tap(label("button.topup"))
    packages = await ann.sees(page("topup.title"))
    await ann.tap("⭐ 100")
    bill = await ann.sees(lambda message: message.kind == "invoice")
    async with world.done(2):
        await ann.client.pay(bill)
    receipt = await ann.sees("Thank you! 120\u00a0credits added")
    menu = await ann.sees(page("menu.nothing_chosen"))

    assert menu.id > receipt.id
    assert "120\u00a0credits" in menu.text
    assert packages.id not in [message.id for message in ann.from_bot], "it showed the balance of before"
    await ann.press(menu, "balance")
    assert any(message.id == receipt.id and page("topup.paid")(message) for message in ann.from_bot)


# prices in the model list


def test_the_model_list_shows_and_is_sorted_by_the_usual_price() -> None:
    grok = next(model for model in SHOP.models() if model.title == "Grok Imagine Video 1.5")
    usual = SHOP.usual_price(grok)
    assert usual.exact
    assert usual.price == SHOP.price(grok, grok.minimal_input(), {}) > SHOP.price_from(grok)
    for category in Category:
        prices = [SHOP.usual_price(model).price for model in SHOP.models(category)]
        assert prices == sorted(prices)
    exact = [model for model in SHOP.models() if SHOP.usual_price(model).exact]
    assert len(exact) > len(SHOP.models()) / 2
    for model in exact:
        assert SHOP.usual_price(model).price == SHOP.price(model, model.minimal_input(), {}), model.id


@pytest.mark.parametrize(
    ("language", "second", "characters"), [("en", "/s", "/1k chars"), ("ru", "/сек", "/1\u00a0000 зн.")]
)
async def test_a_price_by_length_is_shown_per_unit(
    world: BotWorld, language: str, second: str, characters: str
) -> None:
    ann = await world.add_user(language=language)
    rows: dict[str, str] = {}
    shop = Storefront(world.catalog, markup=world.rules.markup, credit_usd=world.rules.credit_usd)
    for title in ("Grok Imagine Video 1.5", "InfiniteTalk", "ElevenLabs Turbo 2.5"):
        await ann.write(f"/models {title}")
        await ann.sees(title)
        rows |= {title: next(button["text"][2:] for button in ann.screen.buttons if f" {title} ·" in button["text"])}
    assert rows["InfiniteTalk"] == f"InfiniteTalk · 3{second}"
    assert rows["ElevenLabs Turbo 2.5"] == f"ElevenLabs Turbo 2.5 · 6{characters}"
    grok = next(model for model in shop.models() if model.title == "Grok Imagine Video 1.5")
    price = translator(language).amount(shop.usual_price(grok).price)
    assert rows[grok.title] == f"{grok.title} · {price}"
    await ann.write(f"/models {grok.title}")
    await ann.tap(f"{grok.title} ·")
    card = ann.screen
    assert f"{price}\u00a0" in card.text.partition("💰")[2]


def test_a_model_offered_for_a_text_asks_for_nothing_else() -> None:
    offered = list(filter(text_only, SHOP.models()))
    assert len(offered) > 20
    for model in offered:
        draft = wizard.skip_rest(
            wizard.start_order(Draft(text="a long enough text"), model, model.category.value), model
        )
        assert draft.step is Step.CONFIRM, model.id


# files that came by themselves


async def test_going_back_from_a_model_list_keeps_the_waiting_photo(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.send("photo", picture())
    await ann.sees(page("misc.what_with_file"))
    assert not any(
        category_title(Category.VIDEO_TO_VIDEO, translator("en")) in button["text"] for button in ann.screen.buttons
    )
    await ann.tap(category_title(Category.IMAGE_TO_IMAGE, translator("en")))
    await ann.sees("Kept: 1\u00a0file")
    await ann.tap(label("button.back"))
    await ann.sees(page("misc.what_with_file"))
    await ann.tap(category_title(Category.BACKGROUND_REMOVAL, translator("en")))
    await ann.sees("Your image: 📎 1")
    await ann.tap(label("button.back"))
    await ann.sees(page("misc.what_with_file"))


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_the_menu_says_that_a_waiting_photo_is_dropped(world: BotWorld, language: str) -> None:
    ann = await world.add_user(language=language)
    await ann.send("photo", picture())
    await ann.tap(label("button.menu", language=language))
    await ann.sees(page("menu.files_dropped", language=language))
    await ann.tap(label("wish.edit", language=language))

    assert not page("list.carried_files", language=language)(ann.screen)


async def test_going_back_to_the_menu_keeps_the_waiting_text(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a red fox")
    await ann.tap(label("button.other_model"))
    await ann.sees(page("list.carried_text", text="a red fox"))
    await ann.tap(label("button.back"))
    assert holds(page("menu.nothing_chosen"), "I've kept your text: a red fox")(ann.screen)


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_a_photo_that_the_current_order_has_no_field_for_can_be_used_for_another_order(
    world: BotWorld, language: str
) -> None:
    t = translator(language)
    ann = await world.add_user(language=language)
    await ann.write("a red fox")
    await ann.send("photo", picture())
    await ann.sees(t.plain("refused.no_place_image"))
    await ann.tap(t.plain("button.instead"))
    await ann.sees(t.plain("misc.what_with_file"))
    await ann.tap(category_title(Category.BACKGROUND_REMOVAL, translator(language)))
    assert "📎 1" in ann.screen.text


@pytest.mark.parametrize(("kind", "other"), [("photo", "Topaz Video"), ("video", "Topaz Image")])
async def test_a_model_list_shows_only_models_that_take_the_waiting_file(
    world: BotWorld, kind: str, other: str
) -> None:
    ann = await world.add_user()
    await ann.send(kind, picture() if kind == "photo" else make_video("A film", {}, 1))
    await ann.tap(category_title(Category.UPSCALE, translator("en")))
    shown = [ann.screen.text, *(button["text"] for button in ann.screen.buttons)]

    assert any("Topaz" in row for row in shown)
    assert not any(other in row for row in shown)


async def test_back_from_a_search_shows_the_model_list(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await ann.tap(label("wish.music"))
    await ann.write("kling")
    await ann.sees("🔎 kling")
    await ann.tap(label("button.back"))
    shown = await ann.sees(page("wish.hint_music"))

    assert any("Suno" in button["text"] for button in shown.buttons)


async def test_a_page_opened_during_an_order_has_a_button_back_to_it(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a red fox")
    for command in ("/language", "/gen", "/gen qqqqq a cat"):
        await ann.write(command)
        assert "a red fox" not in ann.screen.text, command
        await ann.tap(label("button.back"))
        await ann.sees(holds(page("confirm.price"), "a red fox"))
    assert len(ann.from_bot) == 1
    await ann.tap(label("button.menu", "button.cancel"))
    await ann.write("/language")

    assert ann.screen.buttons[-1]["callback_data"] == "menu"


async def test_gen_removes_the_old_screen(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await ann.write("/gen z-image a fox")
    await ann.sees(page("order.done"))

    assert [message.kind for message in ann.from_bot] == ["photo", "text"]


@pytest.mark.parametrize("later", [PART_SECONDS, PART_SECONDS + 1])
def test_a_text_is_joined_only_with_a_message_sent_right_after_it(later: int) -> None:
    draft = Draft(
        step=Step.CONFIRM,
        model="z-image",
        partial_text=PartialText(text="a" * 3000, sent=1000, step=Step.ASK, field="prompt"),
    )
    at = datetime.fromtimestamp(1000, UTC)
    profile = Profile(
        account_id=1, external_id="1", language="en", name="", username="", referred_by=None, last_model="",
        banned_at=None, ban_reason="", blocked_at=None, created_at=at, created=False,
    )  # fmt: skip
    ctx = UpdateContext(update=1, first=True, profile=profile, chat=1, thread=None, group=False, draft=draft)
    text = _join_parts(ctx, "b", datetime.fromtimestamp(1000 + later, UTC))

    assert (text == "b") is (later > PART_SECONDS)
    assert ctx.draft.step is (Step.CONFIRM if later > PART_SECONDS else Step.ASK)


def test_a_search_prefers_titles_and_else_matches_every_word() -> None:
    assert {model.title.startswith("Wan 2.2") for model in SHOP.search("wan 2.2")} == {True}
    assert [model.title for model in SHOP.search("banana pro")] == ["Nano Banana Pro"]
    assert {"google/imagen4", "nano-banana-pro"} <= {model.id for model in SHOP.search("google")}
    assert [model.title for model in SHOP.search("pro banana")] == ["Nano Banana Pro"]
    assert SHOP.search("qqq") == SHOP.search(" - ") == []
