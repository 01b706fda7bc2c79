"""Alarms and forgetting: told once per incident and once when it is over, by the active instance alone."""

import re
from dataclasses import dataclass, field

import pytest

from genlock.domain.alarm import ALARMS, Words
from genlock.domain.errors import ChannelBusy, StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.update import UpdateState
from genlock.engine.alarms import CALM_ROUNDS, Alarms
from genlock.engine.context import EngineContext
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.engine.retention import KEEP_SECONDS, PAGE, Retention
from genlock.engine.stats import Stats
from genlock.stores.database import SqlDatabase
from tests.engine.world import HandClock, Recorder
from tests.stores.builders import account_with, ended, finish, update


@dataclass
class Watch:
    """One instance's alarms, and what the operators were told."""

    store: SqlDatabase
    clock: HandClock
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
        )
        self.engine = Engine(ctx)
        self.stats = Stats(ctx, self.store)
        self.alarms = Alarms(ctx, self.engine.leader, self.store, self.stats, self.tell)

    async def tell(self, words: Words) -> None:
        if self.away:
            raise ChannelBusy(1.0)
        self.told.append(words.english)
        self.told_in_russian.append(words.russian)

    async def round(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            await self.engine.leader.elect()
            self.stats._read_at = float("-inf")
            await self.alarms.check()


@pytest.fixture
def watch(store: SqlDatabase, clock: HandClock, recorder: Recorder) -> Watch:
    return Watch(store, clock, recorder)


async def test_an_incident_is_told_once_and_once_more_when_it_is_over(watch: Watch) -> None:
    job = await ended(watch.store)
    await watch.round()
    watch.clock.turn(299)
    await watch.round(3)
    assert watch.told == []
    watch.clock.turn(2)
    await watch.round(3)
    assert len(watch.told) == 1
    assert watch.told[0].startswith("🔴 Results wait to be shown: 1, the oldest for 5 min.\n")
    assert "genlock doctor" in watch.told[0], "and what to do"
    assert watch.told_in_russian[0].startswith("🔴 Готовые результаты ещё не в чате: 1, самый старый ждёт 5 мин.\n")
    await finish(watch.store, job)
    await watch.round(CALM_ROUNDS - 1)
    assert len(watch.told) == 1, "not yet: it may come back"
    await watch.round(3)
    assert len(watch.told) == 2
    assert re.fullmatch(r"🟢 “Results wait to be shown” is over\. It lasted \d+ s\.", watch.told[1])
    assert re.fullmatch(r"🟢 «Готовые результаты ещё не в чате» — прошло\. Длилось .+\.", watch.told_in_russian[1])
    assert [seen.facts["name"] for seen in watch.recorder.of(Event.ALARM)] == ["undelivered"]
    assert [seen.facts["name"] for seen in watch.recorder.of(Event.RECOVERED)] == ["undelivered"]


async def test_a_new_incident_is_told_again(watch: Watch) -> None:
    for _ in range(2):
        job = await ended(watch.store)
        watch.clock.turn(301)
        await watch.round()
        await finish(watch.store, job)
        await watch.round(CALM_ROUNDS)
    assert [text[0] for text in watch.told] == ["🔴", "🟢", "🔴", "🟢"]


async def test_what_comes_and_goes_is_one_incident(watch: Watch) -> None:
    for _ in range(3):
        await watch.store.kv_put("ledger_violations", "1")
        await watch.round()
        await watch.store.kv_put("ledger_violations", "0")
        await watch.round(CALM_ROUNDS - 1)
    assert [text[0] for text in watch.told] == ["🔴"]


async def test_another_instance_and_a_restart_go_on_with_an_incident(watch: Watch) -> None:
    await watch.store.kv_put("ledger_violations", "1")
    await watch.round()
    await watch.engine.leader.resign()
    heir = Watch(watch.store, watch.clock, watch.recorder, "heir")
    await heir.round(2)
    assert heir.told == []
    await watch.store.kv_put("ledger_violations", "0")
    await heir.round(CALM_ROUNDS)
    assert [text[0] for text in heir.told] == ["🟢"]


async def test_only_the_active_instance_tells(watch: Watch) -> None:
    passive = Watch(watch.store, watch.clock, watch.recorder, "passive")
    await watch.store.kv_put("ledger_violations", "1")
    await watch.round()
    await passive.round()
    assert (len(watch.told), passive.told) == (1, [])


async def test_what_could_not_be_told_is_told_later(watch: Watch) -> None:
    watch.away = True
    await watch.store.kv_put("ledger_violations", "1")
    await watch.round(2)
    watch.away = False
    await watch.round(2)
    assert len(watch.told) == 1
    watch.away = True
    await watch.store.kv_put("ledger_violations", "0")
    await watch.round(CALM_ROUNDS + 1)
    watch.away = False
    await watch.round()
    assert [text[0] for text in watch.told] == ["🔴", "🟢"]


async def test_a_new_active_instance_tells_how_long_there_was_none(watch: Watch) -> None:
    await watch.round()
    assert watch.told == [], "nobody was ever active before"
    watch.clock.turn(120)
    heir = Watch(watch.store, watch.clock, watch.recorder, "heir")
    await heir.round(2)
    assert [text.splitlines()[0] for text in heir.told] == ["🟠 There was no active instance: 2 min."]


async def test_nobody_is_missed_after_an_orderly_end(watch: Watch) -> None:
    await watch.round()
    await watch.alarms.stop()
    await watch.engine.leader.resign()
    watch.clock.turn(3600)
    heir = Watch(watch.store, watch.clock, watch.recorder, "heir")
    await heir.round(2)
    assert heir.told == []
    assert watch.recorder.of(Event.ALARM) == []


async def test_one_that_was_not_active_leaves_the_active_ones_trace(watch: Watch) -> None:
    await watch.round()
    other = Watch(watch.store, watch.clock, watch.recorder, "other")
    await other.round()
    await other.alarms.stop()
    watch.clock.turn(120)
    heir = Watch(watch.store, watch.clock, watch.recorder, "heir")
    await heir.round(2)
    assert [text.splitlines()[0] for text in heir.told] == ["🟠 There was no active instance: 2 min."]


async def test_a_role_that_passes_on_at_once_is_not_worth_a_word(watch: Watch) -> None:
    await watch.round()
    await watch.engine.leader.resign()
    watch.clock.turn(5)
    heir = Watch(watch.store, watch.clock, watch.recorder, "heir")
    await heir.round()
    assert heir.told == []


@pytest.mark.parametrize(
    ("name", "bad", "good"),
    [
        ("orphan_spike", {"orphans_fresh": 20}, {"orphans_fresh": 19, "orphans": 1000}),
        ("undelivered", {"undelivered": 1, "undelivered_age": 301}, {"undelivered": 9, "undelivered_age": 300}),
        ("ledger_mismatch", {"ledger_violations": 1}, {"ledger_violations": 0}),
        ("provider_failing", {"lately_failed": 5, "lately_ended": 10}, {"lately_failed": 5, "lately_ended": 11}),
        ("provider_failing", {"lately_failed": 5, "lately_ended": 5}, {"lately_failed": 4, "lately_ended": 4}),
        ("provider_failing", {"queued_age": 301}, {"queued_age": 300}),
        ("updates_dead", {"updates_dead": 1}, {"updates_dead": 0}),
        ("refund_open", {"refunds_open": 1, "refund_age": 901}, {"refunds_open": 2, "refund_age": 900}),
    ],
)
def test_an_alarm_knows_bad_from_good(name: str, bad: dict[str, float], good: dict[str, float]) -> None:
    [alarm] = [alarm for alarm in ALARMS if alarm.name == name]
    assert alarm.check(bad)
    assert alarm.check(good) is None
    assert alarm.check({}) is None


async def test_the_ledger_is_summed_by_the_active_instance_now_and_then(watch: Watch) -> None:
    await watch.alarms.check_ledger()
    assert await watch.store.kv_get("ledger_violations") is None
    await watch.engine.leader.elect()
    await watch.alarms.check_ledger()
    broken = {"account_id": await account_with(watch.store, 5), "debit": "house", "credit": "held", "amount": 1}
    await watch.store.session.one("transfer", kind="x", key="k", reason="", **broken)
    await watch.alarms.check_ledger()
    fact = await watch.store.kv_get("ledger_violations")
    assert fact is not None
    assert fact.value == "0", "it is not time yet"
    watch.alarms._ledger_at = 0.0
    await watch.engine.leader.elect()
    await watch.alarms.check_ledger()
    await watch.round()
    fact = await watch.store.kv_get("ledger_violations")
    assert fact is not None
    assert int(fact.value) > 0
    assert watch.recorder.of(Event.ATTENTION)


async def test_a_sum_that_fails_is_not_tried_again_at_once(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    async def fail() -> None:
        nonlocal tries
        tries += 1
        raise StoreUnavailable

    monkeypatch.setattr(watch.store, "money_violations", fail)
    await watch.engine.leader.elect()
    with pytest.raises(StoreUnavailable):
        await watch.alarms.check_ledger()
    await watch.alarms.check_ledger()
    assert tries == 1


async def test_old_rows_are_forgotten_page_by_page(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.engine.retention.PAGE", 2)
    assert PAGE > 2
    for number in range(5):
        await watch.store.store_update(update(number, f"person {number}"))
    for lane in await watch.store.claim_update_queues(4, watch.engine.ctx.lease, bots=["bot"], urgent=False):
        await watch.store.settle_update(lane, UpdateState.DONE, "", watch.engine.ctx.lease)
    watch.clock.turn(KEEP_SECONDS["updates"] + 1)
    retention = Retention(watch.engine.ctx, watch.engine.leader, watch.store)
    await retention.prune()
    assert not watch.recorder.of(Event.ROWS_PRUNED), "only the active one"
    await watch.engine.leader.elect()
    await retention.prune()
    gone = [seen.facts["rows"] for seen in watch.recorder.of(Event.ROWS_PRUNED, what="updates")]
    assert sum(gone) == 4
    assert max(gone) <= 2
