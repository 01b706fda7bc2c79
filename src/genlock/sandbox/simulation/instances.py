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

from genlock.domain.delivery import shown_results
from genlock.domain.errors import GenlockError, StoreUnavailable
from genlock.domain.job import AttentionCode, Delivery, Job, State, Verdict
from genlock.domain.task import TaskOrder
from genlock.ports import Accepted, Channel, EndJob, JobEnd, Provider, Store
from genlock.sandbox.simulation.world import World

T = TypeVar("T")

_STORE_FAULTS = (
    "store: unavailable",
    "store: answer lost",
    "store: statement retried",
    "store: slow",
    "store: answer slow",
)
_FENCED = (
    "begin_submit",
    "mark_submitted",
    "begin_progress",
    "save_parts",
    "begin_notice",
    "renew_lease",
    "change_address",
    "mark_result_invalid",
)


def _calls(port: type, prefix: str) -> list[str]:
    members = {name: member for base in reversed(port.__mro__) for name, member in vars(base).items()}
    return [f"{prefix}.{name}" for name, member in members.items() if inspect.iscoroutinefunction(member)]


#: called by endpoints, the bot, the money check, retention and `tell`, which are not simulated
_NOT_SIMULATED = {
    "store.ledger_entry",
    "store.open_jobs",
    "store.kv_get",
    "store.kv_list",
    "store.kv_put",
    "store.kv_put_if_absent",
    "store.kv_delete",
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
    "channel.tell",
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
        await self._lifecycle.point(f"before store.{name}")
        kind = self._world.pick(_STORE_FAULTS, self._lifecycle.name, call=name)
        if kind == "store: slow":
            await self._world.lag()
            await self._lifecycle.point(f"before store.{name}")
        if kind == "store: unavailable" or self._disconnected:
            raise StoreUnavailable
        stale = self._monitor.stale(name, args)
        answer = await method(*args, **options)
        self._monitor.check_answer(name, args, answer, stale=stale)
        if kind == "store: statement retried":
            # The connection broke before the answer, and the store retried the statement.
            self.uncertain_commits += 1
            stale = self._monitor.stale(name, args)
            answer = await method(*args, **options)
            self._monitor.check_answer(name, args, answer, stale=stale)
        elif kind == "store: answer slow":
            await self._world.lag()
        await self._lifecycle.point(f"after store.{name}")
        if kind == "store: answer lost":
            self.uncertain_commits += 1
            raise StoreUnavailable
        return answer

    @property
    def _disconnected(self) -> bool:
        return self._world.loop.time() < max(self._lifecycle.disconnected_until, self._world.store_down_until)


class StoreMonitor:
    """Checks the database's answers: no token may be accepted after a higher one was given out."""

    def __init__(self, world: World, grace_seconds: float) -> None:
        self._world = world
        self._truth = world.truth
        self._grace = grace_seconds

    def stale(self, name: str, args: tuple[Any, ...]) -> bool:
        """Whether this call names a token that has been replaced by a higher one."""
        job_id, token = _fence(name, args)
        return token is not None and token < self._truth.tokens[job_id]

    def check_answer(self, name: str, args: tuple[Any, ...], answer: Any, *, stale: bool) -> None:
        job_id, _ = _fence(name, args)
        if stale and _effective(answer):
            self._truth.add_violation(
                "A write with a stale token changes nothing.", job_id, f"{name} was accepted with a stale token"
            )
        for job in _leased(answer):
            self._truth.tokens[job.id] = max(self._truth.tokens[job.id], job.lease_token)
        if name == "heartbeat":
            self._truth.registered.add(args[0])
        if name == "release_leases" and len(args) == 1:
            self._truth.registered.discard(args[0])
        if name == "resend_job" and answer:
            self._truth.resends[args[0]] += 1
        if name == "retry_job" and answer:
            self._truth.retries[args[0]] += 1
        if name == "begin_submit" and answer:
            self._truth.submits[job_id] = self._world.loop.time()
        if name == "end_job" and isinstance(answer, JobEnd) and answer.verdict is Verdict.WON and answer.job:
            self._check_end(args[0], answer.job)
        self._record_delivery(name, job_id, args, answer)

    def _record_delivery(self, name: str, job_id: int, args: tuple[Any, ...], answer: Any) -> None:
        if isinstance(answer, JobEnd) and answer.verdict is Verdict.LATE:
            self._truth.late_ends[job_id] += 1
        if not answer:
            return
        parts = args[2] if name == "save_parts" else getattr(args[0], "parts", None) if args else None
        if name in ("save_parts", "reschedule", "finish_delivery") and parts and shown_results(parts):
            self._truth.shown.add(job_id)
        if name == "finish_delivery":
            code = args[0].attention_code if args[0].attention_reason else None
            unknown = args[0].delivery is Delivery.UNKNOWN or code is AttentionCode.UNKNOWN_DELIVERY
            self._truth.unknown_ends[job_id] += unknown

    def _check_end(self, ending: EndJob, job: Job) -> None:
        if ending.state is not State.EXPIRED:
            return
        if ending.error_code == "submit_unknown":
            waited = self._world.loop.time() - self._truth.submits[job.id]
            if waited < self._grace - 0.001:
                rule = "An unknown submit waits for its callback during the grace period."
                self._truth.add_violation(rule, job.id, f"expired after {waited:.3f} of {self._grace} seconds")
        elif job.read_at < job.deadline_at:
            self._truth.add_violation(
                "A job expires at its deadline, not before.", job.id, f"at {job.read_at}, not {job.deadline_at}"
            )


def _fence(name: str, args: tuple[Any, ...]) -> tuple[int, int | None]:
    """Return the job and the token that a call names."""
    if name in _FENCED:
        return args[0], args[1]
    if name in ("reschedule", "finish_delivery", "end_job", "fail_over"):
        return args[0].job_id, args[0].token
    return 0, None


def _effective(answer: Any) -> bool:
    if isinstance(answer, JobEnd):
        return answer.verdict in (Verdict.WON, Verdict.LATE)
    return bool(answer)


def _leased(answer: Any) -> list[Job]:
    """Return the jobs that an answer leases to the caller."""
    if isinstance(answer, JobEnd | Accepted):
        answer = answer.job
    if isinstance(answer, Job):
        return [answer]
    return [job for job in answer if isinstance(job, Job)] if isinstance(answer, list) else []


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
        await self._lifecycle.point(f"before {call}")
        wire = self._world.spawn(_outcome(method(*args)))
        try:
            error, answer = await asyncio.shield(wire)
        except asyncio.CancelledError:
            # The request may take effect all the same.
            if self._world.flip():
                wire.cancel()
            self._abandoned(call, _job_of(args))
            raise
        await self._lifecycle.point(f"after {call}")
        if error:
            raise error
        return answer

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
