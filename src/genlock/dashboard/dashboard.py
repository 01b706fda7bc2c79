"""The dashboard as a web application: who asks, may they, which page answers."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from genlock.dashboard import headers
from genlock.dashboard.csrf import csrf_token, is_same_origin
from genlock.dashboard.errors import ErrorPages
from genlock.dashboard.formats import read_zone
from genlock.dashboard.forms import FORM_BYTES_MAX, Form, InvalidForm
from genlock.dashboard.login import COOKIE, LoginPages
from genlock.dashboard.page import ROOT, PageContext, PageNotFound, PageRoute, read_notice
from genlock.dashboard.rendering import static_files, static_path
from genlock.dashboard.roles import permissions
from genlock.domain.errors import StoreError
from genlock.domain.events import Event
from genlock.engine.logins import Login, Logins
from genlock.i18n.translator import Texts
from genlock.ports import AuditStore, Observer
from genlock.web.requests import BodyMemory, IncomingBody, RequestRefused

ZONE_COOKIE = "genlock_zone"
LANGUAGE_COOKIE = "genlock_language"
STATIC_SECONDS = 365 * 86_400
#: parameters that an address may have: pages name those without a meaning, each with a link that leaves it out
PARAMETERS_MAX = 100
#: no page of ours has a longer path, and a number with more digits cannot be read
PATH_LENGTH_MAX = 500

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class DashboardSettings:
    """What the operator's settings say about the dashboard."""

    #: whether viewers may read what users wrote and received
    viewers_see_prompts: bool = True


@dataclass(frozen=True, kw_only=True)
class SharedServices:
    """What the dashboard shares with the rest of the instance."""

    texts: Texts
    audit: AuditStore
    observer: Observer
    memory: BodyMemory
    #: figures beside the navigation
    badges: Callable[[], Awaitable[Mapping[str, int]]]
    #: returns the name that operators know a provider by
    provider_title: Callable[[str], str]


