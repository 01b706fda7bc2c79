"""Pages that say what went wrong and what to do next."""

from collections.abc import Sequence
from types import SimpleNamespace

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from genlock.dashboard.page import PageContext
from genlock.dashboard.rendering import render
from genlock.i18n.translator import Translator


class ErrorPages:
    def page(
        self, context: PageContext, name: str, status: int, typed: Sequence[str] = (), **values: object
    ) -> Response:
        """Answer an operator who is logged in, with the navigation, and with what they wrote into a refused form."""
        return context.render("error.html", status, name=name, typed=typed, values=values)

    def plain(self, request: Request, t: Translator, name: str, status: int) -> Response:
        """Answer without a session: the store may not answer."""
        context = SimpleNamespace(t=t, request=request)
        return HTMLResponse(render("plain_error.html", context=context, name=name), status)
