"""The endpoints for monitoring: /health, /ready, /metrics."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import ASGIApp

from genlock.app.clock import SystemClock
from genlock.app.engine import make_engine
from genlock.domain.errors import StoreUnavailable
from genlock.engine.engine import Engine
from genlock.engine.stats import Stats
from genlock.metrics import COUNTS, GAUGES, MetricsObserver
from genlock.stores.sqlite import SqliteStore
from genlock.web.health import FigureAccess, HealthEndpoints, RenderedMetrics
from genlock.web.routes import make_web
from tests.changes import PATIENCE_SECONDS
from tests.databases import sqlite_in_memory
from tests.engine.world import RULES
from tests.stores.builders import ended, queued, update
from tests.web.asgi import request


@dataclass
class Instance:
    store: SqliteStore
    engine: Engine
    web: ASGIApp
    stats: Stats
    switches: dict[str, bool]
    endpoint: HealthEndpoints

    async def get(self, path: str) -> tuple[int, Any]:
        status, body = await request(self.web, path, method="GET")
        return status, json.loads(body)

    async def metrics(self) -> dict[str, float]:
        _, body = await request(self.web, "/metrics", method="GET")
        return {
            sample.name + str(sample.labels or ""): sample.value
            for family in text_string_to_metric_families(body.decode())
            for sample in family.samples
        }


@pytest.fixture
async def instance(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Instance]:
    monkeypatch.setattr("genlock.engine.stats.TIMEOUT_SECONDS", PATIENCE_SECONDS)
    observer = MetricsObserver(CollectorRegistry())
    store = await sqlite_in_memory(SystemClock(), observer)
    engine = make_engine(store, observer, providers={}, channels={}, rules=RULES)
    stats = Stats(engine.ctx, store)
    switches = {"open": True}
    endpoint = HealthEndpoints(
        engine=engine,
        stats=stats,
        is_open=lambda: switches["open"],
        render=lambda counts, active: observer.render(counts, active=active),
        started=monotonic(),
        access=FigureAccess(token=None, is_public=False),
    )
    yield Instance(store, engine, make_web([endpoint]), stats, switches, endpoint)
    await store.close()


async def test_health_states_the_leader_and_the_queue_depth(instance: Instance) -> None:
    await queued(instance.store, lease=None)
    await instance.store.store_update(update(1))
    await instance.store.store_callback("kie", None, "", b"x")
    status, body = await instance.get("/health")
    assert status == 200
    assert (body["active"], body["queue_depth"], body["store"]) == (False, 3, "ok")
    await instance.engine.leader.elect()
    assert (await instance.get("/health"))[1]["active"] is True


async def test_an_instance_is_ready_between_start_and_stop(instance: Instance) -> None:
    assert await instance.get("/ready") == (200, {"ready": True})
    instance.switches["open"] = False
    assert (await instance.get("/ready"))[0] == 503
    assert (await instance.get("/health"))[0] == 200, "it is alive"


async def test_without_the_store_an_instance_is_not_ready_but_healthy(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> dict[str, float]:
        raise StoreUnavailable

    monkeypatch.setattr(instance.store, "stats", away)
    assert (await instance.get("/ready"))[0] == 503
    status, body = await instance.get("/health")
    assert (status, body["queue_depth"], body["store"], body["ready"]) == (200, None, "does not answer", False)
    assert (await request(instance.web, "/metrics", method="GET"))[0] == 200


async def test_health_checks_do_not_wait_for_a_store_that_hangs(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.engine.stats.TIMEOUT_SECONDS", 0.05)
    queries = 0

    async def hang() -> dict[str, float]:
        nonlocal queries
        queries += 1
        await asyncio.Event().wait()
        return {}

    monkeypatch.setattr(instance.store, "stats", hang)
    assert [(await instance.get("/ready"))[0] for _ in range(3)] == [503] * 3
    assert queries == 1, "one query at a time"
    assert instance.stats._task is not None
    instance.stats._task.cancel()


async def test_concurrent_requests_share_one_query(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = 0
    stats = instance.store.stats

    async def counted() -> dict[str, float]:
        nonlocal queries
        queries += 1
        return await stats()

    monkeypatch.setattr(instance.store, "stats", counted)
    await asyncio.gather(*(instance.get("/health") for _ in range(20)))
    assert queries == 1


async def test_every_metric_exists_from_the_start(instance: Instance) -> None:
    metrics = await instance.metrics()
    for name in GAUGES:
        assert f"genlock_{name}" in metrics
    assert metrics["genlock_active"] == 0
    assert metrics["genlock_jobs{'state': 'running'}"] == 0
    for name, (_, labels) in COUNTS.items():
        assert labels or f"genlock_{name}_total" in metrics


async def test_metrics_show_the_values_of_the_store(instance: Instance) -> None:
    await ended(instance.store)
    await instance.store.kv_put("ledger_violations", "2")
    metrics = await instance.metrics()
    assert metrics["genlock_undelivered"] == 1
    assert metrics["genlock_jobs{'state': 'succeeded'}"] == 1
    assert metrics["genlock_ledger_violations"] == 2


# figures are private where the port is public

TOKEN = "metrics-token-5f2b8c1d"


@pytest.mark.parametrize(
    ("access", "header", "allowed"),
    [
        (FigureAccess(token=None, is_public=False), None, True),
        (FigureAccess(token=None, is_public=True), None, False),
        (FigureAccess(token=None, is_public=True), "Bearer ", False),
        (FigureAccess(token=TOKEN, is_public=False), None, False),
        (FigureAccess(token=TOKEN, is_public=True), f"Bearer {TOKEN}", True),
        (FigureAccess(token=TOKEN, is_public=True), f"bearer {TOKEN}", True),
        (FigureAccess(token=TOKEN, is_public=True), f"Bearer {TOKEN}x", False),
        (FigureAccess(token=TOKEN, is_public=True), f"Basic {TOKEN}", False),
        (FigureAccess(token=TOKEN, is_public=True), "Bearer é", False),
    ],
)
async def test_figures_are_shown_only_to_clients_that_may_read_them(
    instance: Instance,
    access: FigureAccess,
    header: str | None,
    allowed: bool,  # noqa: FBT001 - a case
) -> None:
    web = make_web([replace(instance.endpoint, access=access)])
    headers = {} if header is None else {"Authorization": header}
    status, metrics = await request(web, "/metrics", headers=headers, method="GET")
    assert (status, b"genlock_jobs" in metrics) == ((200, True) if allowed else (401, False))
    status, health = await request(web, "/health", headers=headers, method="GET")
    assert (status, set(json.loads(health)) == {"active", "store", "ready"}) == (200, not allowed)


def test_metrics_are_rendered_for_at_most_a_tenth_of_the_time() -> None:
    times = iter([0.0, 1.0, 5.0, 10.9, 11.0, 11.5])
    rendered = RenderedMetrics(clock=lambda: next(times))
    texts = iter([b"first", b"second"])
    assert [rendered.get(lambda: next(texts)) for _ in range(4)] == [b"first", b"first", b"first", b"second"]
