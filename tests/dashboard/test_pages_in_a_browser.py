"""Every page in a real browser: hostile texts, phone and desktop, light and dark, both languages, no other host."""

import re
from collections.abc import AsyncIterator
from itertools import cycle
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Page, Request

from genlock.dashboard.login import COOKIE
from genlock.dashboard.page import PageRoute
from tests.dashboard.hostile import Hostile, add_hostile_rows
from tests.dashboard.world import DashboardWorld, running_dashboard
from tests.databases import new_sqlite

#: width, colours, language
Look = tuple[int, Literal["dark", "light"], str]
LOOKS: tuple[Look, ...] = ((360, "dark", "ru"), (1280, "light", "en"))
SERIOUS = ("serious", "critical")
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def hostile(tmp_path: Path) -> AsyncIterator[tuple[DashboardWorld, Hostile]]:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}") as dashboard:
        yield dashboard, await add_hostile_rows(dashboard)


def addresses(routes: list[PageRoute], rows: Hostile, *, every_row: bool) -> list[tuple[str, str]]:
    """Return the address and the route of every page that is a whole page: with the numbers of hostile rows in it.

    Without `every_row`, each route has the next of the rows.
    """
    turns = cycle(range(len(rows.jobs)))
    found = []
    for route in routes:
        if route.method != "GET" or route.is_data:
            continue
        path = re.sub(r"\{model\w*(:\w+)?\}", "z-image", route.path)
        numbers = rows.jobs if "{job_id:int}" in path else rows.accounts
        if not every_row and "_id:int}" in path:
            numbers = (numbers[next(turns)],)
        paths = dict.fromkeys(re.sub(r"\{(job|account)_id:int\}", str(number), path) for number in numbers)
        found += [(one, route.path) for one in paths]
    return [(path, route) for path, route in found if "{" not in path]


async def open_context(browser: Browser, dashboard: DashboardWorld, look: Look) -> BrowserContext:
    width, colours, language = look
    context = await browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if colours == "dark" else "light",
        locale=language,
        timezone_id="Asia/Tokyo",
    )
    client = await dashboard.log_in()
    await context.add_cookies([{"name": COOKIE, "value": client.cookies[COOKIE], "url": f"{dashboard.url}/dashboard"}])
    return context


async def watched_page(context: BrowserContext, dashboard: DashboardWorld, problems: list[str]) -> Page:
    """Return a page that records errors of scripts, scripts that ran from the data, and requests to other hosts."""
    page = await context.new_page()

    def check_request(request: Request) -> None:
        if not request.url.startswith(dashboard.url):
            problems.append(f"{page.url}: asks another host: {request.url}")

    page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))
    page.on("dialog", lambda dialog: problems.append(f"{page.url}: a script of the data ran: {dialog.message}"))
    page.on("request", check_request)
    return page


async def faults_of(page: Page, width: int, *, examine: bool = True) -> list[str]:
    """Return what is wrong with the page that is open; with `examine`, also for keyboards and screen readers."""
    found = []
    if (wide := await page.evaluate("document.documentElement.scrollWidth")) > width:
        found.append(f"scrolls sideways: {wide} px")
    if await page.locator("h1, .empty h2").count() == 0:
        found.append("has no heading")
    if not examine:
        return found
    results = await Axe().run(page)
    found += [
        f"axe: {violation['id']}: {violation['nodes'][0]['html'][:160]}"
        for violation in results.response["violations"]
        if violation["impact"] in SERIOUS
    ]
    return found


@pytest.mark.timeout(300)  # some eighty pages
async def test_every_page_stands_hostile_texts_in_every_look(
    hostile: tuple[DashboardWorld, Hostile], browser: Browser
) -> None:
    """A narrow phone shows every row; keyboards and screen readers are tried on each page once, in either look."""
    dashboard, rows = hostile
    problems: list[str] = []
    for number, look in enumerate(LOOKS):
        context = await open_context(browser, dashboard, look)
        page = await watched_page(context, dashboard, problems)
        pages = addresses(dashboard.routes, rows, every_row=look is LOOKS[0])
        unexamined = set(list(dict.fromkeys(route for _, route in pages))[number :: len(LOOKS)])
        for path, route in pages:
            response = await page.goto(f"{dashboard.url}/dashboard{path}")
            if response is None or response.status >= 500:
                problems.append(f"{path}: {response and response.status}")
            faults = await faults_of(page, look[0], examine=route in unexamined)
            unexamined.discard(route)
            problems += [f"{path} {look}: {fault}" for fault in faults]
        await context.close()
    assert problems == []


async def test_the_login_page_can_be_used_by_everybody(browsed_dashboard: DashboardWorld, browser: Browser) -> None:
    dashboard, problems = browsed_dashboard, list[str]()
    for width, colours, language in LOOKS:
        page = await browser.new_page(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if colours == "dark" else "light",
            locale=language,
        )
        await page.goto(f"{dashboard.url}/dashboard/login")
        problems += await faults_of(page, width)
        await page.close()
    assert problems == []


async def test_a_link_logs_in_with_one_click(browsed_dashboard: DashboardWorld, browser: Browser) -> None:
    dashboard = browsed_dashboard
    path = await dashboard.logins.make_link("7")
    page = await browser.new_page()
    await page.goto(f"{dashboard.url}{path}")
    await page.wait_for_url(f"{dashboard.url}/dashboard")
    assert await page.locator("h1").inner_text()
    await page.close()
