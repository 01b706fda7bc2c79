"""The first page: how the business goes, and what happens now."""

from starlette.responses import Response

from genlock.dashboard.page import PageContext, PageRoute
from genlock.dashboard.roles import Permission
from genlock.engine.stats import Stats


class OverviewPage:
    def __init__(self, stats: Stats) -> None:
        self._stats = stats

    def routes(self) -> list[PageRoute]:
        return [PageRoute(path="", handler=self._show, permission=Permission.VIEW)]

    async def _show(self, context: PageContext) -> Response:
        return context.render("overview.html", stats=await self._stats.read() or {})
