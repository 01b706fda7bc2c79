"""Fail-over with two instances on PostgreSQL, and a kill after the attempt is recorded, before its call arrives."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from genlock.catalog import load
from genlock.doctor.doctor import Doctor
from genlock.sandbox.fleet import Fleet, running_fleet
from genlock.sandbox.instance import Instance
from genlock.sandbox.kie.simulator import running_kie
from genlock.sandbox.providers import MoreProviders, running_more_providers
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import running_telegram
from genlock.settings import Settings
from tests.bot.pages import page
from tests.changes import poll_until
from tests.settings import environment

SPEED = 30.0
OVERLAY = '[models."z-image"]\noffers = ["kie", "fal"]\n'
PATIENCE_SECONDS = 60.0


class Gate:
    """The way to a provider. Shut, it takes connections and lets nothing through, so that a call never arrives."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open = asyncio.Event()
        self._open.set()
        self.holds = asyncio.Event()

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._open.is_set():
            self.holds.set()
            await self._open.wait()
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while piece := await source.read(65536):
            target.write(piece)
            await target.drain()
    except OSError:
        pass  # the other side is gone; so is this one
    finally:
        target.close()


@asynccontextmanager
async def gate_to(url: str) -> AsyncIterator[tuple[Gate, str]]:
    gate = Gate(int(url.rpartition(":")[2]))
    server = await asyncio.start_server(gate.carry, "127.0.0.1", 0)
    try:
        yield gate, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        gate.open()
        server.close()


class TwoInstances:
    def __init__(self, fleet: Fleet, more: MoreProviders, gate: Gate, database: Any) -> None:
        self.fleet, self.fal, self.gate, self._database = fleet, more.fal, gate, database

    async def user(self, name: str) -> SimulatedUser:
        user = self.fleet.telegram.add_user(name, language="en", started=False)
        await user.start()
        await user.sees(lambda message: bool(message.buttons), seconds=PATIENCE_SECONDS)
        return user

    async def job(self, prompt: str) -> dict[str, Any]:
        return dict(await self._database.fetchrow("SELECT * FROM jobs WHERE input LIKE $1", f"%{prompt}%") or {})

    async def job_with(self, prompt: str, column: str) -> dict[str, Any]:
        """Wait until a column of the order's row is set."""

        async def is_set() -> bool:
            return (await self.job(prompt)).get(column) is not None

        await poll_until(is_set, PATIENCE_SECONDS)
        return await self.job(prompt)

    async def attempts(self, prompt: str) -> list[tuple[str, str | None]]:
        query = """
            SELECT a.provider, a.outcome FROM attempts a JOIN jobs j ON j.id = a.job_id
            WHERE j.input LIKE $1 ORDER BY a.number
        """
        return [tuple(row) for row in await self._database.fetch(query, f"%{prompt}%")]

    def submitting(self, job: int) -> list[Instance]:
        """Return the instances that have begun to submit an order to fal."""
        return [
            instance for instance in self.fleet.instances if instance.events("SUBMIT_START", job=job, provider="fal")
        ]

    def ordered(self, prompt: str) -> int:
        """Return how many tasks the providers have ever had for an order."""
        kie = [task for task in self.fleet.kie.service.tasks.values() if task.values.get("prompt") == prompt]
        return len(kie) + len(
            [
                generation
                for generation in self.fal.service.generations.values()
                if prompt in json.dumps(generation.values)
            ]
        )


@pytest.fixture
async def two(tmp_path: Path, postgres_url: str) -> AsyncIterator[TwoInstances]:
    overlay = tmp_path / "catalog.toml"
    overlay.write_text(OVERLAY)
    catalog = load(overlay)
    database = await asyncpg.connect(postgres_url)
    async with (
        running_telegram() as telegram,
        running_kie(catalog=catalog, webhook_key="sandbox-webhook-key", speed=SPEED) as kie,
        running_more_providers(catalog, speed=SPEED) as more,
        gate_to(more.fal.url) as (gate, url),
        running_fleet(
            telegram=telegram,
            kie=kie,
            more=more,
            folder=tmp_path,
            database_url=postgres_url,
            settings={
                "GENLOCK_WELCOME_CREDITS": "100",
                "GENLOCK_CATALOG_OVERLAY": str(overlay),
                "GENLOCK_FAL_API_URL": url,
                "GENLOCK_FAL_CONCURRENCY": "3",
                "GENLOCK_GRACE_SECONDS": "2",
            },
        ) as fleet,
    ):
        kie.service.credits = 0  # so that fal makes every order
        await fleet.start(2)
        yield TwoInstances(fleet, more, gate, database)
    await database.close()


async def test_an_order_whose_instance_dies_before_its_call_arrives_is_never_made_twice(two: TwoInstances) -> None:
    ann = await two.user("Ann")
    await ann.say("/gen z-image first cat")
    await ann.sees(page("order.done"), seconds=PATIENCE_SECONDS)
    assert await two.attempts("first cat") == [("kie", "refused"), ("fal", "succeeded")]
    assert two.ordered("first cat") == 1

    two.gate.shut()
    await ann.say("/gen z-image lost cat")
    lost = await two.job_with("lost cat", "id")
    await poll_until(lambda: two.submitting(lost["id"]), PATIENCE_SECONDS)
    await asyncio.wait_for(two.gate.holds.wait(), PATIENCE_SECONDS)
    lost = await two.job("lost cat")
    assert (lost["state"], lost["provider"]) == ("submitting", "fal")
    [submitting] = two.submitting(lost["id"])
    submitting.kill()
    two.gate.open()

    lost = await two.job_with("lost cat", "ended_at")
    assert (lost["state"], lost["error_code"], lost["hold_state"]) == ("expired", "submit_unknown", "released")
    assert (await two.attempts("lost cat"))[-1] == ("fal", "expired")
    assert two.ordered("lost cat") == 0

    await ann.say("/gen z-image third cat")
    third = await two.job_with("third cat", "delivered_at")
    assert third["hold_state"] == "captured"
    assert (await two.attempts("third cat"))[-1] == ("fal", "succeeded")
    assert two.ordered("third cat") == 1

    with environment(two.fleet.settings):
        phases = await Doctor(Settings()).examine()
    found = {phase.name: phase.detail for phase in phases}
    assert (
        "fal: an unsigned callback was refused; Replicate: an unsigned callback was refused"
        in (found["callback endpoint"])
    ), found
    assert "Kie.ai accepts the key, but no credit is left there: top up the account" in found["channel"]
    assert "fal: fal accepts the key" in found["channel"]
