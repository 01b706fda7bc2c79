"""The list of orders: filters that combine and live in the address, newest first, and what is done to many at once."""

from collections.abc import Callable, Mapping, Sequence

from starlette.responses import Response

from genlock.dashboard.csv_export import csv_response
from genlock.dashboard.job_export import export_jobs, header
from genlock.dashboard.job_filters import DELIVERY_GROUPS, NAMES, PERIODS, STATE_GROUPS, local_input
from genlock.dashboard.job_money import CreditOf
from genlock.dashboard.job_requests import JobRequest, chips, count_text, read_form_request, read_request
from genlock.dashboard.job_rows import JobRow, make_rows
from genlock.dashboard.page import PageContext, PageRoute
from genlock.dashboard.roles import Permission
from genlock.domain.bulk import SELECTED_MAX, BulkKind
from genlock.domain.job import Delivery, Job, State
from genlock.domain.job_search import CountKind, FoundJobs, JobCount, JobFilter
from genlock.domain.money import HoldState
from genlock.domain.printable import shown
from genlock.i18n.translator import Translator
from genlock.ports import Database

PAGE = 50
#: rows that one request refreshes
REFRESHED_MAX = 100
OPEN_BULK_SHOWN = 5
#: filters that are folded away until one of them is used
RARE_FILTERS = frozenset({"provider", "error", "task", "text", "since", "until"})
NUMBER_SHOWN = 30
_ID_DIGITS_MAX = 18


