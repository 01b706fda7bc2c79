"""Pages that say what went wrong and what to do next."""

from collections.abc import Sequence
from types import SimpleNamespace

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from genlock.dashboard.page import PageContext
from genlock.dashboard.rendering import render
from genlock.i18n.translator import Translator


class ErrorPages:
    def page(self, context: PageContext, name: str, status: int, **values: object) -> Response:
        """Answer an operator who is logged in, with the navigation."""
        return context.render("error.html", status, name=name, typed=(), values=values)

    def other_session(self, context: PageContext, typed: Sequence[str]) -> Response:
        """Refuse a form of another session, and show what the operator wrote into it."""
        return context.render("error.html", 403, name="csrf", typed=typed, values={})

    def plain(self, request: Request, t: Translator, name: str, status: int) -> Response:
        """Answer without a session: the store may not answer."""
        context = SimpleNamespace(t=t, request=request)
        return HTMLResponse(render("plain_error.html", context=context, name=name), status)
