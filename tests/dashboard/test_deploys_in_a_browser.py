"""Pages left open over a deploy go on working: live parts, parts that ask again, and forms."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Response, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from genlock.dashboard import dashboard as dashboard_module
from genlock.dashboard import rendering
from genlock.sandbox.processes import find_free_port
from genlock.web.server import serving
from tests.dashboard.browser_pages import Look, open_context
from tests.dashboard.users import add_user
from tests.dashboard.world import running_dashboard
from tests.databases import new_sqlite
from tests.stores.builders import account_with, running

LOOK: Look = (1200, "light", "en")
WAIT_MS = 30_000


@pytest.fixture
def deploy(monkeypatch: pytest.MonkeyPatch) -> Iterator["Deploy"]:
    yield Deploy(monkeypatch)
    monkeypatch.undo()
    _clear_caches()


class Deploy:
    """Makes the pages those of another version: a changed static file, and another version number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def next_version(self) -> None:
        files = dict(rendering.static_files())
        style, kind = files["dashboard.css"]
        files["dashboard.css"] = (style + b"\n/* the next version */", kind)
        for module in (rendering, dashboard_module):
            self._monkeypatch.setattr(module, "static_files", lambda: files)
        self._monkeypatch.setattr(rendering, "__version__", "9.9.9")
        _clear_caches()


def _clear_caches() -> None:
    rendering.release.cache_clear()
    rendering.static_path.cache_clear()


@asynccontextmanager
async def proxy_without_service(port: int) -> AsyncIterator[None]:
    """Answer as a proxy does while the service behind it restarts."""

    async def unavailable(_: Request) -> PlainTextResponse:
        return PlainTextResponse("Bad Gateway", 502)

    async with serving(Starlette(routes=[Route("/{path:path}", unavailable)]), "127.0.0.1", port):
        yield


async def has_lost_the_service(page: Page, path: str) -> None:
    def failed(response: Response) -> bool:
        return path in response.url and response.status == 502

    await page.wait_for_event("response", failed, timeout=WAIT_MS)


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.timeout(120)
async def test_open_pages_go_on_after_a_deploy(tmp_path: Path, deploy: Deploy, browser: Browser) -> None:
    url, port = f"sqlite:///{new_sqlite(tmp_path)}", find_free_port()
    async with running_dashboard(url, port=port) as before:
        job = await running(before.store, account_id=await account_with(before.store, 5000))
        ann = await add_user(before)
        context = await open_context(browser, before, LOOK)
        overview, order, user = [await context.new_page() for _ in range(3)]
        await overview.goto(f"{before.url}/dashboard")
        await order.goto(f"{before.url}/dashboard/jobs/{job.id}")
        await user.goto(f"{before.url}/dashboard/users/{ann}")
        await expect(overview.locator("[data-live]:not(.stale)")).to_be_visible()
        await user.get_by_text("Credit or debit", exact=True).click()
        await user.locator("form[action$='/credits'] [name=amount]").fill("7")
        await user.locator("form[action$='/credits'] [name=reason]").fill("a gift")
    async with proxy_without_service(port):
        await has_lost_the_service(overview, "/dashboard/live")
        await has_lost_the_service(order, f"/dashboard/jobs/{job.id}/live")
        await expect(order.locator("#no-answer")).to_be_visible()
        await overview.evaluate("document.querySelector('[data-live]').textContent = 'of before'")
    deploy.next_version()
    async with running_dashboard(url, port=port) as after:
        await expect(overview.locator("[data-live]:not(.stale)")).to_be_visible()
        await expect(overview.locator("[data-live]")).not_to_contain_text("of before")
        await expect(overview.locator("#new-release")).to_be_visible()
        await expect(order.locator("#no-answer")).to_be_hidden()
        await user.locator("form[action$='/credits'] button").first.click()
        await expect(user.get_by_role("status").first).to_contain_text("Credited 7\u00a0credits")
        assert (await after.store.wallet(ann)).available == 7_000
        await overview.get_by_role("link", name="Reload").click()
        await expect(overview.locator("[data-live]:not(.stale)")).to_be_visible()
        await expect(overview.locator("#new-release")).to_be_hidden()
    await context.close()