class JobsPage:
    def __init__(self, store: Database, titles: Callable[[Translator], Mapping[str, str]], credit_of: CreditOf) -> None:
        self._store = store
        #: titles of models by their ids
        self._titles = titles
        self._credit_of = credit_of

    def routes(self) -> list[PageRoute]:
        view, handle = Permission.VIEW, Permission.HANDLE_JOBS
        return [
            PageRoute(path="/jobs", handler=self._show, permission=view),
            PageRoute(path="/jobs/find", handler=self._find, permission=view, is_data=True),
            PageRoute(path="/jobs/more", handler=self._more, permission=view, is_data=True),
            PageRoute(path="/jobs/rows", handler=self._refresh, permission=view, is_data=True),
            PageRoute(path="/jobs/export.csv", handler=self._export, permission=view, is_data=True),
            PageRoute(path="/jobs/export", handler=self._export_chosen, permission=handle, method="POST"),
        ]

    async def _show(self, context: PageContext) -> Response:
        params = context.request.query_params
        request = await read_request(self._store, context, params.multi_items())
        before = read_id(params.get("before", ""))
        page = await self._store.search_jobs(request.query.filters, before=before, limit=PAGE)
        count = await self._count(request, page, before)
        return context.render(
            "jobs.html",
            request=request,
            page=page,
            rows=await self._rows(context, page.jobs),
            at_start=before is None,
            chips=chips(context, request, self._titles(context.t)),
            count=count,
            count_text=count_text(context, count),
            open_bulk=await self._store.open_bulk_actions(OPEN_BULK_SHOWN),
            actions=tuple(BulkKind),
            choices=await self._choices(context, request),
        )

    async def _find(self, context: PageContext) -> Response:
        """Go to the order with a number, as operators or users see it: `123`, `#123` or `#K7Q2M9`."""
        text = context.request.query_params.get("number", "").strip().removeprefix("#")
        job_id = context.t.numbers.order_id(text)
        if job_id is None or await self._store.job(job_id) is None:
            return context.redirect("/jobs", "dashboard.jobs.no_order", tone="bad", number=shown(text, NUMBER_SHOWN))
        return context.redirect(f"/jobs/{job_id}")

    async def _more(self, context: PageContext) -> Response:
        """Continue a search that had used up its time: the next rows, and what is to be done after them."""
        params = context.request.query_params
        request = await read_request(self._store, context, params.multi_items())
        found = min(read_id(params.get("found", "")) or 0, PAGE - 1)
        before = read_id(params.get("before", ""))
        page = await self._store.search_jobs(request.query.filters, before=before, limit=PAGE - found)
        rows = await self._rows(context, page.jobs)
        return context.render("jobs_more.html", request=request, page=page, rows=rows, found=found + len(rows))

    async def _refresh(self, context: PageContext) -> Response:
        """Return those of the named rows that look different by now."""
        known: dict[int, str] = {}
        for word in context.request.query_params.get("ids", "").split(",")[:REFRESHED_MAX]:
            number, _, digest = word.partition(".")
            if job_id := read_id(number):
                known[job_id] = digest
        jobs = await self._store.jobs_by_id(known)
        rows = await self._rows(context, jobs)
        changed = [row for row in rows if row.digest != known[row.job.id]]
        if not changed:
            return Response(status_code=204)
        return context.render("jobs_refresh.html", rows=changed, watched=[row for row in rows if row.is_changing])

    async def _export(self, context: PageContext) -> Response:
        return await self._export_all(
            context, await read_request(self._store, context, context.request.query_params.multi_items())
        )

    async def _export_chosen(self, context: PageContext) -> Response:
        request, chosen = await read_form_request(self._store, context), chosen_jobs(context)
        if context.form["scope"] == "all":
            return await self._export_all(context, request)
        if not chosen:
            return back(context, request, "dashboard.jobs.nothing_chosen")
        await context.audit("export_jobs", "jobs", after={"jobs": chosen})
        return self._csv(context, chosen)

    async def _export_all(self, context: PageContext, request: JobRequest) -> Response:
        if not request.query.is_understood:
            return back(context, request, "dashboard.jobs.unclear")
        await context.audit("export_jobs", "jobs", after=request.query.filters.dump())
        return self._csv(context, request.query.filters)

    def _csv(self, context: PageContext, selection: JobFilter | Sequence[int]) -> Response:
        see_prompts = context.can(Permission.SEE_PROMPTS)
        rows = export_jobs(self._store, selection, self._titles(context.t), self._credit_of, see_prompts=see_prompts)
        return csv_response(context, "genlock-orders.csv", header(see_prompts=see_prompts), rows)

    async def _rows(self, context: PageContext, jobs: Sequence[Job]) -> list[JobRow]:
        see_prompts = context.can(Permission.SEE_PROMPTS)
        return await make_rows(self._store, jobs, self._titles(context.t), self._credit_of, see_prompts=see_prompts)

    async def _count(self, request: JobRequest, page: FoundJobs, before: int | None) -> JobCount:
        """Count only what the first page does not show whole."""
        if before is None and page.before is None:
            return JobCount(number=len(page.jobs), kind=CountKind.EXACT)
        return await self._store.count_jobs(request.query.filters)

    async def _choices(self, context: PageContext, request: JobRequest) -> dict[str, object]:
        """Return what the filters offer. A value that is set and not offered is offered as it is."""
        t, given, filters = context.t, request.query.written, request.query.filters

        def words(name: str, *codes: str) -> list[tuple[str, str]]:
            offered = [(code, t.plain(f"dashboard.jobs.{name}.{code}")) for code in codes]
            return with_chosen(offered, given.get(name, ""))

        models = sorted(self._titles(context.t).items(), key=lambda item: item[1].casefold())
        providers = [(name, context.provider_title(name)) for name in await self._store.job_providers()]
        return {
            "states": words("state", *STATE_GROUPS, *State),
            "deliveries": words("delivery", *DELIVERY_GROUPS, *Delivery),
            "holds": words("hold", *HoldState),
            "periods": words("period", *PERIODS),
            "models": with_chosen(models, given.get("model", "")),
            "providers": with_chosen(providers, given.get("provider", "")),
            "since": local_input(filters.since, context.zone) if "since" in given else "",
            "until": local_input(filters.until, context.zone),
            "has_rare_filters": bool(RARE_FILTERS & given.keys()),
            "unknown": {name: text for name, text in given.items() if name not in NAMES},
        }


def with_chosen(offered: list[tuple[str, str]], chosen: str) -> list[tuple[str, str]]:
    return offered if not chosen or chosen in dict(offered) else [*offered, (chosen, chosen)]


def read_id(text: str) -> int | None:
    """Return a positive number from outside; None if the text is none."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _ID_DIGITS_MAX
    return int(text) or None if is_number else None


def chosen_jobs(context: PageContext) -> list[int]:
    """Return the jobs whose boxes were checked."""
    ids = [job_id for text in context.form.all("job")[:SELECTED_MAX] if (job_id := read_id(text))]
    return list(dict.fromkeys(ids))


def back(context: PageContext, request: JobRequest, notice: str) -> Response:
    """Return to the list with its filters, and say why nothing was done."""
    return context.redirect(request.url().removeprefix("/dashboard"), notice, tone="bad")
