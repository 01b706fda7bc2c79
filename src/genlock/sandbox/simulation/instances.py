"""The lifecycle of simulated instances: they are killed or paused before and after every call they make.

Everything an instance does to the outside goes through a proxy with a point before and a point after the call. A dead
instance stays at its next point forever, as a killed process would: no handler runs, nothing it does takes effect.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from genlock.domain.delivery import Part
from genlock.domain.errors import GenlockError, StoreError, StoreUnavailable
from genlock.domain.job import Job
from genlock.domain.task import TaskOrder
from genlock.ports import Channel, Provider, Store
from genlock.sandbox.simulation.store_monitor import StoreMonitor
from genlock.sandbox.simulation.world import World

T = TypeVar("T")

_STORE_FAULTS = (
    "store: unavailable",
    "store: answer lost",
    "store: statement retried",
    "store: slow",
    "store: answer slow",
)


def _calls(port: type, prefix: str) -> list[str]:
    members = {name: member for base in reversed(port.__mro__) for name, member in vars(base).items()}
    return [f"{prefix}.{name}" for name, member in members.items() if inspect.iscoroutinefunction(member)]


#: called by endpoints, the bot, the money check, retention and `tell`, which are not simulated, or in few seeds only
_NOT_SIMULATED = {
    "store.ledger_entry",
    "store.open_jobs",
    "store.kv_get",
    "store.kv_list",
    "store.kv_put",
    "store.kv_put_if_absent",
    "store.kv_delete",
    "store.kv_replace_by_message",
    "store.prune_next",
    "store.next_job_id",
    "store.next_account_id",
    "store.job_violations",
    "store.wallet_violations",
    "store.aged_jobs",
    "store.save_ledger_checkpoints",
    "store.close",
    "store.is_callback_secret",
    "store.count_unauthenticated_callbacks",
    "store.job_by_request_key",
    "store.order_state",
    "store.resend_paid_job",
    "store.account",
    "store.set_account_address",
    "store.take_permits",
    "store.take_call_permits",
    "store.prune",
    "store.block_limit",
    "store.is_job_message",
    "store.jobs_shown_by",
    "store.activity",
    "store.allowance_used",
    "store.use_allowance",
    "store.clear_attention",
    "store.transfer_within_allowance",
    "store.late_cancels",
    "store.slots_used",
    "store.begin_limited_submit",
    "store.return_notice",
    "channel.tell",
}
#: instances are killed and paused at these calls where they are at the others
_SAME_POINT = {
    "begin_limited_submit": "begin_submit",
    "return_notice": "reschedule",
    "resend_paid_job": "resend_job",
    "clear_attention": "resend_job",
}
#: Every call that an instance can make.
CALLS = [
    call
    for call in (*_calls(Store, "store"), *_calls(Provider, "provider"), *_calls(Channel, "channel"))
    if call not in _NOT_SIMULATED
]
#: Every point where an instance can be killed or paused.
POINTS = [f"{side} {call}" for call in CALLS for side in ("before", "after")]


class NoAnswer(Exception):
    """An instance did not answer: it is dead or paused."""


@dataclass(kw_only=True, slots=True)
class InstanceFault:
    """Kills or pauses the n-th instance that passes a point."""

    kind: str
    passes_left: int
    seconds: float = 0.0


class InstanceLifecycle:
    """Whether an instance runs, is paused or dead."""

    def __init__(self, world: World, name: str, instance_faults: dict[str, InstanceFault]) -> None:
        self._world = world
        self.name = name
        #: shared by all instances
        self._faults = instance_faults
        self.died: asyncio.Future[None] = world.loop.create_future()
        self._wake: asyncio.Future[None] | None = None
        #: it was killed after its first heartbeat, so the others must notice its silence
        self.missed = False
        #: the time of its crash
        self.died_at = 0.0
        self.stopping = False
        #: by how many seconds its own clock is wrong
        self.clock_offset = 0.0
        #: until when it cannot reach the database, though it reaches the provider and the channel
        self.disconnected_until = 0.0

    @property
    def dead(self) -> bool:
        return self.died.done()

    @property
    def asleep(self) -> bool:
        return self._wake is not None

    def kill(self, why: str) -> None:
        if not self.dead:
            self._world.note(self.name, "KILLED", why=why)
            self.missed = self.name in self._world.truth.registered
            self.died_at = self._world.loop.time()
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
        """Pass a point: be killed or paused if a fault waits here, and never return if dead."""
        if self._wake:
            await asyncio.shield(self._wake)
        if point in self._faults and not self.dead and not self._world.faults_over:
            self._apply(self._faults[point], point)
        if self._wake:
            await asyncio.shield(self._wake)
        if self._world.finished:
            raise asyncio.CancelledError
        if self.dead:
            await asyncio.shield(self._world.never)

    def _apply(self, fault: InstanceFault, point: str) -> None:
        fault.passes_left -= 1
        if fault.passes_left:
            return
        self._world.faults[f"{fault.kind} {point}"] += 1
        if fault.kind == "killed":
            self.kill(point)
        else:
            self.pause(fault.seconds)

    async def serve(self, work: Coroutine[Any, Any, T], seconds: float = 8.0) -> T:
        """Serve a request. Raises NoAnswer if the instance dies or takes too long; the work may still be done."""
        task = self._world.loop.create_task(work)
        task.add_done_callback(_retrieve_exception)
        if not self.dead:
            await asyncio.wait((task, self.died), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise NoAnswer
        if (error := task.exception()) and not isinstance(error, GenlockError):
            self._world.truth.add_violation("A request succeeds, is refused or is not answered.", 0, repr(error))
            raise NoAnswer from error
        return task.result()


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


class StoreProxy:
    """The connection of one instance to the shared database."""

    def __init__(self, world: World, lifecycle: InstanceLifecycle, store: Store, grace_seconds: float) -> None:
        self._world = world
        self._lifecycle = lifecycle
        self._store = store
        self._monitor = StoreMonitor(world, grace_seconds)
        self.uncertain_commits = 0

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name, getattr(self._store, name))

    async def _call(self, name: str, method: Callable[..., Awaitable[Any]], /, *args: Any, **options: Any) -> Any:
        point = f"store.{_SAME_POINT.get(name, name)}"
        await self._lifecycle.point(f"before {point}")
        kinds = (*_STORE_FAULTS, "store: full") if self._world.has_chats else _STORE_FAULTS
        kind = self._world.pick(kinds, self._lifecycle.name, call=name)
        if kind == "store: slow":
            await self._world.lag()
            await self._lifecycle.point(f"before {point}")
        if kind == "store: unavailable" or self._disconnected:
            raise StoreUnavailable
        if kind == "store: full":
            raise StoreError("the disk is full")
        stale = self._monitor.stale(name, args)
        answer = await method(*args, **options)
        self._monitor.check_answer(name, args, answer, stale=stale, **options)
        if kind == "store: statement retried":
            # The connection broke before the answer, and the store retried the statement.
            self.uncertain_commits += 1
            stale = self._monitor.stale(name, args)
            answer = await method(*args, **options)
            self._monitor.check_answer(name, args, answer, stale=stale, **options)
        elif kind == "store: answer slow":
            await self._world.lag()
        await self._lifecycle.point(f"after {point}")
        if kind == "store: answer lost":
            self.uncertain_commits += 1
            raise StoreUnavailable
        return answer

    @property
    def _disconnected(self) -> bool:
        return self._world.loop.time() < max(self._lifecycle.disconnected_until, self._world.store_down_until)


class OutsideProxy:
    """The connection of one instance to the provider or the channel."""

    def __init__(self, world: World, lifecycle: InstanceLifecycle, real: Any, prefix: str, store: Store) -> None:
        self.name = real.name
        self._world = world
        self._lifecycle = lifecycle
        self._real = real
        self._prefix = prefix
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._real, name)
        return partial(self._call, f"{self._prefix}.{name}", method) if inspect.iscoroutinefunction(method) else method

    async def _call(self, call: str, method: Callable[..., Coroutine[Any, Any, Any]], /, *args: Any) -> Any:
        self._crash_of_poison(call, _job_of(args))
        messages = [arg.message for arg in args if isinstance(arg, Part) and arg.message]
        self._world.truth.on_the_wire.update(messages)
        return await transmit(
            self._world,
            self._lifecycle,
            call,
            partial(method, *args),
            landed=lambda: self._world.truth.on_the_wire.subtract(messages),
            abandoned=lambda: self._abandoned(call, _job_of(args)),
        )

    def _crash_of_poison(self, call: str, job: Job) -> None:
        if call == "channel.put" and job.has_result and job.id in self._world.poison and not self._lifecycle.dead:
            self._world.truth.crashes[job.id] += 1
            self._lifecycle.kill(f"showing the result of job {job.id}")

    def _abandoned(self, call: str, job: Job) -> None:
        if not (self._world.finished or self._lifecycle.dead or self._lifecycle.stopping):
            self._world.note(self._lifecycle.name, "ABANDONED", job=job.id, call=call, token=job.lease_token)
            self._world.spawn(self._check_abandoned(call, job))

    async def _check_abandoned(self, call: str, job: Job) -> None:
        row = await self._store.job(job.id)
        if row and row.lease_owner == self._lifecycle.name and row.lease_token == job.lease_token:
            rule = "An instance does not cancel work on a job it still holds."
            self._world.truth.add_violation(rule, job.id, f"{self._lifecycle.name} cancelled its own {call}")


def _job_of(args: tuple[Any, ...]) -> Job:
    """Return the job that a call to the provider or the channel is about."""
    jobs = (arg.job if isinstance(arg, TaskOrder) else arg for arg in args)
    return next(job for job in jobs if isinstance(job, Job))


async def transmit(
    world: World,
    lifecycle: InstanceLifecycle,
    call: str,
    send: Callable[[], Coroutine[Any, Any, T]],
    *,
    landed: Callable[[], None] = lambda: None,
    abandoned: Callable[[], None] = lambda: None,
) -> T:
    """Make a call to the outside, which may take effect although the instance dies or cancels it meanwhile."""
    await lifecycle.point(f"before {call}")
    wire = world.spawn(_outcome(send()))
    wire.add_done_callback(lambda _: landed())
    try:
        error, answer = await asyncio.shield(wire)
    except asyncio.CancelledError:
        if world.flip():
            wire.cancel()
        abandoned()
        raise
    await lifecycle.point(f"after {call}")
    if error:
        raise error
    return cast("T", answer)


async def _outcome(work: Coroutine[Any, Any, T]) -> tuple[Exception | None, T | None]:
    """Return the answer or the error of a call as a value: the caller may be gone."""
    try:
        return None, await work
    except Exception as error:  # noqa: BLE001 - raised again by the caller, if it still waits
        return error, None


def proxies(
    world: World,
    lifecycle: InstanceLifecycle,
    store: Store,
    provider: Provider,
    channel: Channel,
    *,
    grace_seconds: float,
) -> tuple[Store, Provider, Channel]:
    """Return what an instance is given instead of the real ports."""
    return (
        cast("Store", StoreProxy(world, lifecycle, store, grace_seconds)),
        cast("Provider", OutsideProxy(world, lifecycle, provider, "provider", store)),
        cast("Channel", OutsideProxy(world, lifecycle, channel, "channel", store)),
    )
