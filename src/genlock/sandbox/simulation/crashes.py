"""Instances that die before and after every call, and sleep and wake as zombies.

Everything an instance does to the outside goes through a proxy with a point before and a point behind the call. A dead
instance stays at its next point for ever, as a killed process would: no handler runs, nothing it does takes effect.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from genlock.domain.errors import GenlockError, StoreUnavailable
from genlock.domain.job import Job, State, Verdict
from genlock.ports import Accepted, Channel, EndJob, JobEnd, Provider, Store
from genlock.sandbox.simulation.world import World

T = TypeVar("T")

_STORE_TROUBLE = ("store: unavailable", "store: answer lost", "store: made twice", "store: slow", "store: answer slow")
_FENCED = (
    "begin_submit",
    "mark_submitted",
    "save_parts",
    "begin_notice",
    "renew",
    "change_address",
    "mark_result_invalid",
)


def _calls(port: type, prefix: str) -> list[str]:
    return [f"{prefix}.{name}" for name, member in vars(port).items() if inspect.iscoroutinefunction(member)]


#: Every call that an instance can make.
CALLS = [*_calls(Store, "store"), "store.reserve", *_calls(Provider, "provider"), *_calls(Channel, "channel")]
CALLS.remove("store.close")
for name in (
    "is_secret",
    "count_unauthenticated_callbacks",
    "job_ordered",
    "resend_paid",
):  # of the doors and the chat, not of an engine
    CALLS.remove(f"store.{name}")
#: Every place where an instance can die.
POINTS = [f"{side} {call}" for call in CALLS for side in ("before", "after")]


class CutOff(Exception):
    """An instance did not answer: it died, or sleeps."""


@dataclass(kw_only=True, slots=True)
class Fate:
    """What waits at a point for whoever passes it as the n-th."""

    kind: str
    passings: int
    seconds: float = 0.0


class Life:
    """Whether an instance runs, sleeps or is dead."""

    def __init__(self, world: World, name: str, fates: dict[str, Fate]) -> None:
        self._world = world
        self.name = name
        #: common to all: whoever comes by meets them
        self._fates = fates
        self.died: asyncio.Future[None] = world.loop.create_future()
        self._wake: asyncio.Future[None] | None = None
        #: it died while its peers knew it, so that they notice its silence
        self.missed = False
        self.stopping = False
        #: until when it does not reach the database, though it reaches everybody else
        self.cut_off_until = 0.0

    @property
    def dead(self) -> bool:
        return self.died.done()

    @property
    def asleep(self) -> bool:
        return self._wake is not None

    def kill(self, why: str) -> None:
        if not self.dead:
            self._world.note(self.name, "KILLED", why=why)
            self.missed = self.name in self._world.truth.listed
            self.died.set_result(None)

    def pause(self, seconds: float) -> None:
        if self._wake is None and not self.dead:
            self._world.note(self.name, "PAUSED", seconds=round(seconds, 1))
            self._wake = self._world.loop.create_future()
            self._world.loop.call_later(seconds, self._awake)

    def _awake(self) -> None:
        if self._wake:
            self._wake.set_result(None)
            self._wake = None
            self._world.note(self.name, "AWAKE")

    async def point(self, point: str) -> None:
        """Go on, unless this is where the instance dies or falls asleep, or it is dead already."""
        if self._wake:
            await asyncio.shield(self._wake)
        if point in self._fates and not self.dead and not self._world.calm:
            self._meet(self._fates[point], point)
        if self._wake:
            await asyncio.shield(self._wake)
        if self._world.over:
            raise asyncio.CancelledError
        if self.dead:
            await asyncio.shield(self._world.nothing)

    def _meet(self, fate: Fate, point: str) -> None:
        fate.passings -= 1
        if fate.passings:
            return
        self._world.faults[f"{fate.kind} {point}"] += 1
        if fate.kind == "killed":
            self.kill(point)
        else:
            self.pause(fate.seconds)

    async def serve(self, work: Coroutine[Any, Any, T], seconds: float = 8.0) -> T:
        """A request from outside. The one who asks learns nothing if the instance dies or takes too long."""
        task = self._world.loop.create_task(work)
        task.add_done_callback(_heard)
        if not self.dead:
            await asyncio.wait((task, self.died), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise CutOff
        if (error := task.exception()) and not isinstance(error, GenlockError):
            self._world.truth.breaks("A request is done, refused or not answered.", 0, repr(error))
            raise CutOff from error
        return task.result()


def _heard(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


class StoreProxy:
    """One instance's way to the common database."""

    def __init__(self, world: World, life: Life, store: Store, grace_seconds: float) -> None:
        self._world = world
        self._life = life
        self._store = store
        self._witness = Witness(world, grace_seconds)
        self.uncertain_commits = 0

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name, getattr(self._store, name))

    async def _call(self, name: str, method: Callable[..., Awaitable[Any]], /, *args: Any, **options: Any) -> Any:
        await self._life.point(f"before store.{name}")
        kind = self._world.pick(_STORE_TROUBLE, self._life.name, call=name)
        if kind == "store: slow":
            await self._world.lag()
            await self._life.point(f"before store.{name}")
        if kind == "store: unavailable" or self._cut_off:
            raise StoreUnavailable
        stale = self._witness.stale(name, args)
        answer = await method(*args, **options)
        self._witness.look(name, args, answer, stale=stale)
        if kind == "store: made twice":
            # The connection broke before the answer, and the store made the statement again.
            self.uncertain_commits += 1
            stale = self._witness.stale(name, args)
            answer = await method(*args, **options)
            self._witness.look(name, args, answer, stale=stale)
        elif kind == "store: answer slow":
            await self._world.lag()
        await self._life.point(f"after store.{name}")
        if kind == "store: answer lost":
            self.uncertain_commits += 1
            raise StoreUnavailable
        return answer

    @property
    def _cut_off(self) -> bool:
        return self._world.loop.time() < max(self._life.cut_off_until, self._world.store_down_until)


