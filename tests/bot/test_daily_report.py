"""The daily report: once a day, at its hour, to every operator or to one topic, with the figures of 24 hours."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from genlock.bot.admin.daily_report import SENT, _credit, _due, _failures, _models
from genlock.bot.rules import ReportRules
from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown
from genlock.domain.figures import JobFigures, ModelFigures
from genlock.domain.margin import Rates
from genlock.engine.provider_credit import ProviderCredit
from genlock.i18n.translator import package_texts
from genlock.sandbox.kie.faults import Fault
from tests.bot.conftest import BOSS
from tests.bot.pages import page
from tests.bot.rules import OPEN
from tests.bot.world import BotWorld, running_bot, sqlite_url, titled
from tests.packaged import CATALOG


@pytest.fixture
def due() -> datetime:
    """A whole hour at least an hour ahead: everything that happens in a test is before it."""
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=2)


@pytest.fixture
async def world(tmp_path: Path, due: datetime) -> AsyncIterator[BotWorld]:
    rules = replace(OPEN, admin_ids=frozenset({BOSS}), report=ReportRules(hour=due.hour))
    async with running_bot(sqlite_url(tmp_path), rules=rules) as found:
        yield found


def at(world: BotWorld, monkeypatch: pytest.MonkeyPatch, time: datetime) -> None:
    async def read_clock() -> datetime:
        return time

    monkeypatch.setattr(world.store, "read_clock", read_clock)


async def fold(world: BotWorld) -> None:
    role = await world.store.take_role("active", "me", 60.0)
    for block in await world.store.due_job_blocks(10):
        assert await world.store.fold_jobs(block, role)


async def test_operators_get_the_figures_of_the_day_once(
    world: BotWorld, due: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    boss, ann = await world.add_user("Boss"), await world.add_user("Ann", having=10)
    await boss.write("/start")
    for _ in range(2):
        await ann.write("/gen z-image a fox")
    await world.quiet()
    world.kie.faults.order(Fault.TASK_FAIL)
    await ann.write("/gen z-image a bear")
    await ann.sees(page("failed.head"))
    await world.quiet()
    await fold(world)
    await world.store.kv_put("provider_credit:kie", '{"credit": 16000}')
    at(world, monkeypatch, due + timedelta(minutes=1))
    assert await world.bot.report() == 0
    at(world, monkeypatch, due + timedelta(minutes=3))

    assert sum(await asyncio.gather(*(world.bot.report() for _ in range(4)))) == 1
    async with world.another_bot() as bot:
        assert await bot.report() == 0
    shown = await boss.sees(page("report.title"))
    for line in (
        "Orders: 3 · delivered:\u00a02 · failed:\u00a01",
        "Revenue: 1.6\u00a0credits · $0.0160",
        "margin:",
        "• Z-Image: 3\u00a0orders · $0.0160",
        "• Z-Image: 1 of 3, latest: #3",
        "Kie.ai: 16\u00a0credits left, enough for",
    ):
        assert line in shown.text, line
    at(world, monkeypatch, due + timedelta(days=1, minutes=3))
    assert await world.bot.report() == 1
    at(world, monkeypatch, due + timedelta(days=1, hours=7))
    assert await world.bot.report() == 0


def test_a_model_that_two_providers_made_is_one_line_of_the_report() -> None:
    models = [
        ModelFigures(
            provider=provider, model="z-image", figures=JobFigures(orders=orders, failed=1, last_failed_job=orders)
        )
        for provider, orders in (("kie", 5), ("fal", 2))
    ]
    t = package_texts().translator("en")

    assert _models(t, models, {"z-image": "Z-Image"}, Rates(0.01, {}))[2:] == ["• Z-Image: 7\u00a0orders · $0.00"]
    assert _failures(t, models, {"z-image": "Z-Image"})[2:] == ["• Z-Image: 2 of 7, latest: #5"]


def test_the_credit_left_has_its_unit_in_the_right_form_and_days_only_if_some_was_spent() -> None:
    left = [ProviderCredit(provider="kie", credit=1000, age=0.0)]
    spent = [ModelFigures(provider="kie", model="z-image", figures=JobFigures(cost=400))]
    ru, en = (package_texts().translator(language) for language in ("ru", "en"))

    assert _credit(ru, left, spent, titled(CATALOG)) == [
        "",
        "🏦 Kie.ai: на счёте 1\N{NO-BREAK SPACE}кредит, хватит на 2\N{NO-BREAK SPACE}дня",
    ]
    assert _credit(ru, left, [], titled(CATALOG)) == ["", "🏦 Kie.ai: на счёте 1\N{NO-BREAK SPACE}кредит"]
    assert _credit(en, left, [], titled(CATALOG)) == ["", "🏦 Kie.ai: 1\u00a0credit left"]


async def test_a_report_is_tried_again_only_if_it_was_certainly_not_sent(
    world: BotWorld, due: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    boss = await world.add_user("Boss")
    await boss.write("/start")
    at(world, monkeypatch, due + timedelta(minutes=3))
    call, failures = world.caller.call, [ChannelBusy(1.0), ChannelOutcomeUnknown("lost")]

    async def fail(*_: Any, **__: Any) -> Any:
        raise failures.pop(0)

    monkeypatch.setattr(world.caller, "call", fail)
    assert await world.bot.report() == 0
    assert await world.store.kv_list(SENT, world.bot_id) == []
    assert await world.bot.report() == 0
    monkeypatch.setattr(world.caller, "call", call)
    assert await world.bot.report() == 0
    assert len(await world.store.kv_list(SENT, world.bot_id)) == 1


async def test_a_topic_gets_the_report_instead_of_the_operators(
    world: BotWorld, due: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    boss = await world.add_user("Boss", language="ru")
    await boss.write("/start")
    at(world, monkeypatch, due + timedelta(minutes=3))
    topic = ReportRules(hour=due.hour, chat=-100123, thread=7)
    monkeypatch.setattr(world.bot._bundle, "rules", replace(world.rules, report=topic))
    sent: list[dict[str, Any]] = []

    async def call(_: object, **arguments: Any) -> None:
        sent.append(arguments)

    monkeypatch.setattr(world.caller, "call", call)
    assert await world.bot.report() == 1
    assert [(report["chat"], report["message_thread_id"]) for report in sent] == [(-100123, 7)]
    assert "Отчёт за сутки" in sent[0]["text"]


@pytest.mark.parametrize(
    ("hour", "now", "due"),
    [
        (9, "2026-03-01T03:31:00+00:00", None),
        (9, "2026-03-01T03:33:00+00:00", "2026-03-01T09:00:00+05:30"),
        (9, "2026-03-01T09:29:00+00:00", "2026-03-01T09:00:00+05:30"),
        (9, "2026-03-01T09:31:00+00:00", None),
        (23, "2026-03-01T18:31:00+00:00", "2026-03-01T23:00:00+05:30"),
    ],
)
def test_the_hour_is_that_of_the_zone(hour: int, now: str, due: str | None) -> None:
    found = _due(datetime.fromisoformat(now), ReportRules(hour=hour, zone="Asia/Kolkata"))
    assert found == (datetime.fromisoformat(due) if due else None)
