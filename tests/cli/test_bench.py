"""The bench runs and prints its keys; this test does not judge the figures."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from genlock.cli import app
from genlock.sandbox.bench.bench import waiting_cost
from genlock.sandbox.bench.world import open_world

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("forked_services")]


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_the_bench_prints_its_fixed_keys(store: str) -> None:
    options = ["--store", store, "--scale", "0.002", "--rounds", "1", "--json"]
    done = CliRunner().invoke(app, ["bench", *options])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    expected = {"store", "lives_per_second", "history_ratio", "callback_to_channel_ms", "waiting_bytes_per_job"}
    expected |= {"start_seconds", "rest_megabytes", "help_seconds", "callback_endpoint_ms", "callback_burst"}
    if store == "postgres":
        expected |= {"plain_per_second", "ratio", "plain_dedicated_per_second", "ratio_dedicated"}
    expected |= {"order", "api"}
    assert expected <= figures.keys()
    assert figures["store"] == store
    assert figures["lives_per_second"] > 0
    assert figures["waiting_tasks"] <= 2, "100 jobs wait without a task; a periodic task may be at work just then"
    assert set(figures["callback_to_channel_ms"]) == {"p50", "p99"}
    assert set(figures["callback_endpoint_ms"]) == {"p50", "p99", "max"}
    burst = figures["callback_burst"]
    assert burst["acknowledged"] == burst["stored"] == burst["sent"] == 50
    assert figures["api"].keys() >= {"get_p99_ms", "get_cpu_ms", "bare_get_cpu_ms", "post_ratio", "post_cpu_ms"}
    for way in ("by_command", "by_buttons"):
        order = figures["order"][way]
        assert order["telegram_calls"]["editMessageMedia"] >= 1
        assert order["statements"]["accept_job"] == 1
        assert order["service_cpu_ms"] > 0
        assert ("wal_bytes" in order) == (store == "postgres")


async def test_memory_that_is_kept_for_each_waiting_job_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(f"sqlite:///{tmp_path}/bench.db", "waiting", accounts=100) as world:
        as_it_is, _ = await waiting_cost(world, 100)
        order, kept = world.engine.order, list[bytes]()

        async def order_and_keep(new: Any) -> Any:
            kept.append(bytes(10_000))
            return await order(new)

        monkeypatch.setattr(world.engine, "order", order_and_keep)
        leaking, _ = await waiting_cost(world, 100)
    assert leaking > as_it_is + 5_000
