"""Alarms and retention: operators are told once per incident and once when it is over, by the leader alone."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from genlock.domain.alarm import ALARMS, LEDGER_CHECK_SECONDS, AlarmNotice
from genlock.domain.errors import ChannelBusy
from genlock.domain.events import Event
from genlock.domain.update import UpdateState
from genlock.engine import stats
from genlock.engine.alarms import CHECKS_WITHOUT_FINDING, Alarms
from genlock.engine.context import EngineContext, EngineRules
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.engine.retention import KEEP_SECONDS, PAGE, Retention
from genlock.engine.stats import Stats
from genlock.i18n.alarms import alarm_text
from genlock.i18n.translator import translator
from genlock.stores.database import SqlDatabase
from tests.alarm_limits import LIMITS
from tests.changes import PATIENCE_SECONDS
from tests.engine.manual_clock import ManualClock
from tests.engine.recorder import Recorder
from tests.stores.builders import ended, finish, update


@dataclass
class AlarmHarness:
    """One instance's alarms, and what the operators were told."""

    store: SqlDatabase
    clock: ManualClock
    recorder: Recorder
    name: str = "me"
    told: list[str] = field(default_factory=list)
    told_in_russian: list[str] = field(default_factory=list)
    away: bool = False

    def __post_init__(self) -> None:
        ctx = EngineContext(
            store=self.store,
            providers={},
            channels={},
            observer=self.recorder,
            instance=self.name,
            limits=RateLimiter(self.store, {}),
            rules=EngineRules(role_seconds=60.0),  # shorter than a test lets a leader be missing
        )
        self.engine = Engine(ctx)
        self.stats = Stats(ctx, self.store)
        self.alarms = Alarms(ctx, self.engine.leader, self.store, self.stats, self.notify)

    async def notify(self, notice: AlarmNotice) -> None:
        if self.away:
            raise ChannelBusy(1.0)
        self.told.append(alarm_text(notice, translator("en")))
        self.told_in_russian.append(alarm_text(notice, translator("ru")))

    async def round(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            await self.engine.leader.elect()
            self.stats._read_at = float("-inf")
            await self.alarms.check()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that the machine makes slowly is not left out."""
    for name in ("CACHE_SECONDS", "TIMEOUT_SECONDS"):
        monkeypatch.setattr(stats, name, PATIENCE_SECONDS)


@pytest.fixture
def harness(store: SqlDatabase, clock: ManualClock, recorder: Recorder) -> AlarmHarness:
    return AlarmHarness(store, clock, recorder)


async def test_an_incident_is_reported_when_it_begins_and_when_it_ends(harness: AlarmHarness) -> None:
    job = await ended(harness.store)
    await harness.round()
    harness.clock.advance(299)
    await harness.round(3)
    assert harness.told == []
    harness.clock.advance(2)
    await harness.round(3)
    assert len(harness.told) == 1
    assert harness.told[0].startswith("🔴 Results are waiting to be delivered: 1, the oldest for 5\u00a0min.\n")
    assert "genlock doctor" in harness.told[0], "and what to do"
    assert harness.told_in_russian[0].startswith(
        "🔴 Готовые результаты ещё не в чате: 1, самый старый ждёт 5\N{NO-BREAK SPACE}мин.\n"
    )
    await finish(harness.store, job)
    await harness.round(CHECKS_WITHOUT_FINDING - 1)
    assert len(harness.told) == 1, "not yet: it may come back"
    await harness.round(3)
    assert len(harness.told) == 2
    assert re.fullmatch(r"🟢 “Results are waiting to be delivered” is over\. It lasted \d+\u00a0s\.", harness.told[1])
    over = r"🟢 «Готовые результаты ещё не в чате»: снова всё в порядке\. Длилось .+\."
    assert re.fullmatch(over, harness.told_in_russian[1])
    assert [seen.facts["name"] for seen in harness.recorder.of(Event.ALARM)] == ["undelivered"]
    assert [seen.facts["name"] for seen in harness.recorder.of(Event.RECOVERED)] == ["undelivered"]


async def test_a_new_incident_is_reported_again(harness: AlarmHarness) -> None:
    for _ in range(2):
        job = await ended(harness.store)
        harness.clock.advance(301)
        await harness.round()
        await finish(harness.store, job)
        await harness.round(CHECKS_WITHOUT_FINDING)
    assert [text[0] for text in harness.told] == ["🔴", "🟢", "🔴", "🟢"]


async def test_a_condition_that_comes_and_goes_is_one_incident(harness: AlarmHarness) -> None:
    for _ in range(3):
        await harness.store.kv_put("ledger_violations", "1")
        await harness.round()
        await harness.store.kv_put("ledger_violations", "0")
        await harness.round(CHECKS_WITHOUT_FINDING - 1)
    assert [text[0] for text in harness.told] == ["🔴"]


async def test_an_incident_continues_on_another_instance_and_after_a_restart(harness: AlarmHarness) -> None:
    await harness.store.kv_put("ledger_violations", "1")
    await harness.round()
    await harness.engine.leader.resign()
    successor = AlarmHarness(harness.store, harness.clock, harness.recorder, "successor")
    await successor.round(2)
    assert successor.told == []
    await harness.store.kv_put("ledger_violations", "0")
    await successor.round(CHECKS_WITHOUT_FINDING)
    assert [text[0] for text in successor.told] == ["🟢"]


async def test_only_the_leader_notifies_operators(harness: AlarmHarness) -> None:
    passive = AlarmHarness(harness.store, harness.clock, harness.recorder, "passive")
    await harness.store.kv_put("ledger_violations", "1")
    await harness.round()
    await passive.round()
    assert (len(harness.told), passive.told) == (1, [])


async def test_a_notification_that_failed_is_sent_later(harness: AlarmHarness) -> None:
    harness.away = True
    await harness.store.kv_put("ledger_violations", "1")
    await harness.round(2)
    harness.away = False
    await harness.round(2)
    assert len(harness.told) == 1
    harness.away = True
    await harness.store.kv_put("ledger_violations", "0")
    await harness.round(CHECKS_WITHOUT_FINDING + 1)
    harness.away = False
    await harness.round()
    assert [text[0] for text in harness.told] == ["🔴", "🟢"]


async def test_a_new_leader_reports_how_long_there_was_none(harness: AlarmHarness) -> None:
    await harness.round()
    assert harness.told == [], "there was no leader before"
    harness.clock.advance(120)
    successor = AlarmHarness(harness.store, harness.clock, harness.recorder, "successor")
    await successor.round(2)
    assert [text.splitlines()[0] for text in successor.told] == ["🟠 There was no leader: 2\u00a0min."]


async def test_a_clean_stop_of_the_leader_is_no_incident(harness: AlarmHarness) -> None:
    await harness.round()
    await harness.alarms.stop()
    await harness.engine.leader.resign()
    harness.clock.advance(3600)
    successor = AlarmHarness(harness.store, harness.clock, harness.recorder, "successor")
    await successor.round(2)
    assert successor.told == []
    assert harness.recorder.of(Event.ALARM) == []


async def test_a_stop_does_not_wait_for_a_chat_that_does_not_answer(harness: AlarmHarness) -> None:
    asked = asyncio.Event()

    async def never_answered(_: AlarmNotice) -> None:
        asked.set()
        await asyncio.Event().wait()

    harness.alarms._notify = never_answered
    await ended(harness.store)
    await harness.round()
    harness.clock.advance(301)
    check = asyncio.create_task(harness.round())
    await asked.wait()
    async with asyncio.timeout(30):
        await harness.alarms.stop()
    await asyncio.gather(check, return_exceptions=True)
    assert await harness.store.kv_get("active_seen") is None, "the stop was orderly"


async def test_an_instance_that_was_not_the_leader_keeps_the_leaders_marker(harness: AlarmHarness) -> None:
    await harness.round()
    other = AlarmHarness(harness.store, harness.clock, harness.recorder, "other")
    await other.round()
    await other.alarms.stop()
    harness.clock.advance(120)
    successor = AlarmHarness(harness.store, harness.clock, harness.recorder, "successor")
    await successor.round(2)
    assert [text.splitlines()[0] for text in successor.told] == ["🟠 There was no leader: 2\u00a0min."]


async def test_a_leader_that_is_replaced_at_once_is_not_reported(harness: AlarmHarness) -> None:
    await harness.round()
    await harness.engine.leader.resign()
    harness.clock.advance(5)
    successor = AlarmHarness(harness.store, harness.clock, harness.recorder, "successor")
    await successor.round()
    assert successor.told == []


def test_the_limit_of_every_alarm_is_tested() -> None:
    assert {name for name, _, _ in LIMITS} == {alarm.name for alarm in ALARMS}


@pytest.mark.parametrize(("name", "bad", "good"), LIMITS)
def test_an_alarm_is_raised_exactly_above_its_limit(
    name: str, bad: Mapping[str, float], good: Mapping[str, float]
) -> None:
    [alarm] = [alarm for alarm in ALARMS if alarm.name == name]
    assert alarm.check(bad)
    assert alarm.check(good) is None
    assert alarm.check({}) is None


async def test_a_money_check_that_does_not_run_is_an_alarm_itself(harness: AlarmHarness) -> None:
    await harness.engine.leader.elect()
    await harness.store.kv_put("money_check", "{}")
    harness.clock.advance(LEDGER_CHECK_SECONDS + 1)
    await harness.round()
    assert harness.told == []  # this instance has just become the leader: it could not check before
    harness.alarms._leader_since -= LEDGER_CHECK_SECONDS + 1
    await harness.round()
    assert [text.splitlines()[0] for text in harness.told] == [
        "🔴 The ledger check isn't running: last completed 30\u00a0min ago."
    ]


async def test_old_rows_are_pruned_page_by_page(harness: AlarmHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.engine.retention.PAGE", 2)
    assert PAGE > 2
    for number in range(5):
        await harness.store.store_update(update(number, f"user {number}"))
    for queue in await harness.store.claim_update_queues(4, harness.engine.ctx.lease, bots=["bot"], urgent=False):
        await harness.store.settle_update(queue, UpdateState.DONE, "", harness.engine.ctx.lease)
    harness.clock.advance(KEEP_SECONDS["updates"] + 1)
    retention = Retention(harness.engine.ctx, harness.engine.leader, harness.store)
    await retention.prune()
    assert not harness.recorder.of(Event.ROWS_PRUNED), "only the active one"
    await harness.engine.leader.elect()
    await retention.prune()
    gone = [seen.facts["rows"] for seen in harness.recorder.of(Event.ROWS_PRUNED, what="updates")]
    assert sum(gone) == 4
    assert max(gone) <= 2
