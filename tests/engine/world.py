"""The harness of the engine tests: a fake provider, a fake channel, a recorder, and a clock that tests advance."""

import asyncio
import json
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from time import monotonic
from typing import Any, cast

from genlock.domain.delivery import Level, Part, plan
from genlock.domain.errors import AddressChanged, InvalidResult, LevelRefused, PlaceholderGone, RecipientUnreachable
from genlock.domain.events import Event
from genlock.domain.inbox import Callback
from genlock.domain.job import Job, NewJob, State, Verdict
from genlock.domain.money import Wallet
from genlock.domain.poison import SLOTS
from genlock.domain.result import Outcome, PartKind, Piece, Report
from genlock.domain.task import Handle, TaskOrder
from genlock.engine.collect import store_callback
from genlock.engine.context import EngineContext, EngineRules
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.engine.worker import Worker
from genlock.ports import Channel, EndJob, Placed, Provider, Store
from genlock.stores.database import SqlDatabase

PATIENCE_SECONDS = 10
PRICE = 100
FUNDS = 1_000_000
URL = "https://files.example/fox.png"
OUTCOMES = {
    "success": Outcome.SUCCESS,
    "failed": Outcome.FAILURE,
    "running": Outcome.RUNNING,
    "generating": Outcome.RUNNING,
}
_instances = count(1)


class HandClock:
    """A clock that moves only when a test turns it, unless it is started with `run`."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self._since: float | None = None

    def now(self) -> datetime:
        running = 0.0 if self._since is None else monotonic() - self._since
        return self._now + timedelta(seconds=running)

    def turn(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def run(self) -> None:
        """Let the clock run in real time, for tests of periodic tasks."""
        self._since = monotonic()


@dataclass(frozen=True)
class Seen:
    event: Event
    correlation_id: str
    facts: dict[str, Any]


class Recorder:
    """Records every event and count, and lets a test wait for an event."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self._counts: Counter[tuple[str, frozenset[tuple[str, str]]]] = Counter()
        self._changed = asyncio.Event()

    def event(self, event: Event, correlation_id: str = "", /, **facts: Any) -> None:
        self.seen.append(Seen(event, correlation_id, facts))
        self._changed.set()

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        self._counts[name, frozenset(labels.items())] += int(amount)

    def total(self, name: str, **labels: str) -> int:
        return sum(
            amount for (known, having), amount in self._counts.items() if known == name and labels.items() <= having
        )

    def of(self, event: Event, **facts: Any) -> list[Seen]:
        return [seen for seen in self.seen if seen.event is event and facts.items() <= seen.facts.items()]

    async def until(self, event: Event, times: int = 1, **facts: Any) -> None:
        """Wait until the event was recorded `times` times."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.of(event, **facts)) < times:
                self._changed.clear()
                await self._changed.wait()


class Gate:
    """A point that calls pass through; shut, it holds them until it is opened."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._moved = asyncio.Event()
        self.waiting = 0
        self.arrived = 0

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def through(self) -> None:
        self.waiting += 1
        self.arrived += 1
        self._moved.set()
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1

    async def reached(self, calls: int) -> None:
        """Wait until `calls` calls have arrived in all."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.arrived < calls:
                self._moved.clear()
                await self._moved.wait()

    async def holds(self, calls: int = 1) -> None:
        """Wait until `calls` calls are held."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.waiting < calls:
                self._moved.clear()
                await self._moved.wait()


@dataclass
class Fault:
    error: BaseException
    #: whether the call has its effect before it fails: a lost answer
    done: bool = False


