"""Sells what the screen shows. The sale is recorded first, so that the result is never mistaken for a screen."""

from dataclasses import replace

from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.order.draft import Draft, Sale, Step
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.request_keys import GroupKey, is_improvement_key
from genlock.domain.job import Job
from genlock.engine.sell import NotSold, Order, Seller
from genlock.ports import Database, OutgoingMessage


class Sales:
    def __init__(self, *, view: ChatView, drafts: DraftView, seller: Seller) -> None:
        self._view = view
        self._drafts = drafts
        self._seller = seller

    async def sell(self, ctx: UpdateContext, order: Order, accepted: OutgoingMessage) -> Job | NotSold:
        """Sell the order that the pressed message shows. It becomes the result, so it first stops being the screen.

        Otherwise a press that fails on every try after the sale would leave a draft whose screen is the result, and the
        next screen would remove it. The message shows `accepted` until the job's first progress. If the order is
        refused all the same, because the balance was spent meanwhile, the message is the screen again and can show why.
        """
        sale = _begun(ctx.draft, order.key)
        if sale.message != ctx.button_message:
            sale = replace(sale, message=None)

        async def begin() -> None:
            await self._drafts.begin_sale(ctx, sale)
            if ctx.first and sale.message is not None:
                await self._view.edit(ctx.chat, sale.message, accepted)

        order = replace(order, placeholder=None if sale.message is None else str(sale.message))
        sold = await self._seller.sell(order, before_accept=begin)
        if isinstance(sold, NotSold) and sale.message is not None and ctx.draft.message is None:
            await self._view.take_back(ctx, sale.message)
        return sold


def sale_version(draft: Draft) -> int:
    """Return the draft version in the idempotency keys of its orders. It stays the same if the sale is begun again."""
    return draft.version if draft.sale is None else draft.sale.version


def _begun(draft: Draft, key: str) -> Sale:
    """Return the sale that a press on the draft's message begins, or continues after a crash."""
    if draft.sale is None or draft.message is not None:
        return Sale(version=sale_version(draft), pressed=draft.version, message=draft.message, key=key)
    return replace(draft.sale, key=key)


def group_of(draft: Draft) -> GroupKey | None:
    """Return the group that a sale of the draft has begun; None if it is a single order."""
    return GroupKey.read(draft.sale.key) if draft.sale else None


async def with_known_sale(ctx: UpdateContext, store: Database) -> Draft:
    """Return the draft as it is after a sale whose outcome an earlier update could not save."""
    sale = ctx.draft.sale
    if sale is None or ctx.repeated:  # the update that began the sale continues it
        return ctx.draft
    job = await store.job_by_request_key(ctx.account_id, sale.key)
    if job is None:
        return ctx.draft
    if is_improvement_key(sale.key):
        return replace(ctx.draft, improving=job.id)
    return replace(ctx.draft.cleared(), step=Step.ORDERED, job=job.id)
