"""The doctor, run from the dashboard: its phases appear one by one."""

from starlette.responses import Response

from genlock.dashboard.doctor_runs import DoctorRuns
from genlock.dashboard.page import PageContext, PageRoute
from genlock.dashboard.roles import Permission

PATH = "/system/doctor"


class DoctorPage:
    def __init__(self, runs: DoctorRuns) -> None:
        self._runs = runs

    def routes(self) -> list[PageRoute]:
        manage = Permission.MANAGE_SYSTEM
        return [
            PageRoute(path=PATH, handler=self._show, permission=manage),
            PageRoute(path=f"{PATH}/phases", handler=self._phases, permission=manage, is_data=True),
            PageRoute(path=PATH, handler=self._start, permission=manage, method="POST"),
        ]

    async def _show(self, context: PageContext) -> Response:
        run = await self._runs.last()
        return context.render("system_doctor.html", tab="doctor", run=run, is_available=self._runs.is_available)

    async def _phases(self, context: PageContext) -> Response:
        """Return the part of the page that changes while the doctor runs; when it has ended, load the whole page."""
        run = await self._runs.last()
        response = context.render("system_doctor_phases.html", run=run)
        if context.is_part and run is not None and not run.running:
            response.headers["HX-Refresh"] = "true"
        return response

    async def _start(self, context: PageContext) -> Response:
        if not self._runs.is_available:
            return context.redirect(PATH, "dashboard.system.doctor_unavailable", tone="bad")
        if not await self._runs.start(context.operator.id, context.request_key):
            return context.redirect(PATH, "dashboard.system.doctor_running", tone="bad")
        await context.audit("run_doctor", "doctor", once=True)
        return context.redirect(PATH)
