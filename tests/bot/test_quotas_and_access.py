"""Quotas, bans and maintenance."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from genlock.bot.rules import BotRules
from tests.bot.conftest import Office
from tests.bot.pages import label, page
from tests.bot.rules import OPEN
from tests.bot.world import running_bot, sqlite_url

# limits


async def test_running_orders_per_user_are_limited(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=replace(OPEN, running_max=2), speed=0.01) as world:
        ann = await world.add_user()
        for word in ("one", "two", "three"):
            await ann.write(f"/gen z-image {word}")
        await ann.sees(page("limit.running", n=2))
        assert len(await world.jobs(ann)) == 2
        bob = await world.add_user("Bob")
        await bob.write("/gen z-image mine")
        assert len(await world.jobs(bob)) == 1


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        (replace(OPEN, per_minute=2), r"That's a lot of orders in one minute. You can order again in \d+\sseconds"),
        (replace(OPEN, per_hour=2), r"That's a lot of orders in one hour. You can order again in (59|60)\sminutes"),
    ],
    ids=["minute", "hour"],
)
async def test_orders_per_minute_and_hour_are_limited_and_the_wait_is_shown(
    tmp_path: Path, rules: BotRules, told: str
) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=rules) as world:
        ann = await world.add_user()
        for word in ("one", "two"):
            await ann.write(f"/gen z-image {word}")
        await world.quiet()  # no notice comes between the screen and the tap
        await ann.write("three")
        await ann.tap(label("button.generate"))
        shown = await ann.sees(lambda message: re.search(told, message.text) is not None)

        assert page("confirm.price")(shown), "the order is still there"
        assert len(await world.jobs(ann)) == 2


# bans and maintenance


async def test_a_banned_user_gets_only_the_ban_notice(office: Office) -> None:
    world, boss, ann = office
    await boss.write(f"/admin ban {ann.number} spam and worse")
    await boss.tap(label("admin_ask.ban_yes"))
    await boss.sees(page("admin.ban_done"))
    await ann.write("a fox")
    await ann.sees(page("ban.notice"))
    press = await ann.press(ann.screen, "menu")
    assert page("ban.notice")(press)
    assert await world.jobs(ann) == []
    await boss.write(f"/admin unban {ann.number}")
    await ann.write("a fox")
    await ann.sees(page("confirm.suggestion"))

    assert [(line.action, line.detail) for line in await world.store.audit(5)] == [
        ("unban", ""), ("ban", "spam and worse"),
    ]  # fmt: skip


async def test_maintenance_refuses_users_with_the_reason_but_not_operators(office: Office) -> None:
    world, boss, ann = office
    await boss.write("/admin maintenance on Back at <noon>")
    await boss.tap(label("admin_ask.maintenance_yes"))
    world.bot._access._maintenance = (0.0, None)
    await ann.write("a fox")
    assert ann.from_bot[-1].text == "🛠 Back at <noon>"
    await boss.write("a fox")
    assert page("confirm.suggestion")(boss.screen)
    await boss.write("/admin maintenance off")
    world.bot._access._maintenance = (0.0, None)
    await ann.write("a fox")
    assert page("confirm.suggestion")(ann.screen)
