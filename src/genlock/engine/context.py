"""The engine context: what every stage works with, and the fenced writes that every stage makes."""

import asyncio
import math
import random
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from genlock.domain.delivery import MESSAGE_ONLY, Part
from genlock.domain.events import Event
from genlock.domain.job import AttentionCode, Delivery, Job, NewJob, State
from genlock.domain.offer import Offer
from genlock.domain.retry import POLL_SECONDS
from genlock.domain.task import TaskOrder
from genlock.engine.breakers import ProviderBreakers
from genlock.engine.input_files import InputFiles
from genlock.engine.isolation import Isolation
from genlock.engine.limits import RateLimiter
from genlock.engine.liveness import Liveness
from genlock.engine.poll_interval import PollInterval
from genlock.ports import (
    Channel,
    DeliveryEnd,
    EndJob,
    FinishDelivery,
    Lease,
    Observer,
    Provider,
    Reschedule,
    Store,
)
from genlock.ports.provider import RateLimit


def _nothing() -> None:
    """Outside a worker, such as in a command, nothing waits for it."""


#: called before the current task gives the lease of its job back although it is not finished
on_release: ContextVar[Callable[[], None]] = ContextVar("on_release", default=_nothing)


class UnknownSubmit(StrEnum):
    """What happens to a submit whose outcome is still unknown after the grace period."""

    RELEASE = "release"  #: expire the job, release the hold and inform the user; a late result is still delivered
    PARK = "park"  #: keep the hold and put the job on the operator's list


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineRules:
    lease_seconds: float = 30.0
    heartbeat_seconds: float = 1.0
    #: an instance without a heartbeat for this long is dead; the others take over its jobs at their next heartbeat
    silent_seconds: float = 3.0
    #: whether only this process uses the database, so that nothing is taken over while it is silent
    is_alone: bool = False
    #: how long the leader's lease lasts without renewal
    role_seconds: float = 3.0
    claim_seconds: float = 0.5
    sweep_seconds: float = 1.0
    orphan_expire_seconds: float = 3600.0
    #: how long a callback waits for an instance that has its provider configured, as during a rolling deploy
    unknown_provider_expire_seconds: float = 3600.0
    #: between the first status queries of a task when no callbacks arrive; a provider may have its own
    poll_seconds: float = POLL_SECONDS
    grace_seconds: float = 120.0
    #: how long past its deadline a job waits for the provider to answer one last status query
    last_answer_seconds: float = 600.0
    #: an order is started only while this many times its expected duration is left, or half the time until its deadline
    start_reserve: float = 2.0
    unknown_submit: UnknownSubmit = UnknownSubmit.RELEASE
    delivery_attempts: int = 40
    #: after this many failed attempts, each further one is made one level lower: the lowest is tried before giving up
    level_attempts: int = 35
    stage_attempts: int = 10
    #: a job during which this many instances crashed one after the other goes to the operator
    crashes_max: int = 8
    #: jobs that one instance processes at the same time; waiting jobs are only rows and do not count
    capacity: int = 1000
    stop_seconds: float = 15.0
    #: how long an instance waits for the answer to a progress edit
    progress_seconds: float = 2.0
    #: how long after a job's end an earlier progress edit with an unknown outcome may still take effect: the time after
    #: which the kernel gives up a connection on which nothing is acknowledged
    late_progress_seconds: float = 900.0
    #: rate limits unused for this long are pruned
    limits_idle_seconds: float = 600.0
    #: shared rate limits by key: `create:NAME` and `status:NAME` of a provider
    limits: Mapping[str, RateLimit] = field(default_factory=dict)


#: returns the ways to have an order made
Offers = Callable[[Job | NewJob], Sequence[Offer]]


def own_offer(job: Job | NewJob) -> Sequence[Offer]:
    """Return the one offer of a model that no catalog describes."""
    return (Offer(provider=job.provider, model=job.model),)


class LeaseLost(Exception):
    """Another instance holds the job now: stop working on it and write nothing."""


