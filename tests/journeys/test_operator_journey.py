"""The sandbox before buying, in a real browser: the operator's way to the dashboard, and edits of one's own picture."""

import asyncio
import io
from urllib.request import urlopen

import pytest
from PIL import Image, ImageStat
from playwright.async_api import Browser, Locator, Page, ViewportSize, expect

from tests.journeys.chat_pages import DESKTOP, PHONE
from tests.journeys.sandbox_process import Sandbox
from tests.sandbox.page.browser_tabs import bubbles, key, new_profile, say

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]


async def open_page(browser: Browser, sandbox: Sandbox, locale: str, size: ViewportSize) -> Page:
    profile = await new_profile(
        browser, locale=locale, viewport=size, permissions=["clipboard-read", "clipboard-write"]
    )
    page = await profile.new_page()
    await page.goto(sandbox.url)
    return page


def results(page: Page) -> Locator:
    """Pictures with buttons; that of the first screen has none."""
    return page.locator("article.row", has=page.locator(".media img")).filter(has=page.locator(".key"))


async def download(picture: Locator, sandbox: Sandbox) -> Image.Image:
    source = await picture.locator(".media img").first.get_attribute("src")
    with await asyncio.to_thread(urlopen, f"http://127.0.0.1:{sandbox.port}{source}", timeout=10) as response:
        return Image.open(io.BytesIO(response.read())).convert("RGB")


def likeness(one: Image.Image, other: Image.Image) -> float:
    """Correlate the brightness of the upper halves, where no label is: 1 for the same scene in other colours."""
    halves = [image.convert("L").resize((32, 32), Image.Resampling.BOX).crop((0, 0, 32, 16)) for image in (one, other)]
    first, second = ([value - ImageStat.Stat(half).mean[0] for value in half.tobytes()] for half in halves)
    together = sum(a * b for a, b in zip(first, second, strict=True))
    return float(together / (sum(a * a for a in first) * sum(b * b for b in second)) ** 0.5)


async def test_the_operator_opens_the_overview_and_the_dashboard(shared_sandbox: Sandbox, browser: Browser) -> None:
    page = await open_page(browser, shared_sandbox, "en-GB", DESKTOP)
    await page.locator(".user-entry", has_text="operator").click()
    await page.get_by_role("button", name="Start", exact=True).click()
    await expect(page.locator(".menu-button")).to_be_visible()
    await say(page, "/admin")
    await key(page, "Dashboard").click()
    # Telegram makes no link of a local address
    await page.locator("article code", has_text="/dashboard/login/").click()
    await expect(page.locator(".toast")).to_have_text("Copied")
    dashboard = await page.context.new_page()
    await dashboard.goto(await page.evaluate("navigator.clipboard.readText()"))
    if await dashboard.locator("nav").count() == 0:  # the one-time link asks before it logs in
        await dashboard.locator("form button").click()
    await expect(dashboard.get_by_role("heading", name="Orders", exact=True)).to_be_visible()
    async with page.context.expect_page() as opened:
        await page.get_by_role("link", name="The operator's dashboard").click()
    await expect((await opened.value).get_by_role("heading", name="Orders", exact=True)).to_be_visible()
    await page.context.close()


async def test_an_ordinary_user_of_the_sandbox_is_no_operator(shared_sandbox: Sandbox, browser: Browser) -> None:
    page = await open_page(browser, shared_sandbox, "en-GB", DESKTOP)
    await expect(page.locator(".user-entry[aria-current=true]")).to_have_text("AAnn")
    await page.get_by_role("button", name="Start", exact=True).click()
    await expect(page.locator(".key").first).to_be_visible()
    await say(page, "/admin")
    await expect(page.locator("article.mine")).to_have_count(2)
    await expect(page.locator("article.row:not(.mine)").last.locator("text=last 24 hours")).to_have_count(0)
    await page.context.close()


async def test_a_reply_edits_the_picture_and_the_result_shows_it_on_a_russian_phone(
    shared_sandbox: Sandbox, browser: Browser
) -> None:
    page = await open_page(browser, shared_sandbox, "ru-RU", PHONE)
    await expect(page.locator(".user-entry[aria-current=true]")).to_contain_text("Аня")
    await page.locator(".entry").first.click()
    await page.get_by_role("button", name="Начать", exact=True).click()
    await expect(page.locator(".key").first).to_be_visible()
    await say(page, "/gen z-image cat astronaut")
    await expect(results(page)).to_have_count(1)
    first = await download(results(page).first, shared_sandbox)
    await results(page).first.locator(".media img").click(button="right")
    await page.get_by_role("menuitem", name="Ответить").click()
    await expect(page.locator(".answering .thumb")).to_be_visible()
    await say(page, "пусть будет зима")
    await expect(bubbles(page, "Nano Banana").locator(".key").first).to_be_visible()
    await key(page, "✅").click()
    await expect(results(page)).to_have_count(2)
    edited = await download(results(page).last, shared_sandbox)
    assert edited.size == first.size
    assert edited.tobytes() != first.tobytes()
    assert likeness(first, edited) > 0.6
    await expect(page.locator(".notice")).to_have_count(0)
    await page.context.close()
