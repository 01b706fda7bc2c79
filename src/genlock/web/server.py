"""The web application: every door of an instance under one roof."""

from collections.abc import Iterable

from starlette.applications import Starlette

from genlock.web.doors import CallbackDoor


def make_web(doors: Iterable[CallbackDoor]) -> Starlette:
    web = Starlette(routes=[route for door in doors for route in door.routes()])
    web.router.redirect_slashes = False  # a callback that is sent elsewhere may not come again
    return web