class Dashboard:
    """Checks session, role and CSRF token of every request, and lets the page answer."""

    def __init__(
        self,
        *,
        logins: Logins,
        login_pages: LoginPages,
        pages: Iterable[PageRoute],
        shared: SharedServices,
        settings: DashboardSettings,
    ) -> None:
        self._logins = logins
        self._login_pages = login_pages
        self.pages: Sequence[PageRoute] = tuple(pages)
        self._texts = shared.texts
        self._audit = shared.audit
        self._observer = shared.observer
        self._memory = shared.memory
        self._badges = shared.badges
        self._provider_title = shared.provider_title
        self._settings = settings
        self._errors = ErrorPages()

    def app(self) -> ASGIApp:
        """Return the ASGI application for `/dashboard` and everything below it."""
        routes = [
            Route(f"{ROOT}/static/{{digest}}/{{name}}", _static, methods=["GET"]),
            *(
                Route(path, self._guarded(handler), methods=[method])
                for path, handler, method in self._login_pages.routes()
            ),
            Route(f"{ROOT}/language/{{code}}", self._guarded(self._set_language), methods=["POST"]),
            *(Route(f"{ROOT}{page.path}", self._endpoint(page), methods=[page.method]) for page in self.pages),
            Route(f"{ROOT}{{rest:path}}", self._endpoint(None), methods=["GET", "POST"]),
        ]
        router = Router(routes, redirect_slashes=False)

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            is_ours = len(scope["path"]) <= PATH_LENGTH_MAX
            await (router if is_ours else PlainTextResponse("not found", 404))(scope, receive, headers.adding(send))

        return guarded

    def _endpoint(self, page: PageRoute | None) -> Endpoint:
        async def answer(request: Request) -> Response:
            return await self._answer(request, page)

        return self._guarded(answer)

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        async def answer(request: Request) -> Response:
            try:
                return await endpoint(request)
            except StoreError as error:
                self._observer.event(Event.STAGE_ERROR, step="dashboard", error=repr(error)[:500])
                return self._errors.plain(request, self._translator(request), "store", 503)
            except Exception as error:  # noqa: BLE001 - one broken page must not show its traceback, nor a bare 500
                where = request.url.path[:200]
                self._observer.event(Event.STAGE_ERROR, step="dashboard", path=where, error=repr(error)[:500])
                return self._errors.plain(request, self._translator(request), "broken", 500)

        return answer

    async def _answer(self, request: Request, page: PageRoute | None) -> Response:
        secret = request.cookies.get(COOKIE, "")
        login = await self._logins.find(secret) if secret else None
        if login is None:
            return await self._login_pages.required(request)
        mark_authenticated(request)
        context = await self._context(request, login, secret)
        if page is None:
            return self._errors.page(context, "no_page", 404)
        if refused := await self._refuse(context, page):
            return refused
        try:
            return await page.handler(context)
        except PageNotFound as missing:
            return self._errors.page(context, missing.text.removeprefix("dashboard.error."), 404, **missing.values)

    async def _refuse(self, context: PageContext, page: PageRoute) -> Response | None:
        """Return the answer to a request that no page is asked about."""
        if len(context.request.query_params.multi_items()) > PARAMETERS_MAX:
            return self._errors.page(context, "address", 400)
        if not context.can(page.permission):
            return self._errors.page(context, "forbidden", 403)
        return await self._read_form(context) if context.request.method == "POST" else None

    async def _context(self, request: Request, login: Login, secret: str) -> PageContext:
        async def is_logged_in() -> bool:
            return await self._logins.find(secret) is not None

        return PageContext(
            request=request,
            login=login,
            permissions=permissions(login.operator.role, viewers_see_prompts=self._settings.viewers_see_prompts),
            t=self._translator(request),
            zone=read_zone(request.cookies.get(ZONE_COOKIE, "")),
            csrf=csrf_token(secret),
            audit_store=self._audit,
            is_logged_in=is_logged_in,
            provider_title=self._provider_title,
            badges=await self._badges() if request.method == "GET" else {},
            notice=read_notice(request),
        )

    async def _read_form(self, context: PageContext) -> Response | None:
        """Read and check the posted form. Returns the answer if it is refused."""
        request = context.request
        try:
            with IncomingBody(request, self._memory) as incoming:
                incoming.authenticate()
                body = await incoming.read(FORM_BYTES_MAX)
            if body is None:
                return self._errors.page(context, "too_large", 413)
            context.form = Form.parse(body)
        except (InvalidForm, RequestRefused):
            return self._errors.page(context, "bad_form", 400)
        if not is_same_origin(request):
            return self._errors.page(context, "csrf", 403)
        if not compare_digest(context.form["csrf"].encode(), context.csrf.encode()):
            return self._errors.other_session(context, context.form.prose())
        return None

    async def _set_language(self, request: Request) -> Response:
        code = request.path_params["code"]
        path = urlsplit(request.headers.get("Referer", "")).path
        response = RedirectResponse(path if path.startswith(ROOT) else ROOT, 303)
        if code in self._texts.languages and is_same_origin(request):
            response.set_cookie(LANGUAGE_COOKIE, code, max_age=STATIC_SECONDS, path=ROOT, httponly=True, samesite="lax")
        return response

    def _translator(self, request: Request) -> Any:
        return self._texts.translator(language_of(request, self._texts))


def language_of(request: Request, texts: Texts) -> str:
    """Return the language that the operator chose, or that the browser asks for."""
    chosen = request.cookies.get(LANGUAGE_COOKIE, "")
    wanted = request.headers.get("Accept-Language", "").split(",")[0].split(";")[0].strip()
    return chosen if chosen in texts.languages else texts.guess_language(wanted[:20])


def mark_authenticated(request: Request) -> None:
    """Record that the sender has proved to know a secret: its connection is not closed to make room."""
    IncomingBody(request, _NO_MEMORY).authenticate()


_NO_MEMORY = BodyMemory(0)


async def _static(request: Request) -> Response:
    """Serve a file under any digest: a page that another version made asks with its own.

    Browsers may keep the file only under its own digest; else they would keep this version's file as that of another.
    """
    found = static_files().get(request.path_params["name"])
    if found is None:
        return PlainTextResponse("not found", 404)
    content, kind = found
    own = request.url.path == static_path(request.path_params["name"])
    caching = f"public, max-age={STATIC_SECONDS}, immutable" if own else "no-cache"
    return Response(content, media_type=kind, headers={"Cache-Control": caching})
