"""Journeys of people through the whole product."""

from pathlib import Path

import pytest

from tests.bot.world import sqlite_url, town

WORDS = {
    "en": {"category": "Text to image", "describe": "Describe what you want", "shape": "Shape of the frame",
           "price": "Price", "go": "Generate", "done": "Generation complete"},
    "ru": {"category": "Текст в картинку", "describe": "Опишите, что вы хотите", "shape": "Соотношение сторон",
           "price": "Цена", "go": "Создать", "done": "Готово"},
}  # fmt: skip


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_a_newcomer_gets_a_picture_with_four_taps_and_one_text(tmp_path: Path, language: str) -> None:
    words = WORDS[language]
    async with town(sqlite_url(tmp_path)) as here:
        ann = await here.person("Ann", language=language)
        await ann.say("/start")
        await ann.sees("Ann")
        await ann.tap(words["category"])
        await ann.sees("32")
        await ann.tap("Z-Image")
        await ann.sees(words["describe"])
        await ann.say("cat astronaut")
        await ann.sees(words["shape"])
        await ann.tap("1:1")
        await ann.sees(words["price"])
        await ann.tap(words["go"])
        notice = await ann.sees(words["done"])

        [started, text, picture, last] = ann.hands.messages
        assert (started.text, text.text) == ("/start", "cat astronaut")
        assert picture.kind == "photo"
        assert last is notice
        assert await ann.available() == 1_000_000 - 800
        assert len(here.telegram.calls("answerCallbackQuery")) == 4
