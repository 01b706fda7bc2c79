"""What those who watch are told."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from genlock.app import SystemClock, make_engine
from genlock.domain.errors import StoreUnavailable
from genlock.engine.engine import Engine
from genlock.engine.stats import Stats
from genlock.metrics import COUNTS, GAUGES, MetricsObserver
from genlock.stores.sqlite import SqliteStore
from genlock.web.health import HealthEndpoints
from genlock.web.server import make_web
from tests.stores.builders import ended, queued, update
from tests.web.asgi import request


@dataclass
class House:
    store: SqliteStore
    engine: Engine
    web: Starlette
    stats: Stats
    switches: dict[str, bool] = field(default_factory=dict)

    async def get(self, path: str) -> tuple[int, Any]:
        status, said = await request(self.web, path, method="GET")
        return status, json.loads(said)

    async def metrics(self) -> dict[str, float]:
        _, said = await request(self.web, "/metrics", method="GET")
        return {
            sample.name + str(sample.labels or ""): sample.value
            for family in text_string_to_metric_families(said.decode())
            for sample in family.samples
        }


@pytest.fixture
async def house() -> AsyncIterator[House]:
    observer = MetricsObserver(CollectorRegistry())
    store = await SqliteStore.open(":memory:", clock=SystemClock(), observer=observer)
    engine = make_engine(store, observer, providers={}, channels={})
    stats = Stats(engine.ctx, store)
    switches = {"open": True}
    endpoint = HealthEndpoints(
        engine=engine,
        stats=stats,
        is_open=lambda: switches["open"],
        render=lambda counts, active: observer.render(counts, active=active),
        started=monotonic(),
    )
    yield House(store, engine, make_web([endpoint]), stats, switches)
    await store.close()


async def test_health_says_who_is_active_and_what_waits(house: House) -> None:
    await queued(house.store, lease=None)
    await house.store.store_update(update(1))
    await house.store.store_callback("kie", None, "", b"x")
    status, said = await house.get("/health")
    assert status == 200
    assert (said["active"], said["queue_depth"], said["store"]) == (False, 3, "ok")
    await house.engine.leader.elect()
    assert (await house.get("/health"))[1]["active"] is True


async def test_ready_is_for_those_who_have_started_and_do_not_stop(house: House) -> None:
    assert await house.get("/ready") == (200, {"ready": True})
    house.switches["open"] = False
    assert (await house.get("/ready"))[0] == 503
    assert (await house.get("/health"))[0] == 200, "alive it is"


async def test_a_store_that_is_away_makes_it_unready_and_not_dead(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> dict[str, float]:
        raise StoreUnavailable

    monkeypatch.setattr(house.store, "stats", away)
    assert (await house.get("/ready"))[0] == 503
    status, said = await house.get("/health")
    assert (status, said["queue_depth"], said["store"], said["ready"]) == (200, None, "does not answer", False)
    assert (await request(house.web, "/metrics", method="GET"))[0] == 200


async def test_a_store_that_hangs_is_not_waited_for(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.engine.stats.PATIENCE_SECONDS", 0.05)
    asked = 0

    async def hang() -> dict[str, float]:
        nonlocal asked
        asked += 1
        await asyncio.Event().wait()
        return {}

    monkeypatch.setattr(house.store, "stats", hang)
    assert [(await house.get("/ready"))[0] for _ in range(3)] == [503] * 3
    assert asked == 1, "one question at a time"
    assert house.stats._task is not None
    house.stats._task.cancel()


async def test_many_who_ask_at_once_cost_one_question(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    stats = house.store.stats

    async def counted() -> dict[str, float]:
        nonlocal asked
        asked += 1
        return await stats()

    monkeypatch.setattr(house.store, "stats", counted)
    await asyncio.gather(*(house.get("/health") for _ in range(20)))
    assert asked == 1


async def test_every_metric_is_there_before_anything_has_happened(house: House) -> None:
    said = await house.metrics()
    for name in GAUGES:
        assert f"genlock_{name}" in said
    assert said["genlock_active"] == 0
    assert said["genlock_jobs{'state': 'running'}"] == 0
    for name, (_, labels) in COUNTS.items():
        assert labels or f"genlock_{name}_total" in said


async def test_metrics_follow_the_store(house: House) -> None:
    await ended(house.store)
    await house.store.kv_put("ledger_violations", "2")
    said = await house.metrics()
    assert said["genlock_undelivered"] == 1
    assert said["genlock_jobs{'state': 'succeeded'}"] == 1
    assert said["genlock_ledger_violations"] == 2
