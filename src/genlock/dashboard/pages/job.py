"""The page of a job: what became of the order at the provider, with the money and in the chat, and what can be done."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from genlock.dashboard.job_actions import JobAction, offered_actions, possible, seen_state
from genlock.dashboard.job_links import API, client_notes, idempotency_key, source_jobs, webhook_calls
from genlock.dashboard.job_meanwhile import meanwhile
from genlock.dashboard.job_money import CreditOf, job_money
from genlock.dashboard.job_view import (
    input_fields,
    job_title,
    job_user,
    result_parts,
    sent_request,
    stored_copy,
)
from genlock.dashboard.page import PageContext, PageNotFound, PageRoute
from genlock.dashboard.pages.user_actions import why_not_moved
from genlock.dashboard.previews import PreviewRefused, Previews
from genlock.dashboard.roles import Permission
from genlock.domain.catalog import Catalog
from genlock.domain.delivery import Part
from genlock.domain.errors import ActionNotAllowed, AllowanceExceeded
from genlock.domain.job import Job
from genlock.domain.money import write_amount
from genlock.domain.operator import OperatorRole
from genlock.domain.result import PartKind
from genlock.engine import operate
from genlock.engine.accounts import Allowance
from genlock.engine.engine import Engine
from genlock.engine.job_timeline import TimelineEntry, read_timeline
from genlock.engine.tell import refund_message, send_queued
from genlock.i18n.translator import Texts
from genlock.ports import Database, ProviderBundle
from genlock.web.byte_ranges import RangeNotSatisfiable

#: a larger number is no id of a job
_ID_MAX = 2**63 - 1
_SAME_TOKEN = frozenset({JobAction.RESEND, JobAction.HANDLED})


@dataclass(frozen=True, kw_only=True)
class JobPageParts:
    engine: Engine
    store: Database
    catalog: Callable[[], Catalog]
    providers: Mapping[str, ProviderBundle]
    previews: Previews
    texts: Texts
    #: US dollars per credit of ours
    credit_usd: float
    credit_of: CreditOf
    #: whether events are kept, so that the page can say why there are none
    keeps_events: bool
    #: what an operator with the role `support` may give in a day, in thousandths of a credit
    support_credits_max: int


class JobPage:
    def __init__(self, parts: JobPageParts) -> None:
        self._parts = parts
        self._engine = parts.engine
        self._store = parts.store

    def routes(self) -> list[PageRoute]:
        base = "/jobs/{job_id:int}"
        result = f"{base}/results/{{part:int}}"
        return [
            PageRoute(path=base, handler=self._show, permission=Permission.VIEW),
            PageRoute(path=f"{base}/live", handler=self._live, permission=Permission.VIEW, is_data=True),
            PageRoute(path=result, handler=self._result, permission=Permission.SEE_PROMPTS, is_data=True),
            PageRoute(path=f"{result}/preview", handler=self._preview, permission=Permission.SEE_PROMPTS),
            *(
                PageRoute(
                    path=f"{base}/{action}",
                    handler=self._posted(action),
                    permission=Permission.HANDLE_JOBS,
                    method="POST",
                )
                for action in JobAction
            ),
        ]

    # the page

    async def _show(self, context: PageContext) -> Response:
        job = await self._job(context)
        return context.render("job.html", **await self._values(context, job), **await self._details(context, job))

    async def _live(self, context: PageContext) -> Response:
        """Answer with the changing part of the page; if the job has changed, have the browser load all of it."""
        job, query = await self._job(context), context.request.query_params
        values = await self._values(context, job)
        if query.get("seen") != values["seen"]:
            return Response(status_code=204, headers={"HX-Refresh": "true"})
        if query.get("version") == values["version"] and job.due_at:
            return Response(status_code=204)  # nothing new: the page stays as it is
        return context.render("job_live.html", **values)

    async def _job(self, context: PageContext) -> Job:
        number: int = context.request.path_params["job_id"]
        job = await self._store.job(number) if number <= _ID_MAX else None
        if job is None:
            raise PageNotFound("dashboard.error.no_job", number=str(number)[:30])
        return job

    async def _values(self, context: PageContext, job: Job) -> dict[str, Any]:
        parts = self._parts
        timeline = await read_timeline(self._store, job, self._engine.ctx.mask)
        refunded = any(entry.kind == "refund" for entry in timeline)
        attempts = await self._store.attempts(job.id)
        return {
            "job": job,
            "title": job_title(job, parts.catalog(), context.t),
            "timeline": timeline,
            "ledger": [entry for entry in timeline if entry.amount is not None],
            "attempts": attempts,
            "money": job_money(
                job, attempts, refunded=refunded, credit_usd=parts.credit_usd, credit_of=parts.credit_of
            ),
            "offers": offered_actions(job, refunded=refunded),
            "seen": seen_state(job),
            "version": _version(timeline),
            "keeps_events": parts.keeps_events,
        }

    async def _details(self, context: PageContext, job: Job) -> dict[str, Any]:
        """Return what does not change while the page is open; without the permission, nothing that the user wrote."""
        parts, shown = self._parts, context.can(Permission.SEE_PROMPTS)
        model = parts.catalog().models.get(job.model)
        ctx = self._engine.ctx
        return {
            "user": await job_user(self._store, job),
            "anomalies": await self._store.job_anomalies(job.id),
            "calls": await webhook_calls(self._store, job, whole_url=shown),
            # only for roles that write to clients: it may be the client's own order number, or a customer's name
            "idempotency_key": idempotency_key(job) if context.can(Permission.HANDLE_JOBS) else "",
            "notes": client_notes(job) if shown else {},
            "sources": await source_jobs(self._store, job),
            "is_offered": model is not None,
            "results": result_parts(job) if shown else [],
            "fields": input_fields(job, model, context.t) if shown else [],
            "sent": sent_request(await ctx.sent_order(job), parts.providers.get(job.provider), ctx.public_url, ctx.mask)
            if shown
            else None,
        }

    # results

    async def _result(self, context: PageContext) -> Response:
        job, part, number = await self._part(context)
        try:
            name, copy = f"order-{job.id}-{number}", stored_copy(job, part)
            return await self._parts.previews.open(part.value, name, copy, context.request.headers)
        except RangeNotSatisfiable as error:
            return Response(status_code=416, headers=error.headers)
        except PreviewRefused as refused:
            return context.render(
                "job_preview_page.html", 502, job=job, number=number, preview=None, reason=refused.reason
            )

    async def _preview(self, context: PageContext) -> Response:
        job, part, number = await self._part(context)
        preview, reason = None, ""
        try:
            preview = await self._parts.previews.look(part.value, stored_copy(job, part))
        except PreviewRefused as refused:
            reason = refused.reason
        template = "job_preview.html" if context.is_part else "job_preview_page.html"
        return context.render(template, job=job, number=number, preview=preview, reason=reason)

    async def _part(self, context: PageContext) -> tuple[Job, Part, int]:
        job, number = await self._job(context), context.request.path_params["part"]
        found = next((part for part in result_parts(job) if part.number == number), None)
        if found is None or found.part.kind is not PartKind.FILE:
            raise PageNotFound("dashboard.error.no_result", number=str(job.id))
        return job, found.part, number

    # actions

    def _posted(self, action: JobAction) -> Callable[[PageContext], Awaitable[Response]]:
        async def answer(context: PageContext) -> Response:
            return await self._act(context, action)

        return answer

    async def _act(self, context: PageContext, action: JobAction) -> Response:
        """Do what the form says, unless the job has changed since the form was made."""
        job = await self._job(context)
        back = _back(context.form["back"], job)
        refunded = await self._is_refunded(job)
        if self._has_changed(context, action, job):
            return await self._refuse_stale(context, job, back)
        if action not in possible(job, refunded=refunded):
            reason = next(offer.reason for offer in offered_actions(job, refunded=refunded) if offer.action is action)
            return context.redirect(back, reason, tone="bad")
        try:
            notice, after = await self._do(context, action, job)
        except AllowanceExceeded as error:
            text, values = why_not_moved(context, error)
            return context.redirect(back, f"dashboard.users.refused.{text}", tone="bad", **values)
        except ActionNotAllowed:  # it changed between our reading and our writing
            return await self._refuse_stale(context, await self._job(context), back)
        await context.audit(action, f"#{job.id}", before=seen_state(job), after=after)
        text = f"dashboard.job.done.{notice}"
        of_api = f"{text}_api"
        text = of_api if job.channel == API and of_api in context.t else text
        return context.redirect(back, text, number=str(job.id))

    async def _refuse_stale(self, context: PageContext, job: Job, back: str) -> Response:
        values = await meanwhile(context, self._store, job)
        text = "changed_again" if values["before"] == values["after"] else "changed"
        return context.redirect(back, f"dashboard.job.{text}", tone="bad", **values)

    def _has_changed(self, context: PageContext, action: JobAction, job: Job) -> bool:
        """Whether the job is not as the form showed it. What may be done once changes the lease token."""
        if context.form["seen"] != seen_state(job):
            return True
        is_once = action in _SAME_TOKEN or (action is JobAction.RETRY and job.is_parked_submit)
        return is_once and context.form["token"] != str(job.lease_token)

    async def _do(self, context: PageContext, action: JobAction, job: Job) -> tuple[str, str]:
        """Do it. Returns the name of the notice and what the job is afterwards."""
        ctx, by = self._engine.ctx, context.operator.id
        match action:
            case JobAction.RETRY:
                parked = job.is_parked_submit
                job = await operate.retry(ctx, job.id, by, resubmit=parked, token=job.lease_token)
                return "retry", seen_state(job)
            case JobAction.RESEND:
                return "resend", seen_state(await operate.resend(ctx, job.id, by, token=job.lease_token))
            case JobAction.CANCEL:
                return "cancel", seen_state(await self._engine.cancel(job.id, by))
            case JobAction.HANDLED:
                return "handled", seen_state(await operate.mark_handled(ctx, job.id, by, job.lease_token))
            case JobAction.REFUND:
                message = None if job.channel == API else await refund_message(self._store, self._parts.texts, job)
                if not await operate.refund(ctx, job.id, by, allowance=self._allowance(context), message=message):
                    return "refund_before", seen_state(job)
                reached = message is None or await send_queued(ctx, message)
                return ("refund" if reached else "refund_untold"), f"refunded {write_amount(job.price)} credits"

    def _allowance(self, context: PageContext) -> Allowance | None:
        if context.operator.role is OperatorRole.OWNER:
            return None
        return Allowance(name=context.operator.id, most=self._parts.support_credits_max)

    async def _is_refunded(self, job: Job) -> bool:
        return await self._store.ledger_entry(operate.refund_key(job.id)) is not None


def _version(timeline: Sequence[TimelineEntry]) -> str:
    """Return a text that changes with the time line."""
    last = timeline[-1]
    return f"{len(timeline)}-{last.at.timestamp():.3f}-{last.times}"


def _back(page: str, job: Job) -> str:
    """Return the page that a form leads back to: a group of the attention page, or the job."""
    if page == "attention" or (page.startswith("attention/") and page[10:].isidentifier()):
        return f"/{page}"
    return f"/jobs/{job.id}"
