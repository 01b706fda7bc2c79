"""Choose the provider of an order, and go on to another one once it is certain that the first made nothing.

An order goes to another provider only after it was provably not accepted, or failed and is not billed. After an unknown
outcome it never does: the first provider may still be working on it.
"""

import json
from collections.abc import Collection, Sequence

from genlock.domain.attempt import ELSEWHERE, Attempt, AttemptOutcome, may_fail_over
from genlock.domain.errors import ProviderBusy
from genlock.domain.events import Event
from genlock.domain.job import OPEN, Job
from genlock.domain.offer import Offer
from genlock.domain.result import Report
from genlock.engine.context import EngineContext
from genlock.ports import FailedAttempt

#: a provider that asks to wait this long is left for another one at once
LONG_WAIT_SECONDS = 30.0
#: how long a provider may refuse an order for now before another one is tried
BUSY_SECONDS = 20.0


def candidates(ctx: EngineContext, job: Job) -> list[Offer]:
    """Return the offers that can make the job's values here, the preferred one first."""
    offers = [offer for offer in ctx.offers(job) if offer.provider in ctx.providers]
    if len(offers) < 2:  # noqa: PLR2004 - one offer needs no choice
        return offers
    try:
        values = json.loads(job.input)
    except ValueError:
        return offers[:1]
    return [offer for offer in offers if isinstance(values, dict) and offer.accepts(values)] or offers[:1]


async def choose_offer(ctx: EngineContext, job: Job, without: Collection[str] = ()) -> Offer | None:
    """Return the offer for the job's next attempt, of a provider not in `without`; None if no provider is left."""
    offers = candidates(ctx, job)
    if job.attempt and len(offers) > 1:
        offers = _untried(offers, await ctx.store.attempts(job.id))
    offers = [offer for offer in offers if offer.provider not in without]
    if len(offers) < 2:  # noqa: PLR2004 - one offer needs no choice
        return offers[0] if offers else None
    for offer in offers:
        if await _is_free(ctx, job, offer):
            return offer
    return min(offers, key=lambda offer: ctx.breakers.open_until(offer.provider, job.model))


async def _is_free(ctx: EngineContext, job: Job, offer: Offer) -> bool:
    """Return whether the provider is not paused after failures, and does not work on as much as it may."""
    if await is_full(ctx, offer.provider):
        return False
    return await ctx.breakers.allows(offer.provider, job.model, job.read_at)


async def is_full(ctx: EngineContext, provider: str) -> bool:
    """Return whether a provider works on as many tasks as it may. Only the store's `begin_limited_submit` is exact."""
    most = ctx.concurrency.get(provider)
    return most is not None and await ctx.store.slots_used(provider) >= most


def _untried(offers: Sequence[Offer], attempts: Sequence[Attempt]) -> list[Offer]:
    """Leave out the providers that refused or failed. One that was only busy comes after those that were not asked.

    An attempt with an unknown outcome is repeated only because an operator decided so: then all providers count again.
    """
    failed = {
        attempt.provider for attempt in attempts if attempt.outcome in (AttemptOutcome.REFUSED, AttemptOutcome.FAILED)
    }
    busy = [attempt.provider for attempt in attempts if attempt.outcome is AttemptOutcome.BUSY]
    waiting = attempts[-1].provider if attempts and _is_waited_for(attempts[-1]) else None

    def place(offer: Offer) -> int:
        if offer.provider == waiting:
            return -1
        return busy.index(offer.provider) + 1 if offer.provider in busy else 0

    return sorted((offer for offer in offers if offer.provider not in failed), key=place)


def _is_waited_for(attempt: Attempt) -> bool:
    """Return whether the job has not gone on to another provider after this one was busy."""
    return attempt.outcome is AttemptOutcome.BUSY and not attempt.error_code


async def has_other_offer(ctx: EngineContext, job: Job, *, busy: bool = False) -> bool:
    """Return whether another provider than the job's present one could still make it."""
    offers = [offer for offer in candidates(ctx, job) if offer.provider != job.provider]
    if not offers:
        return False
    attempts = await ctx.store.attempts(job.id)
    if busy and not _busy_for_long(attempts, job):
        return False
    return bool(_untried(offers, attempts))


def _busy_for_long(attempts: Sequence[Attempt], job: Job) -> bool:
    return bool(attempts) and (job.read_at - attempts[-1].started_at).total_seconds() >= BUSY_SECONDS


async def leave_refused(ctx: EngineContext, job: Job, code: str) -> bool:
    """Go on to another provider after a refusal, if the refusal allows it and there is one."""
    if code not in ELSEWHERE:
        return False
    await ctx.breakers.failed(job.provider, job.model, code)
    if not await has_other_offer(ctx, job):
        return False
    await _fail_over(ctx, job, AttemptOutcome.REFUSED, code)
    return True


async def leave_busy(ctx: EngineContext, job: Job, busy: ProviderBusy) -> bool:
    """Go on to another provider if this one has been busy for too long, or will be, and there is one."""
    if busy.down:
        await ctx.breakers.failed(job.provider, job.model, "provider_down")
    if not await has_other_offer(ctx, job, busy=busy.after < LONG_WAIT_SECONDS and not busy.down):
        return False
    await _fail_over(ctx, job, AttemptOutcome.BUSY, "provider_busy")
    return True


async def _fail_over(ctx: EngineContext, job: Job, outcome: AttemptOutcome, code: str) -> None:
    failed = FailedAttempt(job_id=job.id, token=job.lease_token, outcome=outcome, error_code=code, cost=0)
    ctx.fenced(await ctx.store.fail_over(failed), job)
    _report(ctx, job, code)


async def leave_failed(
    ctx: EngineContext, job: Job, attempt: int | None, report: Report, *, callback_id: int | None = None
) -> bool:
    """Go on to another provider after a failed task, if the failure is the provider's own and it bills nothing."""
    if not may_fail_over(report) or job.state not in OPEN or attempt not in (None, job.attempt):
        return False
    if not await has_other_offer(ctx, job):
        return False
    failed = FailedAttempt(
        job_id=job.id,
        attempt=job.attempt,
        outcome=AttemptOutcome.FAILED,
        error_code=report.error_code,
        task_id=report.task_id,
        cost=report.cost,
        callback_id=callback_id,
    )
    if not await ctx.store.fail_over(failed):
        return False
    _report(ctx, job, report.error_code)
    await ctx.breakers.failed(job.provider, job.model, report.error_code)
    return True


def _report(ctx: EngineContext, job: Job, code: str) -> None:
    ctx.event(Event.FAILED_OVER, job, provider=job.provider, attempt=job.attempt, code=code)
    ctx.observer.count("failovers", 1, provider=job.provider, reason=code)
