"""Logging in: by a one-time link, or by the token of the settings. There are no passwords of operators."""

from collections.abc import Awaitable, Callable
from hmac import compare_digest
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from genlock.dashboard.csrf import csrf_token, is_same_origin
from genlock.dashboard.forms import FORM_BYTES_MAX, Form, InvalidForm
from genlock.dashboard.page import ROOT
from genlock.dashboard.rendering import render
from genlock.engine.logins import SESSION_SECONDS, Browser, Logins
from genlock.engine.token_attempts import TooManyAttempts
from genlock.i18n.translator import Translator
from genlock.ports import AuditStore
from genlock.web.requests import BodyMemory, IncomingBody, RequestRefused

COOKIE = "genlock_session"
#: says that the token was entered in this browser before
DEVICE_COOKIE = "genlock_device"
DEVICE_SECONDS = 365 * 86_400
LOGIN_PATH = f"{ROOT}/login"
_BODY_BYTES_MAX = 4_000
_NEXT_LENGTH_MAX = 500
_REMOTE_LENGTH_MAX = 60


class LoginPages:
    def __init__(
        self,
        logins: Logins,
        *,
        translator: Callable[[Request], Translator],
        audit: AuditStore,
        memory: BodyMemory,
        bot_link: Callable[[], str],
    ) -> None:
        self._logins = logins
        self._translator = translator
        self._audit = audit
        self._memory = memory
        self._bot_link = bot_link

    def routes(self) -> list[tuple[str, Callable[[Request], Awaitable[Response]], str]]:
        """Return the path, the handler and the method of each route."""
        return [
            (LOGIN_PATH, self._show, "GET"),
            (LOGIN_PATH, self._use_token, "POST"),
            (f"{LOGIN_PATH}/{{secret}}", self._show_link, "GET"),
            (f"{LOGIN_PATH}/{{secret}}", self._use_link, "POST"),
            (f"{ROOT}/logout", self._log_out, "POST"),
        ]

    async def required(self, request: Request) -> Response:
        """Answer a request without a session: log in first, then go on where the operator wanted to go.

        A form that comes too late is not carried out; what the operator wrote is shown, to be copied.
        """
        if "HX-Request" in request.headers:  # a part of an open page: the whole page must go to the login
            return Response(status_code=401, headers={"HX-Redirect": LOGIN_PATH})
        if request.method != "GET":
            form = await self._read(request, FORM_BYTES_MAX)
            typed = form.prose() if form is not None else []
            back = _next(_path(request.headers.get("Referer", "")))
            return self._page(request, "login.html", 401, problem="expired", next=back, typed=typed)
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        query = f"?next={quote(wanted, safe='')}" if wanted != ROOT else ""
        return RedirectResponse(f"{LOGIN_PATH}{query}", 303)

    async def _show(self, request: Request) -> Response:
        return self._page(request, "login.html", problem="", next=_next(request.query_params.get("next", "")))

    async def _use_token(self, request: Request) -> Response:
        form = await self._read(request)
        if form is None:
            return self._page(request, "login.html", 400, problem="bad_form", next="")
        wanted, browser = _next(form["next"]), _browser(request)
        try:
            secret = await self._logins.use_token(form["token"], browser)
        except TooManyAttempts as error:
            response = self._page(request, "login.html", 429, problem="attempts", next=wanted, seconds=error.seconds)
            response.headers["Retry-After"] = str(max(1, round(error.seconds)))
            return response
        if secret is None:
            return self._page(request, "login.html", 401, problem="wrong_token", next=wanted)
        response = await self._begin(request, secret, wanted)
        device = self._logins.device(browser)
        if device is not None:
            _set_cookie(request, response, DEVICE_COOKIE, device, seconds=DEVICE_SECONDS, path=LOGIN_PATH)
        return response

    async def _show_link(self, request: Request) -> Response:
        """Ask before the link is used up: scanners of chats and mails open every address they see."""
        operator = await self._logins.link_operator(request.path_params["secret"])
        if operator is None:
            return self._page(request, "login.html", 410, problem="used_link", next="")
        return self._page(request, "login_link.html", operator=operator, path=request.url.path)

    async def _use_link(self, request: Request) -> Response:
        if not is_same_origin(request):  # a foreign page would put its own session into the operator's browser
            return self._page(request, "login.html", 400, problem="bad_form", next="")
        secret = await self._logins.use_link(request.path_params["secret"], _browser(request))
        if secret is None:
            return self._page(request, "login.html", 410, problem="used_link", next="")
        return await self._begin(request, secret, ROOT)

    async def _begin(self, request: Request, secret: str, path: str) -> Response:
        login = await self._logins.find(secret)
        if login is not None:
            # SQLite gives a new session the id of one that was deleted.
            await self._audit.add_audit(
                key=f"login:{login.session.id}:{login.session.created_at.timestamp()}",
                actor=login.operator.id,
                action="login",
                subject=login.session.method.value,
                detail="",
            )
        response = RedirectResponse(path, 303)
        _set_cookie(request, response, COOKIE, secret, seconds=round(SESSION_SECONDS), path=ROOT)
        return response

    async def _log_out(self, request: Request) -> Response:
        form, secret = await self._read(request), request.cookies.get(COOKIE, "")
        login = await self._logins.find(secret) if secret else None
        token = form["csrf"].encode() if form is not None else b""
        if login is not None and compare_digest(token, csrf_token(secret).encode()):
            await self._logins.end(login.session.id)
        response = RedirectResponse(LOGIN_PATH, 303)
        response.delete_cookie(COOKIE, path=ROOT)
        return response

    async def _read(self, request: Request, bytes_max: int = _BODY_BYTES_MAX) -> Form | None:
        """Return the posted form; None if it is not one of ours."""
        if not is_same_origin(request):
            return None
        try:
            with IncomingBody(request, self._memory) as incoming:
                body = await incoming.read(bytes_max)
            return None if body is None else Form.parse(body)
        except (InvalidForm, RequestRefused):
            return None

    def _page(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        context = SimpleNamespace(t=self._translator(request), request=request)
        has_token, bot_link = self._logins.has_token, self._bot_link()
        values = {"seconds": 0.0, "typed": [], "has_token": has_token, "bot_link": bot_link, **values}
        return HTMLResponse(render(template, context=context, **values), status)


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:  # such as an address with an open bracket
        return ""


def _next(path: str) -> str:
    """Return where to go after the login: a page of the dashboard, never another host."""
    try:
        parts = urlsplit(path[:_NEXT_LENGTH_MAX])
    except ValueError:
        return ROOT
    inside = parts.path == ROOT or parts.path.startswith(f"{ROOT}/")
    if not inside or parts.scheme or parts.netloc or "\\" in path or parts.path.startswith(LOGIN_PATH):
        return ROOT
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _set_cookie(request: Request, response: Response, name: str, value: str, *, seconds: int, path: str) -> None:
    """Set a cookie that scripts and the pages of other sites cannot read or send."""
    response.set_cookie(
        name, value, max_age=seconds, path=path, secure=not _is_loopback(request), httponly=True, samesite="lax"
    )


def _browser(request: Request) -> Browser:
    """Describe the browser, for the list of sessions and for the limits of attempts."""
    return Browser(
        remote=_remote(request)[:_REMOTE_LENGTH_MAX],
        agent=request.headers.get("User-Agent", ""),
        device=request.cookies.get(DEVICE_COOKIE, ""),
    )


def _remote(request: Request) -> str:
    """Return the client's address: what the nearest proxy saw, if the connection comes from a proxy.

    A connection from this machine or a private network counts as a proxy's: a client on the internet could write any
    address into the header.
    """
    direct = request.client.host if request.client else ""
    forwarded = ",".join(request.headers.getlist("X-Forwarded-For")).rpartition(",")[2].strip()
    try:
        return direct if ip_address(direct).is_global else forwarded or direct
    except ValueError:  # such as the name of a socket
        return forwarded or direct


def _is_loopback(request: Request) -> bool:
    try:
        host = urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
    except ValueError:  # no host at all
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
