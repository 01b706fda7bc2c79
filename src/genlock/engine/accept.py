"""Accept an order: the job and its hold, in one commit, before anybody outside hears of it."""

from dataclasses import replace

from genlock.domain.errors import Refusal
from genlock.domain.events import Event
from genlock.domain.job import NewJob
from genlock.engine.context import EngineContext, handled
from genlock.ports import Accepted


async def accept(ctx: EngineContext, order: NewJob, *, keep: bool) -> Accepted:
    """Write the order. With `keep` it is leased to this instance, which goes on with it at once.

    The same key again gives the same job. Raises InsufficientBalance, IdempotencyKeyReused and AccountNotFound; then nothing changed.
    """
    if order.provider not in ctx.providers or order.channel not in ctx.channels:
        raise Refusal(f"no provider {order.provider!r} or no channel {order.channel!r} here")
    if not order.correlation_id:
        order = replace(order, correlation_id=handled.get())
    ctx.observer.event(Event.GEN_CREATE, order.correlation_id, model=order.model, price=order.price)
    try:
        acceptance = await ctx.store.accept(order, ctx.lease if keep else None)
    except Refusal as refusal:
        ctx.observer.event(Event.JOB_REFUSED, order.correlation_id, reason=type(refusal).__name__)
        raise
    ctx.event(Event.JOB_CREATED if acceptance.fresh else Event.JOB_REPLAYED, acceptance.job)
    return acceptance
