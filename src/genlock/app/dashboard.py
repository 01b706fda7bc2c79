"""Makes the dashboard. It is loaded with its first request, so that it costs a start neither time nor memory."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from genlock import __version__
from genlock.app.engine import retention_periods
from genlock.engine.engine import Engine
from genlock.engine.logins import Logins
from genlock.engine.stats import Stats
from genlock.ports import Database
from genlock.settings import ServiceSettings, Settings
from genlock.web.requests import BodyMemory

if TYPE_CHECKING:
    from genlock.dashboard.installation import Examine
    from genlock.dashboard.page import PageRoute

METHODS = ["GET", "POST"]


@dataclass(frozen=True, kw_only=True)
class DashboardParts:
    """What the dashboard shows and changes."""

    settings: ServiceSettings
    store: Database
    engine: Engine
    logins: Logins
    memory: BodyMemory
    stats: Stats
    #: runs the doctor and yields its phases; None: it cannot be run from the dashboard
    examine: "Examine | None" = None


def make_logins(settings: Settings, store: Database) -> Logins:
    token = settings.dashboard_token.get_secret_value() if settings.dashboard_token else None
    return Logins(store, owners=frozenset(settings.admin_ids), token=token)


def public_address(settings: Settings) -> str:
    """Return the base URL under which an operator reaches this installation: the public one, or this machine."""
    if settings.public_url:
        return settings.public_url
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::", "") else settings.host  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def dashboard_routes(parts: DashboardParts) -> list[Route]:
    app = _LoadedOnDemand(parts)
    return [Route("/dashboard", app, methods=METHODS), Route("/dashboard/{rest:path}", app, methods=METHODS)]


class _LoadedOnDemand:
    def __init__(self, parts: DashboardParts) -> None:
        self._parts = parts
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            self._app = make_dashboard_app(self._parts)
        await self._app(scope, receive, send)


def make_dashboard_app(parts: DashboardParts) -> ASGIApp:
    from genlock.dashboard.dashboard import Dashboard, DashboardSettings, Surroundings, language_of
    from genlock.dashboard.login import LoginPages
    from genlock.i18n.translator import package_texts

    texts = package_texts()
    login_pages = LoginPages(
        parts.logins,
        translator=lambda request: texts.translator(language_of(request, texts)),
        audit=parts.store,
        memory=parts.memory,
        bot_link=lambda: "",
    )
    dashboard = Dashboard(
        logins=parts.logins,
        login_pages=login_pages,
        pages=make_pages(parts),
        shared=Surroundings(
            texts=texts,
            audit=parts.store,
            observer=parts.engine.ctx.observer,
            memory=parts.memory,
            badges=_Badges(parts).read,
        ),
        settings=DashboardSettings(viewers_see_prompts=parts.settings.viewers_see_prompts),
    )
    return dashboard.app()


def make_pages(parts: DashboardParts) -> "list[PageRoute]":
    """Return the routes of every page. A page is added here."""
    from genlock.dashboard.pages.overview import OverviewPage

    return [*OverviewPage(parts.stats).routes(), *_system_pages(parts)]


def _system_pages(parts: DashboardParts) -> "list[PageRoute]":
    from genlock.app.installation import effective_settings
    from genlock.dashboard.doctor_runs import DoctorRuns
    from genlock.dashboard.installation import Installation
    from genlock.dashboard.pages.audit import AuditLogPage
    from genlock.dashboard.pages.doctor import DoctorPage
    from genlock.dashboard.pages.operators import OperatorsPage
    from genlock.dashboard.pages.system import SystemPage

    store, ctx = parts.store, parts.engine.ctx
    installation = Installation(
        version=__version__,
        instance=ctx.instance,
        settings=effective_settings(parts.settings),
        keep_seconds=retention_periods(parts.settings),
    )
    return [
        *SystemPage(store, installation).routes(),
        *OperatorsPage(store, parts.settings.admin_ids).routes(),
        *DoctorPage(DoctorRuns(store, ctx.observer, parts.examine)).routes(),
        *AuditLogPage(store).routes(),
    ]


class _Badges:
    """The figures beside the navigation, from the counts that `/health` also reads."""

    def __init__(self, parts: DashboardParts) -> None:
        self._stats = parts.stats

    async def read(self) -> dict[str, int]:
        stats = await self._stats.read() or self._stats.last
        return {"attention": round(stats.get("attention", 0) + stats.get("updates_dead", 0))}
