"""Bulk actions on orders: what one would do, to begin it, how far it is, and which orders it left out."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.responses import Response

from genlock.dashboard.job_requests import (
    JobRequest,
    chips,
    count_text,
    describe,
    read_form_request,
)
from genlock.dashboard.page import PageContext, PageNotFound, PageRoute
from genlock.dashboard.pages.jobs import back, chosen_jobs, read_id
from genlock.dashboard.roles import Permission
from genlock.domain.bulk import BulkAction, BulkKind, BulkReason, BulkSelection
from genlock.domain.job_search import CountKind, JobCount
from genlock.engine.bulk import obstacle
from genlock.i18n.translator import Translator
from genlock.ports import Database

LISTED = 30
FAILURES_LISTED = 100
#: a larger number is no id
ID_MAX = 2**62


@dataclass(frozen=True, kw_only=True)
class BulkPreview:
    """What a bulk action on chosen jobs would do."""

    possible: int
    #: thousandths of a credit that would be refunded
    refunded: int
    obstacles: Mapping[BulkReason, int]


class BulkPages:
    def __init__(self, store: Database, titles: Callable[[Translator], Mapping[str, str]]) -> None:
        self._store = store
        self._titles = titles

    def routes(self) -> list[PageRoute]:
        handle = Permission.HANDLE_JOBS
        return [
            PageRoute(path="/jobs/confirm", handler=self._confirm, permission=handle, method="POST"),
            PageRoute(path="/jobs/bulk", handler=self._begin, permission=handle, method="POST"),
            PageRoute(path="/jobs/bulk", handler=self._list, permission=Permission.VIEW),
            PageRoute(path="/jobs/bulk/{bulk_id:int}", handler=self._show, permission=Permission.VIEW),
            PageRoute(path="/jobs/bulk/{bulk_id:int}/stop", handler=self._stop, permission=handle, method="POST"),
        ]

    async def _confirm(self, context: PageContext) -> Response:
        """Say what would happen to money and chats, before anything is done."""
        request = await read_form_request(self._store, context)
        kind, chosen = read_kind(context), chosen_jobs(context)
        if (refused := self._refuse(context, request, kind, chosen)) or kind is None:
            return refused or back(context, request, "dashboard.jobs.unknown_action")
        is_all = context.form["scope"] == "all"
        count = (
            await self._store.count_jobs(request.query.filters)
            if is_all
            else JobCount(number=len(chosen), kind=CountKind.EXACT)
        )
        return context.render(
            "jobs_confirm.html",
            request=request,
            kind=kind,
            chosen=[] if is_all else chosen,
            count=count,
            count_text=count_text(context, count),
            preview=None if is_all else await self._preview(kind, chosen),
            chips=chips(context, request, self._titles(context.t)),
        )

    async def _preview(self, kind: BulkKind, chosen: list[int]) -> BulkPreview:
        jobs = await self._store.jobs_by_id(chosen)
        refunded = await self._store.refunded_jobs(chosen)
        reasons = {job.id: obstacle(kind, job, refunded=job.id in refunded) for job in jobs}
        obstacles = Counter(reason for reason in reasons.values() if reason is not None)
        obstacles[BulkReason.MISSING] += len(chosen) - len(jobs)
        possible = [job for job in jobs if reasons[job.id] is None]
        return BulkPreview(
            possible=len(possible), refunded=sum(job.price for job in possible), obstacles=dict(+obstacles)
        )

    async def _begin(self, context: PageContext) -> Response:
        request = await read_form_request(self._store, context)
        kind, chosen = read_kind(context), chosen_jobs(context)
        if (refused := self._refuse(context, request, kind, chosen)) or kind is None:
            return refused or back(context, request, "dashboard.jobs.unknown_action")
        if context.form["scope"] == "all":
            selection = BulkSelection(filters=request.query.filters)
            expected = await self._store.count_jobs(request.query.filters)
        else:
            selection = BulkSelection(job_ids=tuple(chosen))
            expected = JobCount(number=len(chosen), kind=CountKind.EXACT)
        action = await self._store.begin_bulk_action(
            kind, selection, author=context.operator.id, request_key=context.request_key, expected=expected
        )
        what = {"filters": request.query.filters.dump()} if selection.filters else {"jobs": list(selection.job_ids)}
        await context.audit(
            f"bulk_{kind}",
            f"bulk {action.id}",
            after={**what, "expected": f"{expected.kind} {expected.number}"},
            once=True,
        )
        return context.redirect(f"/jobs/bulk/{action.id}", "dashboard.jobs.begun")

    def _refuse(
        self, context: PageContext, request: JobRequest, kind: BulkKind | None, chosen: list[int]
    ) -> Response | None:
        """Return the answer to a form that cannot be carried out."""
        if kind is None:
            return back(context, request, "dashboard.jobs.unknown_action")
        if context.form["scope"] == "all":
            if kind is BulkKind.REFUND and not context.can(Permission.MANAGE_MONEY):
                return back(context, request, "dashboard.jobs.refund_all_forbidden")
            # A filter that has no effect would let the action reach orders that the operator did not mean.
            return None if request.query.is_understood else back(context, request, "dashboard.jobs.unclear")
        return None if chosen else back(context, request, "dashboard.jobs.nothing_chosen")

    async def _list(self, context: PageContext) -> Response:
        before = read_id(context.request.query_params.get("before", ""))
        actions = await self._store.bulk_actions(LISTED, before)
        older = actions[-1].id if len(actions) == LISTED else None
        shown = [(action, self._about(context, action)) for action in actions]
        return context.render("jobs_bulk.html", actions=shown, older=older, at_start=before is None)

    async def _show(self, context: PageContext) -> Response:
        number: int = context.request.path_params["bulk_id"]
        action = await self._store.bulk_action(number) if number <= ID_MAX else None
        if action is None:
            raise PageNotFound
        after = read_id(context.request.query_params.get("after", "")) or 0
        failures = await self._store.bulk_failures(action.id, FAILURES_LISTED, after)
        template = "jobs_bulk_progress.html" if context.is_part else "jobs_bulk_one.html"
        return context.render(
            template,
            action=action,
            about=self._about(context, action),
            expected_text=count_text(context, action.expected),
            failures=failures,
            older=failures[-1].job_id if len(failures) == FAILURES_LISTED else None,
            at_start=after == 0,
        )

    def _about(self, context: PageContext, action: BulkAction) -> str:
        """Say which orders a bulk action is about."""
        filters = action.selection.filters
        if filters is None:
            return context.t.plain("dashboard.jobs.about_chosen", n=len(action.selection.job_ids))
        return describe(context, filters)

    async def _stop(self, context: PageContext) -> Response:
        bulk_id = min(context.request.path_params["bulk_id"], ID_MAX)
        stopped = await self._store.stop_bulk_action(bulk_id)
        if not stopped:
            return context.redirect(f"/jobs/bulk/{bulk_id}", "dashboard.jobs.not_running", tone="bad")
        await context.audit("bulk_stop", f"bulk {bulk_id}")
        return context.redirect(f"/jobs/bulk/{bulk_id}", "dashboard.jobs.stopping")


def read_kind(context: PageContext) -> BulkKind | None:
    try:
        return BulkKind(context.form["action"])
    except ValueError:
        return None