class Witness:
    """Watches the database's answers: no token may be accepted after a higher one was given out."""

    def __init__(self, world: World, grace_seconds: float) -> None:
        self._world = world
        self._truth = world.truth
        self._grace = grace_seconds

    def stale(self, name: str, args: tuple[Any, ...]) -> bool:
        """Whether this call names a token that is known to be over."""
        job_id, token = _fence(name, args)
        return token is not None and token < self._truth.tokens[job_id]

    def look(self, name: str, args: tuple[Any, ...], answer: Any, *, stale: bool) -> None:
        job_id, _ = _fence(name, args)
        if stale and _effective(answer):
            self._truth.breaks("A zombie's write changes nothing.", job_id, f"{name} was accepted with a stale token")
        for job in _leased(answer):
            self._truth.tokens[job.id] = max(self._truth.tokens[job.id], job.lease_token)
        if name == "heartbeat":
            self._truth.listed.add(args[0])
        if name == "release_leases" and len(args) == 1:
            self._truth.listed.discard(args[0])
        if name == "resend" and answer:
            self._truth.resends[args[0]] += 1
        if name == "retry" and answer:
            self._truth.retries[args[0]] += 1
        if name == "begin_submit" and answer:
            self._truth.submits[job_id] = self._world.loop.time()
        if name == "end_job" and isinstance(answer, JobEnd) and answer.verdict is Verdict.WON and answer.job:
            self._look_at_end(args[0], answer.job)

    def _look_at_end(self, ending: EndJob, job: Job) -> None:
        if ending.state is not State.EXPIRED:
            return
        if ending.error_code == "submit_unknown":
            waited = self._world.loop.time() - self._truth.submits[job.id]
            if waited < self._grace - 0.001:
                rule = "An unknown submit waits for its callback."
                self._truth.breaks(rule, job.id, f"given up after {waited:.3f} of {self._grace} seconds")
        elif job.read_at < job.deadline_at:
            self._truth.breaks("A job is given up at its deadline.", job.id, f"at {job.read_at}, not {job.deadline_at}")


def _fence(name: str, args: tuple[Any, ...]) -> tuple[int, int | None]:
    """The job and the token that a call names."""
    if name in _FENCED:
        return args[0], args[1]
    if name in ("reschedule", "finish_delivery", "end_job"):
        return args[0].job_id, args[0].token
    return 0, None


def _effective(answer: Any) -> bool:
    if isinstance(answer, JobEnd):
        return answer.verdict in (Verdict.WON, Verdict.LATE)
    return bool(answer)


def _leased(answer: Any) -> list[Job]:
    """The jobs an answer hands to somebody."""
    if isinstance(answer, JobEnd | Accepted):
        answer = answer.job
    if isinstance(answer, Job):
        return [answer]
    return [job for job in answer if isinstance(job, Job)] if isinstance(answer, list) else []


class OutsideProxy:
    """One instance's way to the provider or the channel."""

    def __init__(self, world: World, life: Life, real: Any, prefix: str, store: Store) -> None:
        self.name = real.name
        self._world = world
        self._life = life
        self._real = real
        self._prefix = prefix
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._real, name)
        return partial(self._call, f"{self._prefix}.{name}", method) if inspect.iscoroutinefunction(method) else method

    async def _call(self, call: str, method: Callable[..., Coroutine[Any, Any, Any]], /, *args: Any) -> Any:
        await self._life.point(f"before {call}")
        wire = self._world.spawn(_outcome(method(*args)))
        try:
            error, answer = await asyncio.shield(wire)
        except asyncio.CancelledError:
            # The request may be on its way all the same.
            if self._world.flip():
                wire.cancel()
            self._abandoned(call, next(arg for arg in args if isinstance(arg, Job)))
            raise
        await self._life.point(f"after {call}")
        if error:
            raise error
        return answer

    def _abandoned(self, call: str, job: Job) -> None:
        if not (self._world.over or self._life.dead or self._life.stopping):
            self._world.note(self._life.name, "ABANDONED", job=job.id, call=call, token=job.lease_token)
            self._world.spawn(self._check_abandoned(call, job))

    async def _check_abandoned(self, call: str, job: Job) -> None:
        row = await self._store.job(job.id)
        if row and row.lease_owner == self._life.name and row.lease_token == job.lease_token:
            rule = "Nobody drops work that is still theirs."
            self._world.truth.breaks(rule, job.id, f"{self._life.name} cut off its own {call}")


async def _outcome(work: Coroutine[Any, Any, T]) -> tuple[Exception | None, T | None]:
    """The answer or the error of a call, as a value: nobody may be left to hear it."""
    try:
        return None, await work
    except Exception as error:  # noqa: BLE001 - raised again for whoever still listens
        return error, None


def proxies(
    world: World, life: Life, store: Store, provider: Provider, channel: Channel, *, grace_seconds: float
) -> tuple[Store, Provider, Channel]:
    """What an instance is given instead of the real ones."""
    return (
        cast("Store", StoreProxy(world, life, store, grace_seconds)),
        cast("Provider", OutsideProxy(world, life, provider, "provider", store)),
        cast("Channel", OutsideProxy(world, life, channel, "channel", store)),
    )
