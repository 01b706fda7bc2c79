"""Serves the chat page of the sandbox.

`/page/*` are its static files, `/sim/page` the complete state that it shows, and `/sim/kie` forwards to the control
API of the Kie.ai simulator. `/dashboard` logs in to the operator's dashboard of the service.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web

from genlock.sandbox.kie.faults import Fault as KieFault
from genlock.sandbox.telegram.chats import Chat, Message
from genlock.sandbox.telegram.control import Control
from genlock.sandbox.telegram.faults import Fault

if TYPE_CHECKING:
    from genlock.sandbox.telegram.simulator import DashboardLogin, TelegramSimulator

FOLDER = Path(__file__).parent / "page"
#: no external resources and no inline scripts
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
JOURNAL_KINDS = {"call", "update", "log"}
JOURNAL_MAX = 400
KIE_SECONDS = 5
#: the service loads the dashboard with its first request
DASHBOARD_SECONDS = 30


def add_page(app: web.Application, telegram: "TelegramSimulator", methods: list[str]) -> None:
    page = Page(telegram, methods)
    app.router.add_get("/", page.index)
    app.router.add_get("/page/{name:[a-z_]+[.][a-z]+}", page.file)
    app.router.add_get("/sim/page", page.everything)
    app.router.add_get("/dashboard", page.dashboard)
    app.router.add_get("/sim/kie", page.kie)
    app.router.add_post("/sim/kie", page.kie)


class Page:
    def __init__(self, telegram: "TelegramSimulator", methods: list[str]) -> None:
        self._telegram = telegram
        self._control = Control(telegram)
        self._methods = methods

    async def index(self, _: web.Request) -> web.StreamResponse:
        return _serve_file("index.html")

    async def file(self, request: web.Request) -> web.StreamResponse:
        return _serve_file(request.match_info["name"])

    async def everything(self, _: web.Request) -> web.Response:
        """Return the complete state of the page, as of the event `last`."""
        telegram, state = self._telegram, self._telegram.state
        journal = [event for event in state.events.since(0) if event.kind in JOURNAL_KINDS]
        return web.json_response(
            {
                "world": state.events.id,
                "last": state.events.last,
                "bot": state.bot,
                "profile": state.profile,
                "people": [self._control.user_json(user) for user in state.users.values()],
                "chats": [self._chat(chat) for chat in state.chats.values()],
                "sounded": [
                    [notification.user_id, notification.chat, notification.message]
                    for notification in state.notifications
                ],
                "faults": telegram.faults.as_json(),
                "kinds_of_faults": list(Fault),
                "methods": self._methods,
                "kie": telegram.kie_url is not None,
                "providers": bool(telegram.providers),
                "dashboard": telegram.dashboard is not None,
                "journal": [event.as_json() for event in journal[-JOURNAL_MAX:]],
            }
        )

    def _chat(self, chat: Chat) -> dict[str, Any]:
        messages = [self._message(message) for message in chat.messages.values()]
        return self._control.chat_json(chat) | {"messages": messages}

    def _message(self, message: Message) -> dict[str, Any]:
        return self._telegram.state.view(message) | {"hidden_from": sorted(message.hidden_from)}

    async def dashboard(self, _: web.Request) -> web.Response:
        """Log in with the sandbox's token and go there. Browsers send a cookie to every port of a host."""
        login = self._telegram.dashboard
        if login is None:
            raise web.HTTPNotFound(text="this sandbox has no dashboard")
        try:
            cookies = await _log_in(login)
        except (aiohttp.ClientError, TimeoutError) as error:
            return web.Response(text=f"the service does not answer, reload the page: {error!r}", status=502)
        answer = web.Response(status=302, headers={"Location": login.url})
        answer.headers.extend([("Set-Cookie", cookie) for cookie in cookies])
        return answer

    async def kie(self, request: web.Request) -> web.Response:
        """Forward to the control API of the Kie.ai simulator, which has another origin than the page."""
        if self._telegram.kie_url is None:
            return web.json_response({"error": "no Kie.ai simulator is configured"}, status=404)
        body = await request.json() if request.method == "POST" else None
        timeout = aiohttp.ClientTimeout(total=KIE_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.request(request.method, f"{self._telegram.kie_url}/_control", json=body) as response,
            ):
                body = await response.json()
        except (aiohttp.ClientError, TimeoutError) as error:
            return web.json_response({"error": f"the Kie.ai simulator does not answer: {error!r}"}, status=502)
        return web.json_response(body | {"kinds_of_faults": list(KieFault)}, status=response.status)


async def _log_in(login: "DashboardLogin") -> list[str]:
    """Return the cookies of a new session. Raises ClientError and TimeoutError.

    The service loads the dashboard now. On a busy machine the load balancer may take that for a crash and end the
    connection: then the request is repeated.
    """
    timeout = aiohttp.ClientTimeout(total=DASHBOARD_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for is_last in (False, False, True):
            try:
                async with session.post(
                    f"{login.url}/login", data={"token": login.token}, allow_redirects=False
                ) as response:
                    return response.headers.getall("Set-Cookie", [])
            except aiohttp.ServerDisconnectedError:
                if is_last:
                    raise
    raise AssertionError("the last attempt returns or raises")


def _serve_file(name: str) -> web.StreamResponse:
    path = FOLDER / name
    if not path.is_file():
        raise web.HTTPNotFound
    return web.FileResponse(path, headers=HEADERS | {"Content-Type": f"{TYPES[path.suffix]}; charset=utf-8"})
