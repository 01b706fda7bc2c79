"""Accept an order: the job and its hold, in one commit, before anybody outside hears of it."""

from dataclasses import replace

from genlock.domain.errors import Refusal
from genlock.domain.events import Event
from genlock.domain.job import NewJob
from genlock.engine.kit import Kit, handled
from genlock.ports import Acceptance


async def accept(kit: Kit, order: NewJob, *, keep: bool) -> Acceptance:
    """Write the order. With `keep` it is leased to this instance, which goes on with it at once.

    The same key again gives the same job. Raises NotEnoughMoney, KeyReused and NoSuchPerson; then nothing changed.
    """
    if order.provider not in kit.providers or order.channel not in kit.channels:
        raise Refusal(f"no provider {order.provider!r} or no channel {order.channel!r} here")
    if not order.correlation:
        order = replace(order, correlation=handled.get())
    kit.observer.event(Event.GEN_CREATE, order.correlation, model=order.model, price=order.price)
    try:
        acceptance = await kit.store.accept(order, kit.lease if keep else None)
    except Refusal as refusal:
        kit.observer.event(Event.JOB_REFUSED, order.correlation, reason=type(refusal).__name__)
        raise
    kit.event(Event.JOB_CREATED if acceptance.fresh else Event.JOB_REPLAYED, acceptance.job)
    return acceptance
