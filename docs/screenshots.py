"""Take the docs' pictures from the running sandbox: `make screenshots` writes them to docs/images.

`python -m docs.screenshots --looks FOLDER` also takes every page of the dashboard, whole and in all eight looks: phone
and desktop, light and dark, English and Russian; and sheets of them to look through.
"""

import asyncio
import re
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

from PIL import Image
from playwright.async_api import Browser, Error, Page, ViewportSize, expect

from docs.sandbox_history import ORDERS, USERS, write_history
from tests.browser import chromium
from tests.journeys.chat_pages import open_as_new_user
from tests.journeys.sandbox_process import Sandbox
from tests.sandbox.page.browser_tabs import bubbles, key, say

IMAGES = Path(__file__).parent / "images"
SIZE = ViewportSize(width=1280, height=800)
#: the order that is made in the chat, and a user with many orders
ORDER, USER = ORDERS + 1, 12
#: pages of the dashboard by the name of their picture
DASHBOARD = {
    "jobs": "/jobs",
    "job": f"/jobs/{ORDER}",
    "attention": "/attention",
    "users": "/users",
    "user": f"/users/{USER}",
    "money": "/money",
    "models": "/models",
    "campaigns": "/campaigns",
    "system": "/system",
    "audit": "/audit",
    "overview": "?period=30d",  # last: its figures are some seconds old
}
#: pages that the docs do not show
MORE_PAGES = {
    "overview-today": "",
    "overview-empty": "?from=2020-01-01&to=2020-01-05",
    "overview-wrong": "?period=fortnight",
    "jobs-filtered": "/jobs?state=failed&model=z-image",
    "jobs-none": "/jobs?text=nothing+like+this&sate=failed",
    "jobs-bulk": "/jobs/bulk",
    "job-api": f"/jobs/{ORDER + 1}",
    "job-undeliverable": "/jobs/171",
    "job-missing": "/jobs/999999",
    "users-none": "/users?q=no-such-user",
    "user-ledger": f"/users/{USER}/ledger",
    "user-payments": f"/users/{USER}/payments",
    "user-gifts": f"/users/{USER}/gifts",
    "user-api": f"/users/{USERS + 2}/webhooks",
    "money-ledger": "/money/ledger",
    "money-payments": "/money/payments",
    "money-reconciliation": "/money/reconciliation",
    "money-check": "/money/check",
    "model": "/models/veo3_fast",
    "models-changes": "/models/changes",
    "models-provider": "/models/provider",
    "broadcasts": "/campaigns/broadcasts",
    "rules": "/campaigns/rules",
    "settings": "/system/settings",
    "operators": "/system/operators",
    "api-keys": "/system/api-keys",
    "doctor": "/system/doctor",
    "log": "/system/log",
    "audit-none": "/audit?actor=no-such-operator",
}
#: with the charts
OVERVIEW_SIZE = ViewportSize(width=1280, height=1500)
PHONE = ViewportSize(width=390, height=844)
LOOKS = tuple(product((PHONE, SIZE), ("light", "dark"), ("en-GB", "ru-RU")))
#: pictures on one sheet
SHEET = 4
FIGURES_SECONDS, RELOAD_SECONDS = 90, 3


async def order(page: Page) -> None:
    """Order one picture with buttons, as the README describes it, and wait for the notice."""
    await page.get_by_role("button", name="Start", exact=True).click()
    for name in ("Draw", "Z-Image"):
        await key(page, name).click()
    await expect(key(page, "💡")).to_be_visible()
    await say(page, "cat astronaut")
    for name in ("✅ Generate",):
        await key(page, name).click()
    await expect(bubbles(page, "Generation complete")).to_have_count(1)
    await expect(page.locator("article.row img")).to_have_count(2)  # the first screen has a picture, too
    await expect(page.locator(".toast")).to_have_count(0)


async def wait_for_figures(page: Page) -> None:
    """Reload the overview until it counts every order and shows the balance at the provider."""
    for _ in range(0, FIGURES_SECONDS, RELOAD_SECONDS):
        unfinished = page.get_by_text(re.compile("still missing|No orders yet|not known yet"))
        if not await unfinished.count():
            return
        await asyncio.sleep(RELOAD_SECONDS)
        await page.reload()


async def log_in(page: Page, url: str) -> None:
    """Open the address that the sandbox prints; a busy machine may need another try."""
    for _ in range(0, FIGURES_SECONDS, RELOAD_SECONDS):
        with suppress(Error):
            await page.goto(url)
            return
        await asyncio.sleep(RELOAD_SECONDS)


