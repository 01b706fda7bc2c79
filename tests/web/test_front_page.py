"""The page at `/`: a few words in a browser, a refusal for programs, and nothing about the installation."""

import json

import pytest
from starlette.types import ASGIApp

from genlock.i18n.translator import package_texts
from genlock.web.front_page import FrontPage
from genlock.web.routes import make_web
from tests.web.asgi import request

BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"


def web(*, is_public: bool) -> ASGIApp:
    return make_web([], FrontPage(texts=package_texts(), is_public=is_public).route())


async def get(app: ASGIApp, **headers: str) -> tuple[int, str]:
    status, body = await request(app, "/", method="GET", headers={"Accept": BROWSER, **headers})
    return status, body.decode()


async def test_a_visitor_reads_where_they_are_in_their_language() -> None:
    for language, words in {"en-GB,en;q=0.5": "Open the chat with the bot", "ru": "откройте чат"}.items():
        status, page = await get(web(is_public=True), **{"Accept-Language": language})
        assert (status, words in page) == (404, True)


async def test_only_on_the_operator_s_own_machine_does_the_page_lead_further() -> None:
    public, private = [(await get(web(is_public=is_public)))[1] for is_public in (True, False)]
    assert 'href="/dashboard"' in private
    for word in ("href", "genlock", "dashboard", "/v1"):
        assert word not in public


@pytest.mark.parametrize("accept", ["*/*", "application/json", ""])
async def test_a_program_and_a_misdirected_health_check_are_refused(accept: str) -> None:
    """A load balancer must not take an instance for ready because of this page."""
    status, body = await get(web(is_public=False), Accept=accept)
    assert (status, json.loads(body)["status"]) == (404, 404)
    assert (await request(web(is_public=False), "/", method="HEAD", headers={"Accept": BROWSER}))[0] == 404
    assert (await request(web(is_public=False), "/", headers={"Accept": BROWSER}))[0] == 405
