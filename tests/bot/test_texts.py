"""The bot's texts cover the product, and a missing one does not keep a result from being delivered."""

from dataclasses import replace
from pathlib import Path

import pytest

import genlock
from genlock.catalog import load
from genlock.domain.alarm import ALARMS, NO_ACTIVE
from genlock.domain.catalog import Category
from genlock.i18n.translator import Texts, package_texts, translator
from tests.bot.world import running_bot, sqlite_url

ENGLISH = package_texts().languages["en"].texts
#: sections whose keys the code composes
COMPOSED = (
    "about.", "admin.", "alarm.", "balance.", "category.", "choice.", "command.", "command_words.", "example.",
    "failed.", "history.", "invite.", "member.", "refused.", "title.", "ask.", "card.facts_", "language.choose",
    "list.row_", "topup.banned", "topup.maintenance", "button.next_", "unit.short_", "next.prompt_", "wish.", "try.",
    "profile.", "dashboard.", "gallery.kind_", "voice.sex_", "topup.package", "bonus.package", "worth.",
)  # fmt: skip


@pytest.mark.slow
def test_every_text_is_used() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in Path(genlock.__file__).parent.rglob("*.py"))

    assert [key for key in ENGLISH if f'"{key}"' not in code and not key.startswith(COMPOSED)] == []


def test_every_category_has_a_title_and_a_description() -> None:
    missing = [
        f"{section}.{category.value}"
        for section in ("category", "about")
        for category in Category
        if f"{section}.{category.value}" not in translator("en")
    ]

    assert missing == []


def test_every_alarm_has_its_texts() -> None:
    wanted = [f"alarm.{alarm.name}.{part}" for alarm in (*ALARMS, NO_ACTIVE) for part in ("title", "remedy")]

    assert [key for key in wanted if key not in translator("en")] == []


def test_every_input_of_every_offered_model_has_a_name_in_english_and_russian() -> None:
    nameless = [
        (model.id, field.name)
        for model in load().offered()
        for field in model.fields
        if any(not field.about.get(language) for language in ("en", "ru"))
    ]

    assert nameless == []


async def test_a_result_is_delivered_and_paid_for_although_its_caption_is_missing(tmp_path: Path) -> None:
    languages = {
        code: replace(
            language, texts={key: text for key, text in language.texts.items() if not key.startswith("order.")}
        )
        for code, language in package_texts().languages.items()
    }
    async with running_bot(sqlite_url(tmp_path), texts=Texts(languages)) as world:
        ann = await world.add_user(having=100)
        await ann.write("/gen z-image a cat")
        await world.quiet()
        [job] = await world.jobs(ann)

        assert job.delivered_at is not None
        assert await ann.available() == 100_000 - job.price
        assert (await world.store.wallet(ann.number)).held == 0
        await ann.sees(lambda message: message.kind == "photo" and message.text.startswith("order.caption"))
