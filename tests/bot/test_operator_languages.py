"""Operators read pages and alarms in their own language."""

from dataclasses import replace
from pathlib import Path

from genlock.app.telegram import operator_language
from genlock.channels.telegram.operators import notify_operators
from genlock.sandbox.kie.faults import Fault as Failure
from tests.bot.conftest import BOSS, Office
from tests.bot.pages import page
from tests.bot.rules import OPEN
from tests.bot.world import holds, running_bot, sqlite_url


async def test_operators_read_their_own_language(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=replace(OPEN, admin_ids=frozenset({BOSS}))) as world:
        boss, ann = await world.add_user("Босс", language="ru"), await world.add_user("Ann", having=10)
        await boss.write("/start")
        await ann.write("/start")
        world.kie.faults.order(Failure.TASK_FAIL)
        await ann.write("/gen z-image a fox")
        await world.quiet()
        await boss.write("/admin order 1")
        failed = await boss.sees(page("admin.order", language="ru", code="#1"))
        assert page("admin.state_failed", language="ru")(failed)
        assert "0,8\N{NO-BREAK SPACE}кредита" in failed.text
        for said, told in (
            ("person 77", "Пользователя"),
            ("order 77", "Заказа #77 нет"),
            ("refund 1", "возвращать нечего"),
            ("cancel 1", page("admin.order_now", language="ru")),
            ("stars nothing", page("admin.refund_no_payment", language="ru")),
            ("close NOTHING", "Открытого промокода NOTHING нет"),
            ("stop", page("admin.broadcast_none", language="ru")),
        ):
            await boss.write(f"/admin {said}")
            assert holds(told)(boss.from_bot[-1]), said


async def test_alarms_come_in_the_operators_language(office: Office) -> None:
    world, boss, ann = office
    await world.store.set_language(ann.number, "ru")

    async def language(outside: int) -> str:
        return await operator_language(world.store, outside)

    texts = {"en": "Look at `genlock <doctor>`", "ru": "Посмотрите `genlock`"}
    await notify_operators(
        world.caller, [boss.client.id, ann.client.id, 999], language, lambda code: texts[code or "en"]
    )

    assert boss.from_bot[-1].text == "Look at genlock <doctor>"
    assert [message["type"] for message in boss.from_bot[-1].content["entities"]] == ["code"]
    assert ann.from_bot[-1].text == "Посмотрите genlock"