@dataclass(frozen=True, kw_only=True)
class EngineContext:
    store: Store
    providers: Mapping[str, Provider]
    channels: Mapping[str, Channel]
    observer: Observer
    #: unique for every start of a process: a reused id would hide a crash from the other instances
    instance: str
    limits: RateLimiter
    rules: EngineRules = field(default_factory=EngineRules)
    rng: random.Random = field(default_factory=random.Random)
    make_secret: Callable[[], str] = secrets.token_urlsafe
    #: base of our callback URLs; without it results are found by polling only
    public_url: str | None = None
    #: returns how many seconds a job is expected to run, if known; without it no progress is shown
    expected: Callable[[Job], float | None] | None = None
    #: returns the provider cost a job's price was calculated from, in thousandths of the provider's credit
    paid_for: Callable[[Job], int | None] | None = None
    #: the bots whose jobs this instance processes; None: the jobs of every bot
    bots: frozenset[str] | None = None
    #: masks secrets in the text of an error that is stored
    mask: Callable[[str], str] = str
    #: what a bot does about an ended job of its own before the notice is sent, by bot id. Idempotent, because it may be
    #: called again after a crash
    end_handlers: dict[str, Callable[[Job], Awaitable[None]]] = field(default_factory=dict)
    #: seconds between the first status queries, by provider; `rules.poll_seconds` for the others
    poll_seconds: Mapping[str, float] = field(default_factory=dict)
    #: returns the ways to have a job made, the preferred one first; by default the job's own provider and model
    offers: Offers = own_offer
    #: also returns those that new orders do not use, for the tasks that are there; None: `offers`
    all_offers: Offers | None = None
    #: how many tasks may run at the same time, by provider
    concurrency: Mapping[str, int] = field(default_factory=dict)
    #: gives a provider its own copies of an order's files; None: it gets the URLs of the order
    input_files: InputFiles | None = None
    _poll_intervals: dict[str, PollInterval] = field(default_factory=dict, init=False)

    def is_configured(self, job: Job) -> bool:
        """Return whether this instance has the job's provider, or one that could make it, its channel and bot."""
        return (
            (job.provider in self.providers or (job.state is State.QUEUED and self.can_make(job)))
            and job.channel in self.channels
            and (self.bots is None or not job.bot or job.bot in self.bots)
        )

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running event loop. Cached, because get_running_loop() makes a system call each time."""
        return asyncio.get_running_loop()

    @cached_property
    def lease(self) -> Lease:
        return Lease(owner=self.instance, seconds=self.rules.lease_seconds)

    @cached_property
    def liveness(self) -> Liveness:
        rules = self.rules
        silent = math.inf if rules.is_alone else min(rules.silent_seconds, rules.lease_seconds)
        return Liveness(silent, self.loop.time)

    @cached_property
    def isolation(self) -> Isolation:
        return Isolation()

    async def heartbeat(self) -> list[str]:
        """Record that this instance is alive. Returns the instances that are not."""
        asked = self.loop.time()
        dead = await self.store.heartbeat(self.instance, self.rules.silent_seconds)
        self.liveness.note_heartbeat(asked)
        return dead

    @cached_property
    def breakers(self) -> ProviderBreakers:
        return ProviderBreakers(self.store, self.observer)

    def can_make(self, order: Job | NewJob) -> bool:
        """Return whether a provider is configured here that makes the order."""
        return any(offer.provider in self.providers for offer in self.offers(order))

    def order_of(self, job: Job) -> TaskOrder:
        """Return what the job's provider is asked to make, by the present catalog."""
        known = (self.all_offers or self.offers)(job)
        offer = next((candidate for candidate in known if candidate.provider == job.provider), None)
        return TaskOrder(job=job, offer=offer or own_offer(job)[0])

    async def sent_order(self, job: Job) -> TaskOrder:
        """Return what the job's provider was asked to make, as it was recorded before the call."""
        order = self.order_of(job)
        attempt = next(
            (candidate for candidate in await self.store.attempts(job.id) if candidate.number == job.attempt), None
        )
        if attempt is None:
            return order  # of a version that recorded no attempts
        return replace(order, offer=replace(order.offer, model=attempt.offer), sent_input=attempt.sent_input)

    def poll_interval(self, provider: str) -> PollInterval:
        """Return the adaptive poll interval of a provider."""
        found = self._poll_intervals.get(provider)
        if found is None:
            first = self.poll_seconds.get(provider, self.rules.poll_seconds)
            found = self._poll_intervals[provider] = PollInterval(first=first, callbacks=self.public_url is not None)
        return found

    def event(self, event: Event, job: Job, /, **fields: object) -> None:
        self.observer.event(event, job.correlation_id, job=job.id, **fields)

    # Fenced writes. Each names the job's fencing token and raises LeaseLost when a newer one was given out.

    def fenced(self, held: object, job: Job) -> None:
        """Raise LeaseLost unless `held`, the answer of a fenced write, is true."""
        if not held:
            self.event(Event.LEASE_LOST, job, token=job.lease_token)
            raise LeaseLost

    async def begin_progress(self, job: Job) -> None:
        """Journal a progress edit before it is made, and extend the lease."""
        self.fenced(await self.store.begin_progress(job.id, job.lease_token, self.lease), job)

    async def reschedule(  # noqa: PLR0913 - the fields of a row
        self,
        job: Job,
        *,
        after: float | None,
        failed: bool | None = False,
        state: State | None = None,
        delivery: Delivery | None = None,
        parts: tuple[Part, ...] | None = None,
        grace: bool = False,
        progress_settled: bool = False,
        attention: tuple[AttentionCode, str] | None = None,
    ) -> None:
        """Release the job and make it due again `after` seconds (None: when an operator retries it).

        `failed` counts a failed attempt if True, resets the count if False and keeps it if None. `progress_settled`
        records that no progress edit is on its way. `attention` puts the job on the operator's list, with a code and a
        text.
        """
        code, reason = attention or (AttentionCode.OTHER, None)
        wait = Reschedule(
            job_id=job.id,
            token=job.lease_token,
            after=after,
            state=state,
            delivery=delivery,
            parts=parts,
            grace=grace,
            failed=failed,
            progress_settled=progress_settled,
            attention_reason=reason,
            attention_code=code,
        )
        self.fenced(await self.store.reschedule(wait), job)

    async def end_job(self, job: Job, state: State, *, code: str, text: str) -> Job:
        """End a job without a result. Returns it with a new lease, for its message to be delivered."""
        ending = EndJob(
            job_id=job.id,
            token=job.lease_token,
            state=state,
            parts=MESSAGE_ONLY,
            error_code=code,
            error_text=text,
        )
        ended = (await self.store.end_job(ending, self.lease)).job
        self.fenced(ended is not None, job)
        assert ended is not None
        self.event(Event.JOB_ENDED, job, state=state, code=code)
        return ended

    async def begin_submit(self, order: TaskOrder, secret_hash: str, placeholder: str | None) -> bool:
        """Commit the intent to call the provider, before the call. False: it works on as many tasks as it may."""
        job, offer, sent = order.job, order.offer, order.input_to_record()
        row, most = (job.id, job.lease_token, secret_hash, placeholder), self.concurrency.get(offer.provider)
        begun: bool | None
        if most is None:
            begun = await self.store.begin_submit(*row, offer.provider, offer.model, sent)
        else:
            begun = await self.store.begin_limited_submit(
                *row, provider=offer.provider, offer=offer.model, most=most, sent_input=sent
            )
        self.fenced(begun is not False, job)
        return begun is True

    async def save_parts(self, job: Job, parts: tuple[Part, ...]) -> None:
        """Journal how far the delivery has come, and extend the lease."""
        self.fenced(await self.store.save_parts(job.id, job.lease_token, parts, self.lease), job)

    async def finish_delivery(
        self,
        job: Job,
        delivery: Delivery,
        parts: tuple[Part, ...],
        attention: tuple[AttentionCode, str] | None = None,
        *,
        overwritable: bool = False,
    ) -> DeliveryEnd:
        """End the delivery and capture or release the hold, in one commit."""
        code, reason = attention or (AttentionCode.OTHER, None)
        finish = FinishDelivery(
            job_id=job.id,
            token=job.lease_token,
            delivery=delivery,
            parts=parts,
            attention_reason=reason,
            attention_code=code,
            overwritable=overwritable,
        )
        done = await self.store.finish_delivery(finish, self.lease)
        self.fenced(done, job)
        assert done is not None
        return done

    async def mark_result_invalid(self, job: Job, parts: tuple[Part, ...], reason: str) -> Job:
        """Fail a job whose result is invalid, and release its hold. Returns the job as it is now."""
        row = await self.store.mark_result_invalid(job.id, job.lease_token, parts, "broken_result", reason)
        self.fenced(row, job)
        assert row is not None
        return replace(
            job,
            state=row.state,
            late=row.late,
            hold_state=row.hold_state,
            error_code=row.error_code,
            error_text=row.error_text,
        )

    async def change_address(self, job: Job, address: str, parts: tuple[Part, ...]) -> Job:
        """Record that the job's chat has a new address. Its placeholder stays in the old chat."""
        self.fenced(await self.store.change_address(job.id, job.lease_token, address, parts), job)
        self.event(Event.ADDRESS_CHANGED, job, address=address)
        return replace(job, address=address, placeholder=None, progress_message=None, parts=parts)

    async def begin_notice(self, job: Job) -> None:
        """Journal the final notice before it is sent, so that it is sent at most once, and give the lease back."""
        on_release.get()()  # before: the job may be leased again before the answer is here
        self.fenced(await self.store.begin_notice(job.id, job.lease_token), job)
