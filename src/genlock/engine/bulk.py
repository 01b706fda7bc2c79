"""Bulk actions: the leader acts on many jobs, a few at a time, and continues after a crash.

A step records which jobs it acts on, with their fencing tokens, before it acts on the first. After a crash the same
jobs are acted on again, which changes nothing where it was done: a resend names the token that its first attempt has
used up, a refund has a key per job, a job is cancelled once, and a second retry only makes it due again.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from genlock.domain.bulk import BulkAction, BulkFailure, BulkKind, BulkReason, BulkState, BulkTarget
from genlock.domain.errors import ActionNotAllowed, AllowanceExceeded, JobNotFound, StoreError
from genlock.domain.events import Event
from genlock.domain.job import Actor, Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.domain.operator import OperatorRole
from genlock.engine import operate
from genlock.engine.accounts import Allowance
from genlock.engine.cancellation import uninterrupted
from genlock.engine.context import EngineContext
from genlock.engine.leader import Leader
from genlock.engine.tell import refund_message, send_queued
from genlock.i18n.translator import Texts, package_texts
from genlock.ports import Database

PERIOD_SECONDS = 2.0
#: how long one round works; the next one follows after the period
ROUND_SECONDS = 20.0
#: jobs per step: what is repeated after a crash
STEP_JOBS = 20
#: between two steps, so that orders come first: at most 100 jobs per second
PAUSE_SECONDS = 0.2
#: bulk actions that take turns; later ones wait
AT_ONCE = 10
SEARCH_SECONDS = 0.1
DETAIL_LENGTH_MAX = 200
_ACTING = (OperatorRole.OWNER, OperatorRole.SUPPORT)
_RESENDABLE = (Delivery.DELIVERED, Delivery.UNDELIVERABLE, Delivery.UNKNOWN)


def obstacle(kind: BulkKind, job: Job, *, refunded: bool = False) -> BulkReason | None:
    """Return why the action is not possible with this job; None if it is."""
    if kind is BulkKind.REFUND and refunded:
        return BulkReason.REFUNDED
    return _OBSTACLES[kind](job)


def _retry_obstacle(job: Job) -> BulkReason | None:
    if job.lease_owner:
        return BulkReason.LEASED
    if job.is_parked_submit:
        return BulkReason.PARKED
    is_over = job.ended and job.delivery in _RESENDABLE and not job.is_parked_notice
    return BulkReason.ENDED if is_over else None


def _resend_obstacle(job: Job) -> BulkReason | None:
    if job.erased and not job.parts:
        return BulkReason.ERASED
    return None if job.has_result and job.delivery in _RESENDABLE else BulkReason.NO_RESULT


def _cancel_obstacle(job: Job) -> BulkReason | None:
    return BulkReason.ENDED if job.ended else None


def _refund_obstacle(job: Job) -> BulkReason | None:
    return None if job.hold_state is HoldState.CAPTURED else BulkReason.NOT_PAID


_OBSTACLES: Mapping[BulkKind, Callable[[Job], BulkReason | None]] = {
    BulkKind.RETRY: _retry_obstacle,
    BulkKind.RESEND: _resend_obstacle,
    BulkKind.CANCEL: _cancel_obstacle,
    BulkKind.REFUND: _refund_obstacle,
}


@dataclass(frozen=True)
class Plan:
    """The next step of a bulk action."""

    targets: Sequence[BulkTarget]
    failures: Sequence[BulkFailure]
    #: the jobs from this id on are dealt with by then
    below: int
    #: nothing is left below
    is_last: bool


@dataclass(frozen=True)
class BulkWork:
    ctx: EngineContext
    leader: Leader
    store: Database
    texts: Texts = field(default_factory=package_texts)
    pause_seconds: float = PAUSE_SECONDS
    #: returns the role that an author has now; None if the author is no operator any more
    role_of: Callable[[str], Awaitable[OperatorRole | None]] | None = None
    #: what an operator with the role `support` may refund in a day, in thousandths of a credit
    support_credits_max: int = 0

    async def round(self) -> None:
        """Continue the open bulk actions in turn, for a while. A periodic task of the leader."""
        loop = asyncio.get_running_loop()
        until = loop.time() + ROUND_SECONDS
        while self.leader.role and loop.time() < until:
            actions = await self.store.open_bulk_actions(AT_ONCE)
            if not actions:
                return
            for action in actions:
                await self.advance(action)
                await asyncio.sleep(self.pause_seconds)

    async def advance(self, action: BulkAction) -> None:
        """Finish the step that has begun, or make the next one."""
        if action.step:
            await self._act(action, resumed=True)
            return
        if action.state is BulkState.STOPPED or not await self._may_act(action):
            await self._end(action, BulkState.STOPPED)
            return
        plan = await self._plan(action)
        begun: BulkAction | None = action
        if plan.targets or plan.failures or not plan.is_last:
            begun = await self.store.begin_bulk_step(action, plan.targets, plan.below, plan.failures)
        if begun is not None and begun.step:
            begun = await self._act(begun, resumed=False)
        if begun is not None and plan.is_last:
            await self._end(begun, BulkState.DONE)

    async def _may_act(self, action: BulkAction) -> bool:
        """Whether the author still has a role that may act. It is read for every step."""
        return self.role_of is None or await self.role_of(action.author) in _ACTING

    async def _allowance(self, author: str) -> Allowance | None:
        if self.role_of is None or await self.role_of(author) is OperatorRole.OWNER:
            return None
        return Allowance(name=author, most=self.support_credits_max)

    async def _end(self, action: BulkAction, state: BulkState) -> None:
        """Write the audit line first: after a crash in between, the same line is written again, which adds nothing."""
        counts = {"jobs": action.done + action.failed, "done": action.done, "left_out": action.failed}
        await self.store.add_audit(
            key=f"bulk:{action.id}:end",
            actor=action.author,
            action=f"bulk_{action.kind}_{state}",
            subject=f"bulk {action.id}",
            detail=json.dumps(counts),
        )
        await self.store.end_bulk_action(action, state)

    # which jobs are next

    async def _plan(self, action: BulkAction) -> Plan:
        missing: list[BulkFailure] = []
        if action.selection.filters is None:
            ids = [number for number in action.selection.job_ids if number < action.below]
            chosen, is_last = ids[:STEP_JOBS], len(ids) <= STEP_JOBS
            jobs = await self.store.jobs_by_id(chosen)
            below = chosen[-1] if chosen else action.below
            gone = set(chosen) - {job.id for job in jobs}
            missing = [BulkFailure(job_id=number, reason=BulkReason.MISSING) for number in sorted(gone)]
        else:
            page = await self.store.search_jobs(
                action.selection.filters, before=action.below, limit=STEP_JOBS, seconds=SEARCH_SECONDS
            )
            jobs, below, is_last = list(page.jobs), page.before or 0, page.before is None
        targets, failures = await self._divide(action.kind, jobs)
        return Plan(targets, missing + failures, below, is_last)

    async def _divide(self, kind: BulkKind, jobs: Sequence[Job]) -> tuple[list[BulkTarget], list[BulkFailure]]:
        """Divide jobs into those that the action is possible with, and the others with the reason."""
        targets, failures = [], []
        refunded: frozenset[int] = frozenset()
        if kind is BulkKind.REFUND and jobs:
            refunded = await self.store.refunded_jobs([job.id for job in jobs])
        for job in jobs:
            reason = obstacle(kind, job, refunded=job.id in refunded)
            if reason is None:
                targets.append(BulkTarget(job_id=job.id, token=job.lease_token))
            else:
                failures.append(BulkFailure(job_id=job.id, reason=reason))
        return targets, failures

    # what is done to them

    async def _act(self, action: BulkAction, *, resumed: bool) -> BulkAction | None:
        """Act on every job of the step, and record it."""
        failures = []
        for target in action.step:
            failure = await self._act_on(action, target, resumed=resumed)
            if failure is not None:
                failures.append(failure)
        done = len(action.step) - len(failures)
        return await self.store.finish_bulk_step(action, done=done, failures=failures)

    async def _act_on(self, action: BulkAction, target: BulkTarget, *, resumed: bool) -> BulkFailure | None:
        """Act on a job. A database that does not answer stops the step; any other error is the job's own."""
        try:
            reason = await uninterrupted(self._attempt(action, target, resumed=resumed))
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - one job must not stop the others
            detail = self.ctx.mask(f"{type(error).__name__}: {error}")[:DETAIL_LENGTH_MAX]
            self.ctx.observer.event(Event.STAGE_ERROR, step="bulk", job=target.job_id, error=detail)
            return BulkFailure(job_id=target.job_id, reason=BulkReason.ERROR, detail=detail)
        return None if reason is None else BulkFailure(job_id=target.job_id, reason=reason)

    async def _attempt(self, action: BulkAction, target: BulkTarget, *, resumed: bool) -> BulkReason | None:
        by = f"bulk {action.id} of {action.author}"
        try:
            match action.kind:
                case BulkKind.RETRY:
                    await operate.retry(self.ctx, target.job_id, by)
                case BulkKind.RESEND:
                    await operate.resend(self.ctx, target.job_id, by, token=target.token)
                case BulkKind.CANCEL:
                    await operate.cancel(self.ctx, target.job_id, by)
                case BulkKind.REFUND:
                    allowance = await self._allowance(action.author)
                    return await self._refund(target.job_id, by, allowance, resumed=resumed)
        except JobNotFound:
            return BulkReason.MISSING
        except AllowanceExceeded:
            return BulkReason.ALLOWANCE
        except ActionNotAllowed:
            return await self._why_not(action.kind, target, by, resumed=resumed)
        return None

    async def _refund(self, job_id: int, by: str, allowance: Allowance | None, *, resumed: bool) -> BulkReason | None:
        """Refund a job and tell its user, once. After a crash between the two, the leader sends the message."""
        message = await refund_message(self.store, self.texts, await operate.find(self.ctx, job_id))
        if await operate.refund(self.ctx, job_id, by, allowance=allowance, message=message):
            await send_queued(self.ctx, message)
            return None
        return None if resumed else BulkReason.REFUNDED

    async def _why_not(self, kind: BulkKind, target: BulkTarget, by: str, *, resumed: bool) -> BulkReason | None:
        """Return why the job could not be acted on; None if the step had done it before a crash."""
        job = await operate.find(self.ctx, target.job_id)
        is_ours = _cancelled_by(job, by) if kind is BulkKind.CANCEL else job.lease_token != target.token
        if resumed and is_ours:
            return None
        return obstacle(kind, job) or BulkReason.CHANGED


def _cancelled_by(job: Job, by: str) -> bool:
    return job.state is State.CANCELLED and job.cancelled_by is Actor.OPERATOR and job.error_text == f"by {by}"
