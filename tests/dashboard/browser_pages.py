"""Pages of the dashboard in a real browser: how they are opened, and what is wrong with them."""

import re
from itertools import cycle
from typing import Literal

from playwright.async_api import Browser, BrowserContext, Page, Request

from genlock.dashboard.login import COOKIE
from genlock.dashboard.page import PageRoute
from tests.axe import serious_violations_of
from tests.dashboard.hostile import Hostile
from tests.dashboard.world import DashboardWorld

#: width, colours, language
Look = tuple[int, Literal["dark", "light"], str]
LOOKS: tuple[Look, ...] = ((360, "dark", "ru"), (1280, "light", "en"))
#: tablets, windows beside another one, and a laptop, in either language
MORE_WIDTHS = (600, 768, 1024, 1180, 1280)
#: tables and cards that are wider than the room they have
WIDER_THAN_ITS_ROOM = """[...document.querySelectorAll(".card, .table")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => `${one.querySelector("table")?.className ?? one.className}: ${one.scrollWidth} px`)"""
#: what a page shows instead of a text that no language has
TEXT_KEY = re.compile(r"(?<![\w/])dashboard\.\w+\.[\w.]+")


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
            numbers = (numbers[next(turns) % len(numbers)],)
        paths = dict.fromkeys(re.sub(r"\{(job|account)_id:int\}", str(number), path) for number in numbers)
        found += [(example_path, route.path) for example_path in paths]
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
    for screen_width in (*MORE_WIDTHS, width):  # the last one stays
        await page.set_viewport_size({"width": screen_width, "height": 900})
        if (wide := await page.evaluate("document.documentElement.scrollWidth")) > screen_width:
            found.append(f"{screen_width} px: scrolls sideways: {wide} px")
        found += [f"{screen_width} px: has no room for {wider}" for wider in await page.evaluate(WIDER_THAN_ITS_ROOM)]
    if await page.locator("h1, .empty h2").count() == 0:
        found.append("has no heading")
    found += [f"shows the key of a text: {key}" for key in TEXT_KEY.findall(await page.content())]
    if not examine:
        return found
    return found + [
        f"axe: {violation['id']}: {violation['nodes'][0]['html'][:160]}"
        for violation in await serious_violations_of(page)
    ]
