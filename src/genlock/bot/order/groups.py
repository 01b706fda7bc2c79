"""The one notice of orders that were made together."""

import asyncio

from genlock.bot.buttons import Row, button, staying
from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.order.job_ends import JobEnds
from genlock.bot.order.next_step_screens import vary
from genlock.bot.order.request_keys import GroupKey
from genlock.bot.order.variations import varies
from genlock.bot.screen_context import model_label, public_code
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.errors import ChannelBusy
from genlock.domain.job import Delivery, Job
from genlock.domain.money import HoldState
from genlock.ports import OutgoingMessage

SEND_TRIES = 3
#: the longest pause of a busy channel that is waited for
PAUSE_SECONDS_MAX = 60.0


class Groups:
    def __init__(self, *, view: ChatView, job_ends: JobEnds, storefront: Storefront) -> None:
        self._view = view
        self._job_ends = job_ends
        self._storefront = storefront

    async def notify(self, ctx: UpdateContext, group: GroupKey) -> None:
        """Send the notice of a group whose jobs have ended, at most once: an attempt that crashed may have sent it."""
        if not ctx.first:
            return
        jobs = await self._job_ends.group_jobs(ctx.account_id, group)
        message, above = self._notice(ctx, jobs), _first_message(jobs)
        for left in reversed(range(SEND_TRIES)):
            try:
                await self._view.send(ctx, message, reply_to=above)
            except ChannelBusy as busy:  # it was not sent
                if not left:
                    raise
                await asyncio.sleep(min(busy.after, PAUSE_SECONDS_MAX))
            else:
                return

    def _notice(self, ctx: UpdateContext, jobs: list[Job]) -> OutgoingMessage:
        t, count = ctx.translator, len(jobs)
        done = [job for job in jobs if job.has_result and job.delivery is Delivery.DELIVERED]
        model = self._storefront.catalog.models.get(jobs[0].model)
        title = model_label(model, t) if model else jobs[0].model
        lines: list[str] = []
        if len(done) == count:
            lines.append(t.html("variations.ready", n=count))
        else:
            lines.append(
                t.html("variations.partly", done=len(done), n=count) if done else t.html("variations.none", n=count)
            )
        lines.append(t.html("variations.head", title=title, codes=", ".join(public_code(job.id, t) for job in jobs)))
        lines += _money(ctx, jobs, failed=len(done) < count)
        rows: list[Row] = [(button(t.plain("button.repeat"), "repeat", jobs[0].id),)]
        if model is not None and varies(model):
            rows = [(*rows[0], vary(jobs[0], t))]
        menu = button(t.plain("button.menu"), "menu")
        return staying(OutgoingMessage(text="\n".join(lines), buttons=(*rows, (menu,))))


def _money(ctx: UpdateContext, jobs: list[Job], *, failed: bool) -> list[str]:
    t = ctx.translator
    paid = sum(job.price for job in jobs if job.hold_state is HoldState.CAPTURED)
    returned = sum(job.price for job in jobs if job.hold_state is HoldState.RELEASED)
    lines: list[str] = []
    if paid or not failed:
        lines.append(t.html("variations.charged", credits=t.credits(paid)) if paid else t.html("variations.free"))
    if returned:
        key = "variations.returned" if paid else "failed.money_back"
        lines.append(t.html(key, credits=t.credits(returned)))
    return [*lines, t.html("variations.reasons")] if failed else lines


def _first_message(jobs: list[Job]) -> int | None:
    message = next((part.message for job in jobs for part in job.parts if part.message), None)
    return int(message) if message is not None and message.isdecimal() else None
