"""Accept an order: write the job and its hold in one commit, before the provider is called."""

from dataclasses import replace

from genlock.domain.correlation_ids import new_correlation_id
from genlock.domain.errors import Refusal
from genlock.domain.events import Event
from genlock.domain.job import NewJob
from genlock.engine.context import EngineContext
from genlock.ports import Accepted


async def accept(ctx: EngineContext, order: NewJob, *, lease: bool) -> Accepted:
    """Write the order. With `lease` the job is leased to this instance, which can start on it at once.

    The same idempotency key again returns the same job. Raises InsufficientBalance, IdempotencyKeyReused and
    AccountNotFound; then nothing was written.
    """
    if not ctx.can_make(order) or order.channel not in ctx.channels:
        raise Refusal(f"the provider {order.provider!r} or the channel {order.channel!r} is not configured here")
    if not order.correlation_id:
        order = replace(order, correlation_id=new_correlation_id())
    ctx.observer.event(Event.GEN_CREATE, order.correlation_id, model=order.model, price=order.price)
    try:
        accepted = await ctx.store.accept_job(order, ctx.lease if lease else None)
    except Refusal as refusal:
        ctx.observer.event(Event.JOB_REFUSED, order.correlation_id, reason=type(refusal).__name__)
        raise
    ctx.event(Event.JOB_CREATED if accepted.created else Event.JOB_REPLAYED, accepted.job)
    return accepted
