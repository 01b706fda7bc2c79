"""The chat page after a lost connection, and its content security policy."""

import pytest
from playwright.async_api import Browser, Page, expect

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.sandbox.page.browser_tabs import Tabs, bubbles, say
from tests.sandbox.page.cut_connection import connection_to

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_after_a_lost_connection_the_page_draws_only_what_it_missed(
    tabs: Tabs, ann: SimulatedUser, telegram: TelegramSimulator
) -> None:
    tabs.provoked = "Failed to load resource"
    async with connection_to(telegram) as connection:
        tabs.url = connection.url
        page = await tabs.open(ann)
        await ann.start()
        await expect(bubbles(page, "Hello, Ann!")).to_be_visible()
        await page.evaluate("document.querySelector('article').mine = true")
        connection.cut()
        await expect(page.locator("#banner")).to_be_visible()
        await expect(page.locator("#banner")).to_contain_text("No connection")
        await ann.say("while away")
        await ann.sees("Received: while away")
        connection.up = True
        await expect(bubbles(page, "Received: while away")).to_be_visible()
        await expect(page.locator("#banner")).to_be_hidden()
        assert await page.evaluate("document.querySelector('article').mine"), "only what was missed is drawn"


async def test_a_message_that_could_not_be_sent_returns_to_the_field(
    tabs: Tabs, ann: SimulatedUser, telegram: TelegramSimulator
) -> None:
    tabs.provoked = "Failed to load resource"
    async with connection_to(telegram) as connection:
        tabs.url = connection.url
        page = await tabs.open(ann)
        await ann.start()
        await expect(bubbles(page, "Hello, Ann!")).to_be_visible()
        connection.cut()
        await say(page, "a long description")
        await expect(page.locator(".toast")).to_contain_text("no connection to the sandbox")
        await expect(page.locator(".write textarea")).to_have_value("a long description")
        connection.up = True
        await expect(page.locator("#banner")).to_be_hidden()
        await page.locator(".write textarea").press("Enter")
        await expect(bubbles(page, "Received: a long description")).to_be_visible()
        await expect(page.locator(".write textarea")).to_have_value("")


async def test_another_simulator_at_the_same_address_is_loaded_completely(browser: Browser, reused_page: Page) -> None:
    async with running_telegram() as first:
        ann = first.add_user("Ann")
        await ann.say("in the first world")
        port = int(first.url.rpartition(":")[2])
        tabs = Tabs(browser, first.page_url, reused_page)
        page = await tabs.open(ann)
        await expect(bubbles(page, "in the first world")).to_be_visible()
    await expect(page.locator("#banner")).to_be_visible()
    async with running_telegram(port=port) as second:
        other = second.add_user("Olga")
        for number in range(30):
            await other.say(f"in the second world {number}")
        await expect(bubbles(page, "in the second world 29")).to_be_visible()
        await expect(page.locator("#banner")).to_be_hidden()
        await expect(page.locator(".user-entry", has_text="Ann")).to_have_count(0)
        await tabs.close()


async def test_the_content_security_policy_blocks_inline_scripts(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann)
    tabs.provoked = "Content Security Policy"
    policy = await page.evaluate("fetch('/').then((answer) => answer.headers.get('content-security-policy'))")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    ran = await page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.head.append(script);
            return Boolean(window.ran);
        }"""
    )
    assert not ran
