"""The page at `/`, for users and operators who open the address of the service in a browser."""

from dataclasses import dataclass
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from genlock.i18n.translator import Texts, Translator

#: A load balancer that checks this address by mistake must not take an instance for ready: that is what `/ready` tells.
_STATUS = 404
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Accept, Accept-Language",
}
_DETAIL = "there is nothing at this address"


@dataclass(frozen=True, kw_only=True)
class FrontPage:
    texts: Texts
    #: whether others than the operator can open it: then it names no other address
    is_public: bool

    def route(self) -> Route:
        return Route("/", self._show, methods=["GET"])

    async def _show(self, request: Request) -> Response:
        if "text/html" not in request.headers.get("Accept", ""):  # a program
            problem = {"title": "Not Found", "status": _STATUS, "detail": _DETAIL}
            return JSONResponse(problem, _STATUS, headers=_HEADERS, media_type="application/problem+json")
        wanted = request.headers.get("Accept-Language", "").split(",")[0].split(";")[0].strip()
        translator = self.texts.translator(self.texts.guess_language(wanted[:20]))
        return HTMLResponse(self._page(translator), _STATUS, headers=_HEADERS)

    def _page(self, t: Translator) -> str:
        title, text = escape(t.plain("front_page.title")), escape(t.plain("front_page.text"))
        body = f"<h1>{title}</h1><p>{text}</p>"
        if not self.is_public:
            links = {"/dashboard": "front_page.dashboard", "/health": "front_page.health"}
            items = (f'<li><a href="{path}">{escape(t.plain(text))}</a></li>' for path, text in links.items())
            body += f"<ul>{''.join(items)}</ul>"
        return (
            f'<!doctype html><html lang="{t.language}"><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width"><title>{title}</title>{body}</html>'
        )