class Faults:
    """The faults of the next calls, by operation."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Fault | None]] = {}

    def add(self, operation: str, *errors: BaseException | None, done: bool = False) -> None:
        """Let the next calls fail, in this order; None lets one succeed."""
        faults = (None if error is None else Fault(error, done) for error in errors)
        self._queues.setdefault(operation, deque()).extend(faults)

    def before(self, operation: str) -> Fault | None:
        """The next fault: raised if the call is to have no effect, else returned for `after`."""
        queue = self._queues.get(operation)
        fault = queue.popleft() if queue else None
        if fault and not fault.done:
            raise fault.error
        return fault


def after(fault: Fault | None) -> None:
    if fault:
        raise fault.error


class FakeProvider(Provider):
    """A provider whose tasks run until the test sets their report."""

    name = "fake"

    def __init__(self, tag: str = "task") -> None:
        self.tag = tag
        self.created: list[tuple[Job, str | None]] = []
        self.asked: list[str] = []
        self.reports: dict[str, Report] = {}
        self.faults = Faults()
        self.create_gate = Gate()
        self.status_gate = Gate()
        #: called during the create call
        self.on_create: Callable[[Job], Awaitable[None]] | None = None

    async def create(self, order: TaskOrder) -> Handle:
        job, callback_url = order.job, order.callback_url
        self.created.append((job, callback_url))
        task_id = f"{self.tag}-{len(self.created)}"
        if self.on_create:
            await self.on_create(job)
        await self.create_gate.through()
        after(self.faults.before("create"))
        return Handle(task_id=task_id, details=f"at {task_id}")

    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        task_id = handle.task_id
        assert order.job.task_id == task_id
        self.asked.append(task_id)
        await self.status_gate.through()
        after(self.faults.before("status"))
        return self.reports.get(task_id, Report(outcome=Outcome.RUNNING, task_id=task_id, word="running"))

    def read_callback(self, body: bytes) -> Report:
        found = json.loads(body)
        word = found["state"]
        return Report(
            outcome=OUTCOMES.get(word, Outcome.UNKNOWN),
            task_id=found.get("task"),
            pieces=tuple(Piece(value=value) for value in found.get("urls", [])),
            error_code=found.get("code", ""),
            cost=found.get("cost"),
            word=str(word),
        )

    def token(self, job: Job) -> str:
        """Return the token of the callback URL that the job's last create call got."""
        urls = [url for created, url in self.created if created.id == job.id]
        assert urls
        assert urls[-1] is not None
        return urls[-1].rpartition("/")[2]


@dataclass(frozen=True)
class Call:
    operation: str
    job: int
    index: int = 0
    level: Level | None = None
    message: str | None = None


class FakeChannel(Channel):
    """A channel of messages with one text each, and a list of every change that a user could have seen."""

    name = "chat"

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}
        #: (message, new text) of every visible change, in order
        self.shown: list[tuple[str, str]] = []
        self.notices: list[int] = []
        #: (address, text) of messages that belong to no job
        self.told: list[tuple[str, str]] = []
        self.calls: list[Call] = []
        self.refused: set[Level] = set()
        #: a value at which the channel raises an unexpected error
        self.poison = ""
        self.closed = ""
        #: the new address of the chat, raised by the next call of this name
        self.moved: dict[str, str] = {}
        #: values that are not usable results
        self.broken: set[str] = set()
        self.fractions: Sequence[float] = ()
        self.faults = Faults()
        self.gate = Gate()
        self.progress_gate = Gate()
        self._numbers = count(1)

    def new_message(self) -> str:
        message = f"m{next(self._numbers)}"
        self.messages[message] = ""
        return message

    def delete(self, message: str | None) -> None:
        assert message is not None
        del self.messages[message]

    def showing(self, value: str) -> list[str]:
        """Return the messages that show a value, at any level."""
        return [message for message, text in self.messages.items() if text.partition(" ")[2] == value]

    def levels(self, operation: str = "put") -> list[Level | None]:
        return [call.level for call in self.calls if call.operation == operation]

    async def create_placeholder(self, job: Job, index: int) -> str:
        fault = await self._enter(Call("create_placeholder", job.id, index))
        message = self.new_message()
        after(fault)
        return message

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        assert part.message is not None
        fault = await self._enter(Call("put", job.id, index, part.level, part.message))
        self._allow(part)
        if part.message not in self.messages:
            raise PlaceholderGone
        return self._show(part.message, job, part, fault)

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        fault = await self._enter(Call("send", job.id, index, part.level))
        self._allow(part)
        return self._show(self.new_message(), job, part, fault)

    async def notify(self, job: Job) -> None:
        fault = await self._enter(Call("notify", job.id))
        self.notices.append(job.id)
        after(fault)

    async def tell(self, address: str, text: str) -> None:
        fault = await self._enter(Call("tell", 0))
        self.told.append((address, text))
        after(fault)

    def progress_points(self, job: Job) -> Sequence[float]:
        return self.fractions

    async def progress(self, job: Job, fraction: float, until: float) -> None:
        fault = await self._enter(Call("progress", job.id, message=job.placeholder))
        if job.placeholder in self.messages:
            self.messages[job.placeholder] = f"progress {fraction:.2f}"
        after(fault)

    async def _enter(self, call: Call) -> Fault | None:
        self.calls.append(call)
        await (self.progress_gate if call.operation == "progress" else self.gate).through()
        fault = self.faults.before(call.operation)
        if call.operation in ("create_placeholder", "send", "notify") and call.operation in self.moved:
            raise AddressChanged(self.moved.pop(call.operation))
        if self.closed:
            raise RecipientUnreachable(self.closed)
        return fault

    def _allow(self, part: Part) -> None:
        if self.poison and part.value == self.poison:
            raise RuntimeError("bug")
        if part.value in self.broken:
            raise InvalidResult("it is an HTML page")
        if part.level in self.refused:
            raise LevelRefused

    def _show(self, message: str, job: Job, part: Part, fault: Fault | None) -> Placed:
        value = job.error_code if part.kind is PartKind.MESSAGE else part.value
        text = f"{part.level} {value}"
        if self.messages[message] != text:
            self.messages[message] = text
            self.shown.append((message, text))
        after(fault)
        return Placed(message=message, file=f"file-of-{message}")


