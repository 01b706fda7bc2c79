"""Chat pages of the sandbox that all journeys in a browser share: each journey is that of a new user."""

from playwright.async_api import Browser, Page, ViewportSize

from tests.journeys.sandbox_process import Sandbox
from tests.sandbox.page.browser_tabs import new_profile

PHONE, DESKTOP = ViewportSize(width=390, height=844), ViewportSize(width=1200, height=900)


async def open_as_new_user(
    browser: Browser, sandbox: Sandbox, language: str, size: ViewportSize = DESKTOP, name: str = "Аня"
) -> Page:
    """Open the chat of a user who has not pressed Start. Closing the page's context ends it."""
    user = sandbox.post("/sim/people", {"name": name, "language": language, "started": False})["id"]
    page = await (await new_profile(browser, viewport=size)).new_page()
    await page.goto(f"{sandbox.url}#{user}/{user}")
    return page
