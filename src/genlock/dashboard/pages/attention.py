"""What waits for an operator, grouped by reason, each with what it means and the fix as a button."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from starlette.responses import Response

from genlock.dashboard.attention_groups import BY_NAME, GROUPS, Group, Source
from genlock.dashboard.job_actions import OfferedAction, offered_actions, seen_state
from genlock.dashboard.job_money import CreditOf, costs_usd
from genlock.dashboard.job_view import job_title
from genlock.dashboard.page import PageContext, PageNotFound, PageRoute
from genlock.dashboard.roles import Permission
from genlock.domain.anomaly import Anomaly, AnomalyKind
from genlock.domain.catalog import Catalog
from genlock.domain.errors import ActionNotAllowed, ChannelError, Refusal
from genlock.domain.inbox import InboxState
from genlock.domain.job import AttentionCode, Job
from genlock.engine import attention
from genlock.engine.attention import COUNT_MAX, AttentionCounts
from genlock.engine.context import EngineContext
from genlock.engine.refunds import REFUND
from genlock.ports import Database

SHOWN_ON_OVERVIEW = 5
SHOWN_ON_GROUP = 30
BODY_BYTES = 500
ENTRIES_MAX = 200
_ID_MAX = 2**63 - 1
_NUMBER_DIGITS_MAX = 18

Act = Callable[[Database, EngineContext, int, str], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionJob:
    job: Job
    title: str
    seen: str
    offers: list[OfferedAction]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnomalyRow:
    anomaly: Anomaly
    job: Job | None
    title: str
    #: what the providers billed for the job
    cost_usd: Decimal | None


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupView:
    group: Group
    #: how many there are; at COUNT_MAX there may be more
    count: int
    rows: Sequence[Any]
    #: where the next page begins
    older: int | None = None

    @property
    def at_limit(self) -> bool:
        return self.count >= COUNT_MAX


class AttentionPage:
    def __init__(
        self,
        *,
        ctx: EngineContext,
        store: Database,
        counts: AttentionCounts,
        catalog: Callable[[], Catalog],
        credit_of: CreditOf,
        resume_refunds: Callable[[], Awaitable[object]],
    ) -> None:
        self._ctx = ctx
        self._store = store
        self._counts = counts
        self._catalog = catalog
        self._credit_of = credit_of
        self._resume_refunds = resume_refunds

    def routes(self) -> list[PageRoute]:
        base, numbered = "/attention", "{number:int}"
        actions: dict[str, Act] = {
            f"updates/{numbered}/retry": attention.retry_update,
            f"updates/{numbered}/discard": attention.discard_update,
            f"callbacks/{numbered}/retry": attention.retry_callback,
            f"callbacks/{numbered}/close": attention.close_callback,
            f"anomalies/{numbered}/handled": attention.handle_anomaly,
        }
        return [
            PageRoute(path=base, handler=self._show, permission=Permission.VIEW),
            *(
                PageRoute(
                    path=f"{base}/{path}",
                    handler=self._posted(path, act),
                    permission=Permission.HANDLE_JOBS,
                    method="POST",
                )
                for path, act in actions.items()
            ),
            PageRoute(
                path=f"{base}/costs/handled", handler=self._cost, permission=Permission.HANDLE_JOBS, method="POST"
            ),
            PageRoute(
                path=f"{base}/refunds/retry", handler=self._refunds, permission=Permission.MANAGE_MONEY, method="POST"
            ),
            PageRoute(path=f"{base}/{{group}}", handler=self._show_group, permission=Permission.VIEW),
        ]

    # pages

    async def _show(self, context: PageContext) -> Response:
        counts = await self._counts.read(reload=True)
        groups = [
            GroupView(group=group, count=counts[group.name], rows=await self._rows(context, group, SHOWN_ON_OVERVIEW))
            for group in GROUPS
            if counts.get(group.name) and not group.informs_only
        ]
        return context.render("attention.html", groups=groups, only=None, masked=self._masked)

    async def _show_group(self, context: PageContext) -> Response:
        group = BY_NAME.get(context.request.path_params["group"])
        if group is None:
            raise PageNotFound
        before = _cursor(context.request.query_params.get("before", ""))
        counts = await self._counts.read(reload=True)
        rows = await self._rows(context, group, SHOWN_ON_GROUP + 1, before)
        shown = rows[:SHOWN_ON_GROUP]
        older = _id_of(shown[-1]) if len(rows) > SHOWN_ON_GROUP else None
        view = GroupView(group=group, count=counts.get(group.name, 0), rows=shown, older=older)
        return context.render("attention.html", groups=[view] if shown else [], only=group, masked=self._masked)

    async def _rows(self, context: PageContext, group: Group, limit: int, before: int | None = None) -> Sequence[Any]:
        match group.source:
            case Source.JOB:
                jobs = await self._store.jobs_with_attention(AttentionCode(group.name), limit, before)
                refunded = await self._store.refunded_jobs([job.id for job in jobs])
                return [self._job_row(context, job, refunded=job.id in refunded) for job in jobs]
            case Source.ANOMALY:
                return await self._anomaly_rows(context, AnomalyKind(group.name), limit, before)
            case Source.CALLBACK:
                return await self._store.kept_callbacks(InboxState(group.name), limit, BODY_BYTES, before)
            case Source.UPDATE:
                return await self._store.dead_updates(limit, before)
            case Source.REFUND:
                entries = await self._store.kv_list_of_all_bots(REFUND, ENTRIES_MAX)
                return [entry for entry in entries if entry.age >= attention.REFUND_OVERDUE_SECONDS][:limit]
            case Source.COST:
                return (await self._store.kv_list_of_all_bots(attention.COST_ABOVE_PRICE, ENTRIES_MAX))[:limit]

    def _masked(self, body: bytes | str) -> str:
        return self._ctx.mask(body if isinstance(body, str) else body.decode("utf-8", "replace"))

    def _job_row(self, context: PageContext, job: Job, *, refunded: bool) -> AttentionJob:
        title = job_title(job, self._catalog(), context.t)
        return AttentionJob(job=job, title=title, seen=seen_state(job), offers=offered_actions(job, refunded=refunded))

    async def _anomaly_rows(
        self, context: PageContext, kind: AnomalyKind, limit: int, before: int | None
    ) -> list[AnomalyRow]:
        found = await self._store.anomalies(kind, limit, before)
        jobs = await self._store.jobs_by_id([anomaly.job_id for anomaly in found])
        by_id = {job.id: job for job in jobs}
        costs = await costs_usd(self._store, jobs, self._credit_of)
        rows = []
        for anomaly in found:
            job = by_id.get(anomaly.job_id)
            title = job_title(job, self._catalog(), context.t) if job else ""
            rows.append(AnomalyRow(anomaly=anomaly, job=job, title=title, cost_usd=costs.get(anomaly.job_id)))
        return rows

    # actions

    def _posted(self, path: str, act: Act) -> Callable[[PageContext], Awaitable[Response]]:
        what, _, name = path.replace("/{number:int}", "").partition("/")
        singular = {"anomalies": "anomaly"}.get(what, what.removesuffix("s"))

        async def answer(context: PageContext) -> Response:
            number: int = context.request.path_params["number"]
            back = _back(context)
            try:
                await act(self._store, self._ctx, min(number, _ID_MAX), context.operator.id)
            except ActionNotAllowed:
                return context.redirect(back, "dashboard.attention.done_before", tone="bad")
            await context.audit(f"{what}.{name}", f"{singular} {number}")
            return context.redirect(back, f"dashboard.attention.done.{what}_{name}")

        return answer

    async def _cost(self, context: PageContext) -> Response:
        model, job = context.form["model"][:200], _cursor(context.form["job"])
        try:
            await attention.accept_cost(self._store, self._ctx, model, job or 0, context.operator.id)
        except ActionNotAllowed:
            return context.redirect(_back(context), "dashboard.attention.done_before", tone="bad")
        await context.audit("costs.handled", f"model {model}", before=f"order {job}")
        return context.redirect(_back(context), "dashboard.attention.done.costs_handled")

    async def _refunds(self, context: PageContext) -> Response:
        """Ask Telegram again for every refund that it has not confirmed."""
        await context.audit("refunds.retry", "refunds")
        try:
            await self._resume_refunds()
        except (ChannelError, Refusal) as error:
            return context.redirect(
                _back(context), "dashboard.attention.refunds_failed", tone="bad", reason=str(error)[:200]
            )
        return context.redirect(_back(context), "dashboard.attention.done.refunds_retry")


def _back(context: PageContext) -> str:
    name = context.form["back"]
    return f"/attention/{name}" if name in BY_NAME else "/attention"


def _cursor(text: str) -> int | None:
    """Return the number in a text from outside; None if it is not one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _NUMBER_DIGITS_MAX else None


def _id_of(row: Any) -> int | None:
    match row:
        case AttentionJob():
            return row.job.id
        case AnomalyRow():
            return row.anomaly.id
        case _:
            found: int | None = getattr(row, "id", None)
            return found
