"""Makes the dashboard. It is loaded with its first request, so that it costs a start neither time nor memory."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from genlock.catalog.editor import CatalogEditor
from genlock.engine.engine import Engine
from genlock.engine.logins import Logins
from genlock.engine.stats import Stats
from genlock.ports import Database, PublicLists
from genlock.settings import ServiceSettings, Settings
from genlock.web.requests import BodyMemory

if TYPE_CHECKING:
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
    editor: CatalogEditor
    #: reads the providers' public lists of models and prices
    fetch_lists: Callable[[], Awaitable[Mapping[str, PublicLists]]]


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

    return [*OverviewPage(parts.stats).routes(), *_catalog_pages(parts), *_campaign_pages(parts)]


def _catalog_pages(parts: DashboardParts) -> "list[PageRoute]":
    from genlock.catalog.margins import PriceRules
    from genlock.dashboard.pages.models import ModelsPage
    from genlock.dashboard.pages.provider_lists import ProviderListsPage

    settings = parts.settings
    rules = PriceRules(markup=settings.markup, credit_usd=settings.credit_usd)
    lists = ProviderListsPage(parts.editor, parts.store, parts.fetch_lists)
    return [*lists.routes(), *ModelsPage(parts.editor, parts.store, rules).routes()]


#: the settings that decide about gifts and limits
CAMPAIGN_SETTINGS = (
    "welcome_credits", "free_per_day", "reward_inviter_credits", "reward_invited_credits", "running_max",
    "per_minute", "per_hour", "uploads_per_hour", "late_cancels_per_day", "markup", "credit_usd",
)  # fmt: skip


def _campaign_pages(parts: DashboardParts) -> "list[PageRoute]":
    from genlock.dashboard.pages.broadcasts import BroadcastsPage
    from genlock.dashboard.pages.promos import CampaignSetting, PromosPage
    from genlock.engine.tell import tell

    settings, store = parts.settings, parts.store
    shown = [
        CampaignSetting(key=name, name=f"GENLOCK_{name.upper()}", value=getattr(settings, name))
        for name in CAMPAIGN_SETTINGS
    ]
    promos = PromosPage(
        store,
        bot=settings.bot_id,
        has_free_models=lambda: any(model.free for model in parts.editor.current.get().offered()),
        settings=shown,
    )
    broadcasts = BroadcastsPage(store, bot=settings.bot_id, tell=partial(tell, parts.engine.ctx))
    return [*promos.routes(), *broadcasts.routes()]


class _Badges:
    """The figures beside the navigation, from the counts that `/health` also reads."""

    def __init__(self, parts: DashboardParts) -> None:
        self._stats = parts.stats

    async def read(self) -> dict[str, int]:
        stats = await self._stats.read() or self._stats.last
        return {"attention": round(stats.get("attention", 0) + stats.get("updates_dead", 0))}
