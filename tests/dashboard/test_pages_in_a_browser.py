"""Every page in a real browser: hostile texts, phone and desktop, light and dark, both languages, no other host."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.dashboard.browser_pages import LOOKS, addresses, faults_of, open_context, watched_page
from tests.dashboard.hostile import Hostile, add_hostile_rows
from tests.dashboard.world import DashboardWorld, running_dashboard
from tests.databases import new_sqlite

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def hostile(tmp_path: Path) -> AsyncIterator[tuple[DashboardWorld, Hostile]]:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}") as dashboard:
        yield dashboard, await add_hostile_rows(dashboard)


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


async def test_the_login_page_can_be_used_with_a_keyboard_and_a_screen_reader(
    browsed_dashboard: DashboardWorld, browser: Browser
) -> None:
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
