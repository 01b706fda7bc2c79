"""An engine with the Telegram channel, the simulated Telegram, a file server and a user Ann."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from genlock.channels.telegram.caller import Caller, Priority, make_bot
from genlock.channels.telegram.channel import TelegramChannel
from genlock.channels.telegram.rate_limiter import TelegramRateLimiter
from genlock.domain.delivery import Part, plan
from genlock.domain.job import Job, NewJob, State, Verdict
from genlock.domain.money import EntryKind
from genlock.domain.result import PartKind, Piece
from genlock.engine.context import EngineContext, EngineRules
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.media.download import Downloads
from genlock.ports import EndJob
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from genlock.stores.database import SqlDatabase
from genlock.stores.sqlite import SqliteStore
from tests.channels.telegram.plain_texts import PlainTexts
from tests.databases import new_sqlite
from tests.engine.fake_provider import FakeProvider
from tests.engine.recorder import Recorder
from tests.engine.world import die, idle
from tests.media.file_server import FileServer, running_file_server
from tests.media.thread_reader import ThreadReader

PRICE = 100
EXPECTED_SECONDS = 100.0
PROGRESS_SECONDS = 3.0
_numbers = count(1)


class AdjustableClock:
    """The system clock plus `ahead`. It can stand still."""

    def __init__(self) -> None:
        self.ahead = timedelta()
        self._stopped: datetime | None = None

    def now(self) -> datetime:
        return self._stopped or datetime.now(UTC) + self.ahead

    @contextmanager
    def stopped(self, at: datetime) -> Iterator[None]:
        """Let it be this time during the block, and go on from there."""
        self._stopped = at
        yield
        self._stopped = None
        self.ahead = at - datetime.now(UTC)


class NoLimits(TelegramRateLimiter):
    """Grants every permit at once, and records permits and stops."""

    def __init__(self) -> None:
        self.acquired: list[tuple[int, Priority]] = []
        self.stopped: list[tuple[int | None, float]] = []

    async def acquire(self, chat: int, priority: Priority) -> None:
        self.acquired.append((chat, priority))

    async def stop(self, chat: int | None, seconds: float) -> None:
        self.stopped.append((chat, seconds))


@dataclass
class Harness:
    telegram: TelegramSimulator
    files: FileServer
    store: SqlDatabase
    recorder: Recorder
    engine: Engine
    channel: TelegramChannel
    limiter: NoLimits
    clock: AdjustableClock
    ann: SimulatedUser
    account_id: int
    mill: FakeProvider = field(default_factory=FakeProvider)
    others: list[Engine] = field(default_factory=list)

    def another(self, instance: str) -> Engine:
        """Add a second instance, which shows progress like the first."""
        engine = Engine(replace(self.engine.ctx, instance=instance))
        self.others.append(engine)
        return engine

    async def running(self, *, chat: int | None = None, thread: int | None = None, **changes: Any) -> Job:
        """Return a running job whose placeholder is in the chat."""
        address = f"{chat or self.ann.id}{'' if thread is None else f'.{thread}'}/en"
        order = NewJob(
            account_id=self.account_id,
            request_key=f"key-{next(_numbers)}",
            provider="mill",
            channel="telegram",
            address=address,
            model="flux/dev",
            input="{}",
            price=PRICE,
            deadline_seconds=600,
        )
        job = await self.engine.order(replace(order, **changes))
        await idle(self.engine)
        return await self.see(job)

    async def end(self, job: Job, *pieces: str | Piece, state: State = State.SUCCEEDED, code: str = "") -> Job:
        """End the job with these pieces and deliver it as far as possible now."""
        given = [piece if isinstance(piece, Piece) else Piece(value=piece) for piece in pieces]
        parts = plan(given) if given else (Part(kind=PartKind.MESSAGE),)
        ending = EndJob(job_id=job.id, state=state, parts=parts, error_code=code)
        ended = await self.store.end_job(ending, self.engine.ctx.lease)
        assert ended.verdict is Verdict.WON
        assert ended.job is not None
        self.engine.worker.start(ended.job)
        await idle(self.engine)
        return await self.see(job)

    async def deliver(self, *pieces: str | Piece, **changes: Any) -> Job:
        return await self.end(await self.running(**changes), *pieces)

    async def again(self, job: Job) -> Job:
        """Make the next attempt now."""
        await self.store.retry_job(job.id)
        for taken in await self.store.claim_jobs(10, self.engine.ctx.lease):
            self.engine.worker.start(taken)
        await idle(self.engine)
        return await self.see(job)

    async def next_try(self, job: Job) -> Job:
        """Make the next attempt when it is due: the clock is advanced instead of waiting."""
        row = await self.see(job)
        assert row.due_at is not None
        self.clock.ahead += max(timedelta(), row.due_at - self.clock.now()) + timedelta(seconds=0.001)
        for taken in await self.store.claim_jobs(10, self.engine.ctx.lease):
            self.engine.worker.start(taken)
        await idle(self.engine)
        return await self.see(job)

    async def see(self, job: Job) -> Job:
        found = await self.store.job(job.id)
        assert found is not None
        return found

    def shown(self, job: Job) -> list[Any]:
        """Return the messages of the job's parts, as the user sees them."""
        numbers = [int(part.message or 0) for part in job.parts]
        by_id = {message.id: message for message in self.telegram.state.chats[_chat(job)].messages.values()}
        return [by_id[number] for number in numbers]

    def methods(self) -> list[str]:
        return [call.method for call in self.telegram.journal]

    def uploads(self) -> int:
        return sum(call.uploaded > 0 for call in self.telegram.journal)


def _chat(job: Job) -> int:
    return int(job.address.partition("/")[0].partition(".")[0])


@asynccontextmanager
async def running_harness(
    telegram: TelegramSimulator, folder: Path, *, local_bot_api: bool = True
) -> AsyncIterator[Harness]:
    recorder, limiter, mill, clock = Recorder(), NoLimits(), FakeProvider(), AdjustableClock()
    async with running_file_server() as files:
        store = await SqliteStore.open(new_sqlite(folder, "store.db"), clock=clock, observer=recorder)
        account_id = await store.ensure_account("telegram", "42", "1")
        await store.transfer(account_id, EntryKind.GRANT, 100_000, "grant")
        caller = Caller(make_bot(telegram.token, telegram.url), limiter, recorder)
        downloads = Downloads(private=[files.host])
        channel = TelegramChannel(caller, PlainTexts(), downloads, ThreadReader(), local_bot_api=local_bot_api)
        engine = Engine(
            EngineContext(
                store=store,
                providers={"mill": mill},
                channels={"telegram": channel},
                observer=recorder,
                instance="me",
                limits=RateLimiter(store, {}),
                rules=EngineRules(progress_seconds=PROGRESS_SECONDS, is_alone=True),
                rng=Random(1),
                public_url="https://bot.example",
                expected=lambda _: EXPECTED_SECONDS,
            )
        )
        ann = telegram.add_user("Ann")
        harness = Harness(telegram, files, store, recorder, engine, channel, limiter, clock, ann, account_id, mill)
        yield harness
        for each in (engine, *harness.others):
            await die(each)
        await downloads.close()
        await caller.close()
        assert await store.violations(settled=False) == []
        await store.close()
