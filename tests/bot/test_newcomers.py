"""What somebody stumbles over who uses the bot for the first time."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from genlock.bot.shop import Shop
from genlock.bot.tongue import tongue
from tests.bot.world import CATALOG, Town, sqlite_url, town

SHOP = Shop(CATALOG, markup=2.0, credit_usd=0.01)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Town]:
    async with town(sqlite_url(tmp_path)) as made:
        yield made


# the name of a model


@pytest.mark.parametrize(
    "line", ["zimage-foo cat", "z-image-foo cat", "z-imagefoo cat", "nano cat", "image cat", "a cat", "- cat", "z cat"]
)
def test_a_name_that_is_not_whole_orders_nothing(line: str) -> None:
    assert SHOP.named(line) is None


def test_a_name_ends_at_a_space_a_line_or_a_colon() -> None:
    for line in ("z-image a cat", "z-image\na cat", "Z Image: a cat", "z-image, a cat"):
        found = SHOP.named(line)
        assert found is not None, line
        assert (found[0].id, found[1]) == ("z-image", "a cat"), line


def test_a_mistyped_name_is_guessed_but_only_to_ask() -> None:
    for line, wanted in (
        ("zimage-foo a cat", "z-image"),
        ("z-imge a cat", "z-image"),
        ("nano bananna pro a cat", "nano-banana-pro"),
        ("nano a cat", "google/nano-banana"),
    ):
        models, text = SHOP.meant(line)
        assert (wanted in [model.id for model in models], text) == (True, "a cat"), (line, models, text)
    assert SHOP.meant("qqqqq a cat") == ([], "a cat")
    assert SHOP.meant("") == ([], "")


@pytest.mark.parametrize(("language", "asks"), [("en", "Did you mean"), ("ru", "Может быть")])
async def test_an_unknown_model_is_refused_and_the_likely_one_goes_on_with_the_same_text(
    here: Town, language: str, asks: str
) -> None:
    ann = await here.person(language=language)
    await ann.say("/gen zimage-foo cat with wings")
    screen = await ann.sees(asks)
    assert "zimage-foo" in screen.text
    assert await here.jobs(ann) == []
    await ann.tap("Z-Image")
    confirm = await ann.sees("🧾 Z-Image")

    assert "cat with wings" in confirm.text
    assert "-foo" not in confirm.text
    assert await here.jobs(ann) == []


# past orders


async def test_past_orders_are_told_apart_by_their_words(here: Town) -> None:
    ann = await here.person()
    for words in ("a red fox in the snow under the northern lights", "a bear"):
        await ann.say(f"/gen z-image {words}")
    await here.quiet()
    await ann.say("/history")
    screen = await ann.sees("Your results")
    bear, fox = (one["text"] for one in screen.buttons[:2])
    assert "a bear · Z-Image" in bear
    assert "a red fox in the snow und… · Z-Image" in fox
    await ann.tap("a red fox")

    await ann.sees("a red fox in the snow under the northern lights")
    item = ann.screen
    assert "Z-Image · #1" in item.text
    assert "northern lights" in item.text


@pytest.mark.parametrize("language", ["en", "ru"])
def test_labels_that_stand_in_pairs_fit_on_a_phone(language: str) -> None:
    t = tongue(language)
    for key in ("again", "repeat", "change_repeat", "menu", "try_again"):
        assert len(t.tag(f"button.{key}")) <= 20, key
