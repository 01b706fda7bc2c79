"""The link to the dashboard that the bot gives to operators."""

import re
from dataclasses import replace
from pathlib import Path

from genlock.domain.operator import Operator, OperatorRole
from genlock.engine.logins import Logins
from tests.bot.conftest import BOSS
from tests.bot.pages import EN, label, page
from tests.bot.rules import OPEN
from tests.bot.world import BotWorld, running_bot, sqlite_url

RULES = replace(OPEN, admin_ids=frozenset({BOSS}))
LINK = re.compile(r"/dashboard/login/([\w-]{43})")


def give_links(world: BotWorld, address: str) -> Logins:
    """Let the bot make links under this address."""
    logins = Logins(world.store, owners=frozenset({BOSS}))

    async def link(operator_id: str) -> str | None:
        path = await logins.make_link(operator_id)
        return path and f"{address}{path}"

    world.bot._bundle.dashboard_link = link
    return logins


async def test_an_owner_gets_a_one_time_link_by_a_press(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=RULES) as world:
        logins, boss = give_links(world, "https://bot.example"), await world.add_user("Boss")
        await boss.write("/admin")
        shown = await boss.sees(page("admin.title"))
        await boss.tap(label("admin.button_dashboard"), on=shown)
        shown = await boss.sees(page("admin.dashboard"))

        found = LINK.search(str(shown.buttons))
        assert found
        operator = await logins.link_operator(found[1])
        assert operator == Operator(id=str(BOSS), role=OperatorRole.OWNER)
        assert found[1] not in shown.text, "Telegram would fetch a preview of an address in the text"


async def test_without_a_public_address_the_link_is_text_to_copy(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=RULES) as world:
        give_links(world, "http://127.0.0.1:8080")
        boss = await world.add_user("Boss")
        await boss.write("/admin dashboard")
        shown = await boss.sees(page("admin.dashboard_local"))
        assert LINK.search(shown.text)


async def test_support_gets_the_link_and_no_other_command(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=RULES) as world:
        give_links(world, "http://127.0.0.1:8080")
        await world.add_user("Boss")
        ann = await world.add_user("Ann", having=10)
        await ann.write("/start")
        await world.store.set_operator(Operator(id=str(ann.client.id), role=OperatorRole.SUPPORT), str(BOSS))
        await ann.write(f"/admin credit {ann.number} 1000 please")
        shown = await ann.sees(page("admin.dashboard_local"))
        assert await ann.available() == 10_000
        press = await ann.press(shown, "adm:today")
        assert press.text == EN.plain("order.unknown")

        await world.store.remove_operator(str(ann.client.id))
        press = await ann.press(shown, "adm:dashboard")
        assert press.text == EN.plain("order.unknown")
