"""Prices in words: what a balance buys, packages with a bonus, and the time that is left."""

from dataclasses import replace
from pathlib import Path

import pytest

from genlock.app.bot import make_bot_rules
from genlock.bot.money.worth import COUNTED, usual_cost
from genlock.bot.order.job_texts import JobTexts
from genlock.bot.rules import BotRules, Package
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.errors import Refusal
from genlock.settings import Settings, read_settings
from tests.bot.pages import label, page
from tests.bot.world import running_bot, sqlite_url
from tests.packaged import CATALOG

BONUS = BotRules(packages=(Package(stars=100, credits=130), Package(stars=500, credits=715, bonus=10)))


async def test_the_balance_and_the_packages_tell_what_they_buy(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=BONUS) as world:
        ann = await world.add_user(having=65)
        for language in ("en", "ru"):
            ann = await world.add_user(language, language=language, having=65)
            await ann.write("/balance")
            shown = await ann.sees(page("worth.balance", language=language))
            storefront = world.bot._buttons._storefront
            picture = usual_cost(storefront, COUNTED["pictures"])
            assert picture is not None
            assert page("worth.pictures", language=language, n=65_000 // picture)(shown)
            assert page("worth.videos", language=language)(shown)
            await ann.write("/topup")
            shown = await ann.sees(page("worth.example", language=language))
            labels = [button["text"] for button in shown.buttons]
            assert label("topup.package", language=language).fullmatch(labels[0])
            assert label("bonus.package", language=language, percent=10).fullmatch(labels[1])
        bob = await world.add_user("Bob", having=0)
        await bob.write("/balance")
        assert not any(page("worth.balance")(message) for message in bob.from_bot), "nothing buys nothing"

        await ann.tap(label("bonus.package", language="ru"))
        bill = await ann.sees(lambda message: message.kind == "invoice")
        await ann.client.pay(bill)
        await ann.sees(page("topup.paid", language="ru"))
        assert await ann.available() == 65_000 + 715_000, "the bonus is credited"


def test_a_bonus_applies_from_its_size_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_STAR_BONUS", "250:5, 1000:12")
    monkeypatch.setenv("GENLOCK_STAR_PACKAGES", "100:130,250:325,500:650,1000:1300")
    packages = make_bot_rules(read_settings(Settings)).packages
    assert [(package.stars, package.credits, package.bonus) for package in packages] == [
        (100, 130, 0),
        (250, 341, 5),
        (500, 682, 5),
        (1000, 1456, 12),
    ]
    for wrong in ("500", "500:x", "500:900", "a:5"):
        monkeypatch.setenv("GENLOCK_STAR_BONUS", wrong)
        with pytest.raises(Refusal, match="GENLOCK_STAR_BONUS"):
            read_settings(Settings)


async def test_progress_tells_the_time_that_is_left(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path)) as world:
        ann = await world.add_user()
        await ann.write("/gen z-image a fox")
        await ann.sees(page("order.done"))
        [job] = await world.jobs(ann)
    texts, expected = JobTexts(CurrentCatalog(CATALOG)), CATALOG.get(job.model).expected_seconds
    job = replace(job, ended_at=None)
    for fraction, key in (
        (0.25, "progress.left"),
        (0.89, "progress.left"),
        (0.95, "progress.late"),
        (7.0, "progress.late"),
    ):
        assert page(key)(texts.waiting(job, "en", fraction)), fraction
    assert f"About {round(expected * 0.11)} seconds left" in texts.waiting(job, "en", 0.89).text.replace("\xa0", " ")
