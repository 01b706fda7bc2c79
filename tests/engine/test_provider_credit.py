"""The credit left at a provider: asked for at most once a minute, and kept when the provider does not answer."""

from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

from genlock.domain.alarm import ALARMS
from genlock.domain.errors import ProviderError
from genlock.domain.events import Event
from genlock.engine.context import EngineContext
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.engine.provider_credit import ProviderCreditReader, provider_credits
from genlock.ports import ProviderBundle
from genlock.stores.database import SqlDatabase
from tests.engine.manual_clock import ManualClock
from tests.engine.recorder import Recorder
from tests.engine.world import RULES


class Kie:
    def __init__(self) -> None:
        self.left = 5000
        self.asked = 0
        self.broken = False

    async def credit(self) -> int:
        self.asked += 1
        if self.broken:
            raise ProviderError("no answer")
        return self.left

    async def close(self) -> None: ...


async def a_reader(store: SqlDatabase, kie: Kie) -> ProviderCreditReader:
    recorder = Recorder()
    ctx = EngineContext(
        store=store, providers={}, channels={}, observer=recorder, instance="me", limits=RateLimiter(store, {}),
        rules=RULES,
    )  # fmt: skip
    engine = Engine(ctx)
    await engine.leader.elect()
    bundle = ProviderBundle(
        provider=cast("Any", kie), rate_limits={}, credit_usd=Decimal("0.005"), close=kie.close, credit=kie.credit
    )
    silent = ProviderBundle(provider=cast("Any", kie), rate_limits={}, credit_usd=Decimal(1), close=kie.close)
    return ProviderCreditReader(ctx, engine.leader, store, {"kie": bundle, "silent": silent})


async def test_a_provider_is_asked_once_a_minute(store: SqlDatabase, clock: ManualClock) -> None:
    kie = Kie()
    reader = await a_reader(store, kie)

    for _ in range(3):
        await reader.read()
        clock.advance(15.0)
    assert kie.asked == 1
    clock.advance(60.0)
    kie.left = 4000
    await reader.read()

    assert kie.asked == 2
    assert [(credit.provider, credit.credit, credit.age) for credit in await provider_credits(store)] == [
        ("kie", 4000, 0.0)
    ]


async def test_a_provider_that_does_not_answer_keeps_its_last_amount(store: SqlDatabase, clock: ManualClock) -> None:
    kie = Kie()
    reader = await a_reader(store, kie)
    await reader.read()
    clock.advance(90.0)
    kie.broken = True

    await reader.read()

    assert [(credit.credit, credit.age) for credit in await provider_credits(store)] == [(5000, 90.0)]


async def test_a_provider_that_is_down_for_long_is_logged_once_and_raises_one_alarm(
    store: SqlDatabase, clock: ManualClock
) -> None:
    kie = Kie()
    kie.broken = True
    reader = await a_reader(store, kie)
    recorder = reader.ctx.observer
    assert isinstance(recorder, Recorder)
    [alarm] = [candidate for candidate in ALARMS if candidate.name == "provider_silent"]
    found = []
    for _ in range(40):
        await reader.leader.elect()
        await reader.read()
        found.append(alarm.check(await store.stats()) is not None)
        clock.advance(15.0)

    assert kie.asked == 40
    assert found == [False] * 21 + [True] * 19
    [line] = recorder.of(Event.PROVIDER_SILENT, provider="kie")
    assert line.facts["reason"] == "ProviderError: no answer"
    assert recorder.of(Event.STAGE_ERROR) == []

    kie.broken = False
    await reader.leader.elect()
    await reader.read()
    assert (await store.stats())["providers_silent"] == 0
    assert len(recorder.of(Event.PROVIDER_ANSWERS, provider="kie")) == 1


async def test_a_provider_that_is_not_configured_any_more_is_not_silent(store: SqlDatabase, clock: ManualClock) -> None:
    kie = Kie()
    kie.broken = True
    reader = await a_reader(store, kie)
    await reader.read()
    clock.advance(3600.0)
    assert (await store.stats())["providers_silent"] == 1
    reader = replace(reader, bundles={})
    await reader.leader.elect()
    await reader.read()
    assert (await store.stats())["providers_silent"] == 0
