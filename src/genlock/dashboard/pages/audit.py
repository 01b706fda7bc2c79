"""The audit log: what operators did, newest first, with what it changed."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from starlette.responses import Response

from genlock.dashboard.audit_lines import show_line, without_texts
from genlock.dashboard.csv_export import Cell, csv_response
from genlock.dashboard.page import PageContext, PageRoute
from genlock.dashboard.query import Query
from genlock.dashboard.roles import Permission
from genlock.domain.audit import AuditFilter, AuditLine
from genlock.ports import Database

PAGE = 50
CSV_PAGE = 500
#: after each page of a file, so that a long one leaves the database to orders for most of the time
CSV_PAUSE_SECONDS = 0.1
COLUMNS = ("id", "at", "bot", "actor", "action", "subject", "detail")
_FILTERS = ("actor", "action", "subject", "since", "until")


class AuditLogPage:
    def __init__(self, store: Database) -> None:
        self._store = store

    def routes(self) -> list[PageRoute]:
        return [
            PageRoute(path="/audit", handler=self._show, permission=Permission.VIEW),
            PageRoute(path="/audit/export.csv", handler=self._export, permission=Permission.VIEW, is_data=True),
        ]

    async def _show(self, context: PageContext) -> Response:
        query = Query(context, (*_FILTERS, "before"))
        filters, before = _read(query), query.number("before")
        page = await self._store.search_audit(filters, before=before, limit=PAGE)
        names = {operator.id: operator.name for operator in await self._store.operators() if operator.name}
        return context.render(
            "audit.html",
            problems=query.problems,
            given={name: query.text(name) for name in _FILTERS if query.text(name)},
            page=page,
            lines=[show_line(line, context.t) for line in _readable(context, page.lines)],
            names=names,
            actions=sorted({line.action for line in page.lines if line.action}),
            at_start=before is None,
        )

    async def _export(self, context: PageContext) -> Response:
        query = Query(context, _FILTERS)
        filters = _read(query)
        if query.problems:  # a file must not contain more than the operator asked for
            return context.redirect(f"/audit?{context.request.url.query}")
        return csv_response(context, "genlock-audit.csv", COLUMNS, self._rows(context, filters))

    async def _rows(self, context: PageContext, filters: AuditFilter) -> AsyncIterator[list[list[Cell]]]:
        before: int | None = None
        while True:
            page = await self._store.search_audit(filters, before=before, limit=CSV_PAGE)
            lines = _readable(context, page.lines)
            yield [[line.id, line.at, line.bot, line.actor, line.action, line.subject, line.detail] for line in lines]
            if (before := page.before) is None:
                return
            await asyncio.sleep(CSV_PAUSE_SECONDS)


def _readable(context: PageContext, lines: Sequence[AuditLine]) -> Sequence[AuditLine]:
    return lines if context.can(Permission.SEE_PROMPTS) else [without_texts(line) for line in lines]


def _read(query: Query) -> AuditFilter:
    since, until = query.range()
    texts = {name: query.text(name) for name in ("actor", "action", "subject")}
    return AuditFilter(**texts, since=since, until=until)