class FaultProxy:
    """Wraps the store, the provider or the channel of one instance: its calls can fail or be held."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self.faults = Faults()
        self.gates: dict[str, Gate] = {}
        #: how many times each operation has returned
        self.answered: Counter[str] = Counter()
        self._moved = asyncio.Event()
        #: called before and after every call; raising here crashes the caller
        self.tap: Callable[[str, str], None] | None = None

    async def until(self, operation: str, times: int = 1) -> None:
        """Wait until the operation has returned `times` more times."""
        times += self.answered[operation]
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.answered[operation] < times:
                self._moved.clear()
                await self._moved.wait()

    def gate(self, operation: str) -> Gate:
        return self.gates.setdefault(operation, Gate())

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **named: Any) -> Any:
            if self.tap:
                self.tap("before", name)
            if name in self.gates:
                await self.gates[name].through()
            fault = self.faults.before(name)
            answer = await found(*args, **named)
            after(fault)
            self.answered[name] += 1
            self._moved.set()
            if self.tap:
                self.tap("after", name)
            return answer

        return call


@dataclass
class World:
    store: SqlDatabase
    clock: HandClock
    recorder: Recorder
    account: int
    provider: FakeProvider = field(default_factory=FakeProvider)
    channel: FakeChannel = field(default_factory=FakeChannel)
    engines: list[Engine] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def engine(
        self,
        rules: EngineRules | None = None,
        *,
        store: FaultProxy | None = None,
        provider: FaultProxy | None = None,
        channel: FaultProxy | None = None,
        public_url: str | None = "https://bot.example",
        expected: float | None = None,
    ) -> Engine:
        """Create another instance. It does nothing by itself until it is started."""
        rules = rules or EngineRules()
        number = next(_instances)
        reached = cast("Store", store or self.store)
        engine = Engine(
            EngineContext(
                store=reached,
                providers={"fake": cast("Any", provider or self.provider)},
                channels={"chat": cast("Any", channel or self.channel)},
                observer=self.recorder,
                instance=f"instance-{number}",
                limits=RateLimiter(reached, rules.limits),
                rules=rules,
                rng=Random(number),
                public_url=public_url,
                expected=(lambda _: expected) if expected else None,
            )
        )
        self.engines.append(engine)
        return engine

    def order(self, **changes: Any) -> NewJob:
        """Make an order of a tapped button, whose message will become the result."""
        number = next(self._numbers)
        plain = NewJob(
            account_id=self.account,
            request_key=f"key-{number}",
            provider="fake",
            channel="chat",
            address="42",
            model="flux",
            input='{"prompt":"a fox"}',
            price=PRICE,
            deadline_seconds=600,
            placeholder=self.channel.new_message(),
            correlation_id=f"c-{number}",
        )
        return replace(plain, **changes)

    async def see(self, job: Job | int) -> Job:
        found = await self.store.job(job if isinstance(job, int) else job.id)
        assert found is not None
        return found

    async def wallet(self) -> Wallet:
        return await self.store.wallet(self.account)

    async def spent(self) -> int:
        """Return what the account has paid; fails if anything is still held."""
        wallet = await self.wallet()
        assert wallet.held == 0, "something is still held"
        return FUNDS - wallet.available

    # jobs at a certain stage

    async def running(self, engine: Engine, **changes: Any) -> Job:
        """Return a job whose task runs at the provider."""
        job = await engine.order(self.order(**changes))
        await idle(engine)
        job = await self.see(job)
        assert job.state is State.RUNNING
        return job

    async def ended(self, engine: Engine, *urls: str, **changes: Any) -> Job:
        """Return a job with a result whose delivery has not begun."""
        job = await self.running(engine, **changes)
        assert job.task_id is not None
        parts = plan(success(job.task_id, *urls).pieces)
        ending = EndJob(job_id=job.id, state=State.SUCCEEDED, parts=parts, task_id=job.task_id)
        assert (await self.store.end_job(ending, None)).verdict is Verdict.WON
        return await self.see(job)

    async def claim_one(self, engine: Engine) -> Job:
        """Let an instance claim the one job that is due."""
        [taken] = await self.store.claim_jobs(1, engine.ctx.lease)
        engine.worker.start(taken)
        return taken

    async def call_back(self, engine: Engine, job: Job, **said: Any) -> Callback:
        """Call the job's callback URL, and wait until the instance has processed it."""
        body = callback_body(**({"task": job.task_id, "urls": [URL]} | said))
        callback = await engine.callback("fake", self.provider.token(job), body)
        await idle(engine)
        return callback


