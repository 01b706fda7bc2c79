"""An engine with the Telegram channel, in front of the simulated Telegram, with files to fetch and a person to see."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from aiohttp import web
from PIL import Image

from genlock.channels.telegram.caller import Caller, Priority, make_bot
from genlock.channels.telegram.channel import TelegramChannel
from genlock.domain.delivery import Part, plan
from genlock.domain.job import Job, NewJob, State, Verdict
from genlock.domain.money import EntryKind
from genlock.domain.result import PartKind, Piece
from genlock.engine.context import EngineContext, EngineRules
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.media.download import Downloads
from genlock.ports import EndJob
from genlock.sandbox.kie.media import make_video
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from genlock.stores.database import SqlDatabase
from genlock.stores.sqlite import SqliteStore
from tests.channels.telegram.words import PlainWords
from tests.engine.world import Mill, Recorder, die, idle

PRICE = 100
EXPECTED_SECONDS = 100.0
PROGRESS_SECONDS = 3.0
_numbers = count(1)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Shelf:
    """A web server with files. What is not there is a 404."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.agents: set[str] = set()
        self._files: dict[str, Handler] = {}

    def put(self, name: str, content: bytes, content_type: str = "application/octet-stream") -> str:
        async def answer(_: web.Request) -> web.Response:
            return web.Response(body=content, content_type=content_type)

        return self.serve(name, answer)

    def serve(self, name: str, handler: Handler) -> str:
        self._files[name] = handler
        return f"{self.url}/{name}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        self.asked.append(name)
        self.agents.add(request.headers.get("User-Agent", ""))
        if name not in self._files:
            return web.Response(status=404, text="not here")
        return await self._files[name](request)


@asynccontextmanager
async def running_shelf() -> AsyncIterator[Shelf]:
    shelf = Shelf()
    app = web.Application()
    app.router.add_get("/{name:.*}", shelf.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    shelf.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield shelf
    finally:
        await runner.cleanup()


def picture(size: tuple[int, int] = (640, 480), form: str = "PNG", colour: str = "teal", **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, form, **options)
    return file.getvalue()


def noise(size: tuple[int, int], form: str = "PNG") -> bytes:
    """A picture that does not get smaller by packing."""
    file = io.BytesIO()
    Image.frombytes("RGB", size, Random(1).randbytes(size[0] * size[1] * 3)).save(file, form)
    return file.getvalue()


@cache
def film() -> bytes:
    return make_video("a film", {"prompt": "waves"}, 0)


class TurnableClock:
    """The time of day, and a hand to turn it on with."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class NoLimits:
    """Turns for everybody; remembers what was asked for and what was stopped."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, Priority]] = []
        self.stopped: list[tuple[int | None, float]] = []

    async def take(self, chat: int, priority: Priority) -> None:
        self.taken.append((chat, priority))

    async def stop(self, chat: int | None, seconds: float) -> None:
        self.stopped.append((chat, seconds))


@dataclass
class House:
    telegram: TelegramSimulator
    shelf: Shelf
    store: SqlDatabase
    recorder: Recorder
    engine: Engine
    channel: TelegramChannel
    turns: NoLimits
    clock: TurnableClock
    ann: SimulatedUser
    person: int
    mill: Mill = field(default_factory=Mill)
    others: list[Engine] = field(default_factory=list)

    def another(self, instance: str) -> Engine:
        """A second instance, which shows progress as the first does."""
        engine = Engine(replace(self.engine.ctx, instance=instance))
        self.others.append(engine)
        return engine

    async def running(self, *, chat: int | None = None, thread: int | None = None, **changes: Any) -> Job:
        """A job whose task runs, with its message in the chat."""
        where = f"{chat or self.ann.id}{'' if thread is None else f'.{thread}'}/en"
        order = NewJob(
            account_id=self.person,
            request_key=f"key-{next(_numbers)}",
            provider="mill",
            channel="telegram",
            address=where,
            model="flux/dev",
            input="{}",
            price=PRICE,
            deadline_seconds=600,
        )
        job = await self.engine.order(replace(order, **changes))
        await idle(self.engine)
        return await self.see(job)

    async def end(self, job: Job, *pieces: str | Piece, state: State = State.SUCCEEDED, code: str = "") -> Job:
        """The job ends with these pieces, and is delivered as far as that goes now."""
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
        """The next try, at once."""
        await self.store.retry(job.id)
        for taken in await self.store.claim(10, self.engine.ctx.lease):
            self.engine.worker.start(taken)
        await idle(self.engine)
        return await self.see(job)

    async def next_try(self, job: Job) -> Job:
        """The next try, when it is due: the clock is turned, since nobody wants to wait."""
        row = await self.see(job)
        assert row.due_at is not None
        self.clock.ahead += max(timedelta(), row.due_at - self.clock.now()) + timedelta(seconds=0.001)
        for taken in await self.store.claim(10, self.engine.ctx.lease):
            self.engine.worker.start(taken)
        await idle(self.engine)
        return await self.see(job)

    async def see(self, job: Job) -> Job:
        found = await self.store.job(job.id)
        assert found is not None
        return found

    def shown(self, job: Job) -> list[Any]:
        """The messages that the job's parts are on, as the person sees them."""
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
async def running_house(telegram: TelegramSimulator, folder: Path, *, near: bool = True) -> AsyncIterator[House]:
    recorder, turns, mill, clock = Recorder(), NoLimits(), Mill(), TurnableClock()
    async with running_shelf() as shelf:
        store = await SqliteStore.open(str(folder / "store.db"), clock=clock, observer=recorder)
        person = await store.ensure_account("telegram", "42", "1")
        await store.transfer(person, EntryKind.GRANT, 100_000, "grant")
        caller = Caller(make_bot(telegram.token, telegram.url), turns, recorder)
        downloads = Downloads(private=[shelf.url.removeprefix("http://")])
        channel = TelegramChannel(caller, PlainWords(), downloads, near=near)
        engine = Engine(
            EngineContext(
                store=store,
                providers={"mill": mill},
                channels={"telegram": channel},
                observer=recorder,
                instance="me",
                limits=RateLimiter(store, {}),
                rules=EngineRules(progress_seconds=PROGRESS_SECONDS),
                rng=Random(1),
                public_url="https://bot.example",
                expected=lambda _: EXPECTED_SECONDS,
            )
        )
        ann = telegram.add_user("Ann")
        house = House(telegram, shelf, store, recorder, engine, channel, turns, clock, ann, person, mill)
        yield house
        for each in (engine, *house.others):
            await die(each)
        await downloads.close()
        await caller.close()
        assert await store.violations(settled=False) == []
        await store.close()


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - others set no event of ours
            await asyncio.sleep(0.005)
