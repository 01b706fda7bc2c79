"""Take the docs' pictures from the running sandbox: `make screenshots` writes them to docs/images."""

import asyncio
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Page, ViewportSize, expect

from tests.browser import chromium
from tests.journeys.test_sandbox import Sandbox
from tests.sandbox.page.browser_tabs import bubbles, key, say

IMAGES = Path(__file__).parent / "images"
PATIENCE_MS = 40_000
SIZE = ViewportSize(width=1280, height=800)
#: pages of the dashboard by the name of their picture; the order and its user have the number 1
DASHBOARD = {
    "jobs": "/jobs",
    "job": "/jobs/1",
    "attention": "/attention",
    "users": "/users",
    "user": "/users/1",
    "money": "/money",
    "models": "/models",
    "campaigns": "/campaigns",
    "system": "/system",
    "audit": "/audit",
    "overview": "",  # last: its figures are some seconds old
}
FIGURES_SECONDS, RELOAD_SECONDS = 60, 3


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


async def wait_for_figures(page: Page) -> None:
    """Reload the overview until it counts the order as delivered."""
    for _ in range(0, FIGURES_SECONDS, RELOAD_SECONDS):
        if await page.get_by_text("100%").or_(page.get_by_text("100 %")).count():
            return
        await asyncio.sleep(RELOAD_SECONDS)
        await page.reload()


async def photograph_dashboard(page: Page, url: str, images: Path) -> None:
    """Log in as the sandbox prints it, and take every page."""
    await page.goto(url)
    for name, path in DASHBOARD.items():
        await page.goto(page.url.partition("/dashboard")[0] + f"/dashboard{path}")
        await expect(page.locator("h1")).to_be_visible()
        if name == "overview":
            await wait_for_figures(page)
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


async def take(folder: Path, images: Path) -> None:
    sandbox = Sandbox(folder, "--fresh", "--speed", "30")
    try:
        await asyncio.to_thread(sandbox.ready)
        user = sandbox.post("/sim/people", {"name": "Mia", "language": "en", "started": False})["id"]
        expect.set_options(timeout=PATIENCE_MS)
        async with chromium() as browser:
            page = await browser.new_page(locale="en-GB", viewport=SIZE)
            page.set_default_timeout(PATIENCE_MS)
            await page.goto(f"http://127.0.0.1:{sandbox.port}/#{user}/{user}")
            await order(page)
            await page.screenshot(path=images / "chat.png")
            await page.get_by_role("button", name="Show faults and calls").click()
            await page.screenshot(path=images / "panel.png")
            await photograph_try_page(page, f"http://127.0.0.1:{sandbox.port}/try", images)
            await photograph_dashboard(page, f"http://127.0.0.1:{sandbox.port}/dashboard", images)
    finally:
        sandbox.process.terminate()
        sandbox.process.wait()


def main() -> None:
    images = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(take(Path(folder), images))


if __name__ == "__main__":
    main()