async def process_stored(engine: Engine, token: str, body: bytes) -> None:
    """Store a callback first, and process it afterwards."""
    engine.worker.start_callback(await store_callback(engine.ctx, "fake", token, body))


def callback_body(**said: Any) -> bytes:
    return json.dumps({"state": "success"} | said).encode()


def success(task_id: str, *urls: str, cost: int | None = None) -> Report:
    pieces = tuple(Piece(value=url) for url in urls or (URL,))
    return Report(outcome=Outcome.SUCCESS, task_id=task_id, pieces=pieces, cost=cost, word="success")


def failure(task_id: str, code: str = "nsfw") -> Report:
    return Report(outcome=Outcome.FAILURE, task_id=task_id, error_code=code, error_text="no", word="fail")


def tasks_of(worker: Worker) -> set[asyncio.Task[None]]:
    return set(worker._tasks())


async def idle(*engines: Engine) -> None:
    """Wait until the instances have finished their running tasks."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while tasks := set().union(*(tasks_of(engine.worker) for engine in engines)):
            await asyncio.wait(tasks)


async def work(engine: Engine) -> list[Job]:
    """Let an instance claim and process what is due."""
    jobs = await engine.ctx.store.claim_jobs(engine.worker.free_capacity, engine.ctx.lease)
    jobs += await engine.ctx.store.claim_poison_jobs(SLOTS, engine.ctx.lease)
    for job in jobs:
        engine.worker.start(job)
    await idle(engine)
    return jobs


async def die(engine: Engine) -> None:
    """Crash an instance, as kill -9 does: nothing of it runs any more, nothing was released."""
    tasks = {*engine._runner._running, *tasks_of(engine.worker)}
    for task in tasks:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks, return_exceptions=True)
