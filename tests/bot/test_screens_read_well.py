"""Screens as users read them: a style by its name, a sentence for every popular model, buttons that fit a phone."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from genlock.bot.buttons import BESIDE_ANOTHER, pairs
from genlock.domain.field import FieldType
from genlock.i18n.translator import translator
from genlock.ports import Button
from genlock.sandbox.telegram.chats import Message
from genlock.sandbox.telegram.voice import sample_voice
from tests.bot.order_by_chat import sample
from tests.bot.pages import label, page
from tests.bot.world import BotWorld, running_bot, sqlite_url
from tests.packaged import CATALOG

WORDS = re.compile(r"\w{4,}")


def crowded(message: Message) -> list[list[str]]:
    """Return the rows of buttons with words of which more than two stand side by side: a phone would break them."""
    rows = [[button["text"] for button in row] for row in (message.markup or {}).get("inline_keyboard", [])]
    return [row for row in rows if len(row) > 2 and any(WORDS.search(text) for text in row)]


async def test_a_style_is_shown_by_its_name_and_not_by_the_text_for_the_model(world: BotWorld) -> None:
    olya = await world.add_user("Olya", language="ru")
    await olya.write("рыжий кот на крыше")
    await olya.tap(label("style.button", language="ru"))
    await olya.tap("Акварель")
    assert crowded(olya.screen) == []
    await olya.tap(label("button.generate", language="ru"))
    await world.quiet()
    [picture] = [message for message in olya.from_bot if message.kind == "photo"]
    [job] = await world.jobs(olya)
    assert "Watercolour" in job.input
    assert picture.text.splitlines()[1:] == ["рыжий кот на крыше", "🎨 Акварель"]

    await olya.tap(label("button.next_image_animate", language="ru"), on=picture)
    shown = [olya.screen.text]
    for command in ("/results", "/history"):
        await olya.write(command)
        shown += [olya.from_bot[-1].text, *(button["text"] for button in olya.screen.buttons)]
        assert crowded(olya.from_bot[-1]) == []
    assert "рыжий кот на крыше" in shown[0]
    assert not any("Watercolour" in text for text in shown)


async def test_a_popular_model_without_a_sentence_of_its_own_has_that_of_its_category(tmp_path: Path) -> None:
    models = {key: replace(model, good_at={}) for key, model in CATALOG.models.items()}
    async with running_bot(sqlite_url(tmp_path), catalog=replace(CATALOG, models=models)) as world:
        olya, silent = await world.add_user("Olya", language="ru"), []
        for wish in world.catalog.wishes:
            await olya.write("/start")
            await olya.press(olya.screen, f"wish:{wish.name}")
            blocks = olya.screen.text.split("\n\n")[1:-1]
            silent += [block for block in blocks if len(block.splitlines()) != 2]
        assert silent == []


async def test_the_price_of_a_spoken_prompt_holds_although_telegram_rounds_its_length(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.send("voice", sample_voice())
    offer = await ann.sees(page("voice.offer"))
    async with world.done(2):  # the press, and the update about the end
        await ann.tap(label("voice.agree"), on=offer)
    [job] = await world.jobs(ann)
    assert job.price > 0
    assert not any(page("confirm.dearer")(message) for message in ann.from_bot)


@pytest.mark.parametrize(("language", "length", "auto"), [("en", "Length", "auto"), ("ru", "Длительность", "авто")])
async def test_a_length_that_is_left_to_the_model_is_not_zero_seconds(
    world: BotWorld, language: str, length: str, auto: str
) -> None:
    ann = await world.add_user(language=language, having=1000)
    await ann.send("video", sample(FieldType.VIDEO), caption="winter")
    shown = await ann.sees(page("confirm.price", language=language))
    assert f"• {length}: {auto}" in shown.text.splitlines()


@pytest.mark.parametrize("language", ["en", "ru"])
def test_labels_that_stand_beside_another_one_fit_a_phone(language: str) -> None:
    t = translator(language)
    names = [f"button.{name}" for name in ("again", "repeat", "change_repeat", "original", "other_model", "what_next")]
    names += ["variations.button", "gallery.remove", "gallery.button", "style.button"]
    names += [f"admin.button_{name}" for name in ("ban", "unban", "resend", "refund", "user", "payments")]
    labels = [*map(t.plain, names), *(f"🖼 {t.plain(f'wish.{wish.name}')}" for wish in CATALOG.wishes)]

    assert [label for label in labels if len(label) > BESIDE_ANOTHER] == []


def test_a_label_that_is_too_long_for_half_a_phone_has_a_row_of_its_own() -> None:
    short, long = Button(text="🎞 Animate", data="a"), Button(text="🧼 Remove background", data="b")
    assert pairs([]) == []
    assert pairs([short, short, short]) == [(short, short), (short,)]
    assert pairs([short, long, short, short]) == [(short,), (long,), (short, short)]


async def test_a_question_names_the_files_that_the_order_has_already(world: BotWorld) -> None:
    """Under *Your audio*, "Received: 1" would be about the photo."""
    ann = await world.add_user()
    await ann.write("/gen kling/ai-avatar-standard")
    await ann.send("photo", sample(FieldType.IMAGE))
    assert page("ask.audio")(ann.screen)
    assert "📎 Your image: 1" in ann.screen.text.splitlines()
    assert not page("ask.have_files")(ann.screen)
