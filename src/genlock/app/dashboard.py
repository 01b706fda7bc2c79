"""Makes the dashboard. It is loaded with its first request, so that it costs a start neither time nor memory."""

from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from genlock.app.dashboard_parts import DashboardParts

METHODS = ["GET", "POST"]


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
    from genlock.app.dashboard_pages import make_pages
    from genlock.app.telegram import bot_texts
    from genlock.dashboard.dashboard import Dashboard, DashboardSettings, SharedServices, language_of
    from genlock.dashboard.login import LoginPages

    texts = bot_texts(parts.settings.telegram_token.get_secret_value())
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
        shared=SharedServices(
            texts=texts,
            audit=parts.store,
            observer=parts.engine.ctx.observer,
            memory=parts.memory,
            badges=_Badges(parts).read,
            provider_title=parts.provider_title,
        ),
        settings=DashboardSettings(viewers_see_prompts=parts.settings.viewers_see_prompts),
    )
    return dashboard.app()


class _Badges:
    """The figures beside the navigation, a few seconds old."""

    def __init__(self, parts: DashboardParts) -> None:
        self._attention = parts.attention

    async def read(self) -> dict[str, int]:
        return {"attention": await self._attention.total()}