async def photograph_dashboard(page: Page, url: str, images: Path) -> None:
    """Log in as the sandbox prints it, and take every page."""
    await log_in(page, url)
    for name, path in DASHBOARD.items():
        await page.goto(page.url.partition("/dashboard")[0] + f"/dashboard{path}")
        await expect(page.locator("h1")).to_be_visible()
        if name == "job":
            await expect(page.locator(".preview img")).to_have_js_property("complete", value=True)
        if name == "overview":
            await wait_for_figures(page)
            await page.set_viewport_size(OVERVIEW_SIZE)
        await page.screenshot(path=images / f"dashboard-{name}.png")


async def photograph_try_page(page: Page, url: str, images: Path) -> None:
    """Order a picture through the API, and fill in the form of another model beside its result."""
    await page.goto(url)
    for title, prompt in (("Z-Image", "cat astronaut"), ("Kling 2.1", "a ship in a storm, slow zoom")):
        await page.locator("#search").fill(title)
        await page.locator(".model").first.click()
        await page.locator("#form-slot textarea").first.fill(prompt)
        await expect(page.locator("#order")).to_be_enabled()
        if title == "Z-Image":
            await page.locator("#order").click()
            await expect(page.locator(".badge.succeeded")).to_have_count(1)
            await page.locator("#change").click()
    await expect(page.locator(".order img")).to_have_js_property("complete", value=True)
    await page.screenshot(path=images / "try.png")


async def photograph_looks(browser: Browser, url: str, images: Path) -> None:
    """Take every page of the dashboard in every look, and put some of them on each sheet."""
    for size, colours, language in LOOKS:
        context = await browser.new_context(
            viewport=size, color_scheme="dark" if colours == "dark" else "light", locale=language,
            timezone_id="Asia/Kolkata",
        )  # fmt: skip
        page = await context.new_page()
        await log_in(page, url)
        root = page.url.partition("/dashboard")[0] + "/dashboard"
        look = f"{'phone' if size == PHONE else 'desktop'}-{colours}-{language[:2]}"
        taken = []
        for name, path in (DASHBOARD | MORE_PAGES).items():
            await page.goto(f"{root}{path}")
            await page.wait_for_timeout(150)
            taken.append(images / f"{look}-{name}.png")
            await page.screenshot(path=taken[-1], full_page=True)
        await context.close()
        for number in range(0, len(taken), SHEET):
            put_on_sheet(taken[number : number + SHEET], images / f"sheet-{look}-{number // SHEET:02d}.png")


def put_on_sheet(pictures: Sequence[Path], sheet: Path) -> None:
    """Put pictures beside each other; of a long page, its beginning."""
    opened = [Image.open(path) for path in pictures]
    height = min(1500, max(picture.height for picture in opened))
    whole = Image.new("RGB", (sum(picture.width + 12 for picture in opened), height), "magenta")
    left = 0
    for picture in opened:
        whole.paste(picture.crop((0, 0, picture.width, min(picture.height, height))), (left, 0))
        left += picture.width + 12
    whole.save(sheet)


async def take(sandbox: Sandbox, browser: Browser, images: Path, *, looks: bool = False) -> None:
    """Take every picture, as a new user and as the operator of this sandbox, which has the history."""
    page = await open_as_new_user(browser, sandbox, "en", SIZE, name="Mia")
    await order(page)
    await page.screenshot(path=images / "chat.png")
    await page.get_by_role("button", name="Show faults and calls").click()
    await page.screenshot(path=images / "panel.png")
    await photograph_try_page(page, f"{sandbox.url}try", images)
    await photograph_dashboard(page, f"{sandbox.url}dashboard", images)
    await page.context.close()
    if looks:
        await photograph_looks(browser, f"{sandbox.url}dashboard", images)


async def take_from_new_sandbox(folder: Path, images: Path, *, looks: bool = False) -> None:
    state = folder / "state"
    await asyncio.to_thread(write_history, state / "genlock.db")
    sandbox = Sandbox(folder, "--state", str(state), "--speed", "30")
    try:
        await asyncio.to_thread(sandbox.ready)
        async with chromium() as browser:
            await take(sandbox, browser, images, looks=looks)
    finally:
        sandbox.process.terminate()
        sandbox.process.wait()


def main() -> None:
    looks = "--looks" in sys.argv
    images = next((Path(argument) for argument in sys.argv[1:] if argument != "--looks"), IMAGES)
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(take_from_new_sandbox(Path(folder), images, looks=looks))


if __name__ == "__main__":
    main()
