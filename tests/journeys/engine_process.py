"""A process that runs only an engine, for tests that kill it: `python engine_process.py CONFIG`, the config as JSON.

Its provider and its channel write to tables of the same database, so that tests can read what a killed process did.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import asyncpg

from genlock.domain.delivery import Part
from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.domain.result import Outcome, PartKind, Piece, Report
from genlock.domain.task import Handle, TaskOrder
from genlock.engine.context import EngineContext, EngineRules
from genlock.engine.engine import Engine
from genlock.engine.job_events import JobEventRecorder
from genlock.engine.limits import RateLimiter
from genlock.engine.periodic import PeriodicTask
from genlock.metrics import Observers
from genlock.ports import Channel, Placed, Provider
from genlock.stores.postgres import PostgresStore

SCHEMA = """
CREATE SCHEMA outside;
CREATE TABLE outside.calls (operation text, job bigint, instance text);
CREATE TABLE outside.messages (id text PRIMARY KEY, shown text);
"""
READY = "READY"


@dataclass(frozen=True, kw_only=True)
class Config:
    url: str
    name: str
    #: puts hang until SIGUSR1
    hold: bool = False
    #: fraction of puts that fail
    faults: float = 0.0
    rules: dict[str, float]


def log(word: str, /, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": word, **fields}, default=str) + "\n")
    sys.stdout.flush()


class Lines:
    """Observer that writes events as JSON lines to the standard output."""

    def event(self, event: Event, _: str = "", /, **fields: Any) -> None:
        log(event, **fields)

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        pass


@dataclass
class OutsideTables:
    pool: "asyncpg.Pool[asyncpg.Record]"
    name: str

    async def note(self, operation: str, job: Job) -> None:
        await self.pool.execute("INSERT INTO outside.calls VALUES ($1, $2, $3)", operation, job.id, self.name)

    async def show(self, message: str, text: str) -> None:
        await self.pool.execute(
            "INSERT INTO outside.messages VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET shown = excluded.shown",
            *(message, text),
        )


class InstantProvider(Provider):
    """Every task succeeds; its callback comes soon, sometimes before the create call is answered."""

    name = "instant"

    def __init__(self, outside: OutsideTables, rng: Random) -> None:
        self._outside = outside
        self._rng = rng
        self._calls: set[asyncio.Task[None]] = set()
        self.engine: Engine | None = None

    async def create(self, order: TaskOrder) -> Handle:
        job, callback_url = order.job, order.callback_url
        assert callback_url is not None
        await self._outside.note("create", job)
        call = asyncio.create_task(self._call_back(job, callback_url.rpartition("/")[2]))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        await asyncio.sleep(self._rng.uniform(0, 0.05))
        return Handle(task_id=f"task-{job.id}")

    async def _call_back(self, job: Job, token: str) -> None:
        await asyncio.sleep(self._rng.uniform(0, 0.1))
        assert self.engine is not None
        await self.engine.callback("instant", token, str(job.id).encode())

    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        await self._outside.note("status", order.job)
        return self._success(int(handle.task_id.removeprefix("task-")))

    def read_callback(self, body: bytes) -> Report:
        return self._success(int(body))

    def _success(self, job_id: int) -> Report:
        pieces = (Piece(value=f"result of {job_id}"),)
        return Report(outcome=Outcome.SUCCESS, task_id=f"task-{job_id}", pieces=pieces, word="success")


class Chat(Channel):
    name = "chat"

    def __init__(self, outside: OutsideTables, rng: Random, config: Config) -> None:
        self._outside = outside
        self._rng = rng
        self._faults = config.faults
        self.open = asyncio.Event()
        if not config.hold:
            self.open.set()

    async def create_placeholder(self, job: Job, index: int) -> str:
        raise NotImplementedError("every job has a placeholder")

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        assert part.message is not None
        await self._outside.note("put", job)
        await self.open.wait()
        draw = self._rng.random()
        if draw < self._faults / 2:
            raise ChannelBusy(0.2)
        await self._outside.show(part.message, job.error_code if part.kind is PartKind.MESSAGE else part.value)
        if draw < self._faults:
            raise ChannelOutcomeUnknown
        return Placed(message=part.message)

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        raise NotImplementedError("messages are never deleted in these tests")

    async def notify(self, job: Job) -> None:
        await self._outside.note("notify", job)

    async def progress(self, job: Job, fraction: float, until: float) -> None:
        raise NotImplementedError("the model has no expected time")


def log_answers(store: PostgresStore, *operations: str) -> None:
    """Log each answer of the store to these operations."""

    def logging(operation: str) -> Callable[..., Awaitable[Any]]:
        ask = getattr(store, operation)

        async def asked(*values: Any) -> Any:
            answer = await ask(*values)
            log(operation)
            return answer

        return asked

    for operation in operations:
        setattr(store, operation, logging(operation))


async def main(config: Config) -> None:
    recorder = JobEventRecorder(config.name, Lines(), str)
    observer = Observers(Lines(), recorder)
    store = await PostgresStore.open(config.url, observer=observer)
    log_answers(store, "heartbeat", "take_role")
    pool = await asyncpg.create_pool(config.url, min_size=1, max_size=4)
    outside, rng = OutsideTables(pool, config.name), Random(config.name)
    provider, chat = InstantProvider(outside, rng), Chat(outside, rng, config)
    engine = Engine(
        EngineContext(
            store=store,
            providers={"instant": provider},
            channels={"chat": chat},
            observer=observer,
            instance=config.name,
            limits=RateLimiter(store, {}),
            rules=EngineRules(**config.rules),  # type: ignore[arg-type]
            public_url="https://bot.example",
        )
    )
    provider.engine = engine
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, chat.open.set)
    writing = PeriodicTask(name="write_job_events", period_seconds=0.2, run=partial(recorder.write, store))
    await engine.start([writing])
    log(READY)
    await stop.wait()
    await engine.stop()
    await recorder.write_last(store)
    await store.close()
    await pool.close()


if __name__ == "__main__":
    asyncio.run(main(Config(**json.loads(sys.argv[1]))))
