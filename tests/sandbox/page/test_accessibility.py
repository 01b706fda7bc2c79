"""The chat page with the keyboard and with screen readers: names, roles, contrast, focus."""

import pytest
from playwright.async_api import Page, expect

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.axe import serious_violations_of
from tests.sandbox.page.browser_tabs import Tabs, bubbles
from tests.sandbox.sample_media import picture

pytestmark = pytest.mark.asyncio(loop_scope="session")
PHONE = {"width": 390, "height": 844}


async def faults_of(page: Page, where: str) -> list[str]:
    return [
        f"{where}: {violation['id']}: {node['html'][:160]}"
        for violation in await serious_violations_of(page)
        for node in violation["nodes"][:3]
    ]


async def test_every_layer_of_the_page_can_be_used_without_seeing_it(
    tabs: Tabs, ann: SimulatedUser, telegram: TelegramSimulator
) -> None:
    telegram.add_user("Olga", operator=True)
    photo = await ann.send_photo(picture(), caption="my house")
    await ann.say("/start", reply_to=photo)
    await ann.send_sticker("😀")
    await ann.send_recording(None)
    found: list[str] = []
    for scheme, size in (("light", None), ("dark", PHONE)):
        more = {"viewport": size} if size else {}
        page = await tabs.open(ann, at=await tabs.profile(color_scheme=scheme, bypass_csp=True, **more))
        await expect(page.locator("article .sticker")).to_be_visible()
        found += await faults_of(page, f"{scheme} chat")
        await page.get_by_role("button", name="Stickers").click()
        found += await faults_of(page, f"{scheme} stickers")
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Record a voice message").click()
        await expect(page.locator(".recording")).to_be_visible()
        found += await faults_of(page, f"{scheme} recording")
        await page.keyboard.press("Escape")
        await bubbles(page, "my house").first.locator(".text").click(button="right")
        found += await faults_of(page, f"{scheme} menu")
        await page.get_by_role("menuitem", name="Forward").click()
        found += await faults_of(page, f"{scheme} forward")
        await page.keyboard.press("Escape")
        if size:
            await page.get_by_role("button", name="Back to the chats").click()
        await page.get_by_role("button", name="Settings").click()
        found += await faults_of(page, f"{scheme} settings")
    assert found == []


async def test_a_message_is_answered_edited_and_forwarded_with_the_keyboard_alone(
    tabs: Tabs, ann: SimulatedUser
) -> None:
    page = await tabs.open(ann)
    await ann.say("a cat")
    await ann.sees("Received: a cat")
    await expect(bubbles(page, "Received: a cat")).to_be_visible()
    await page.locator("#thread").focus()
    for key in ("ArrowUp", "Enter"):
        await page.keyboard.press(key)
    menu = page.get_by_role("menu")
    await expect(menu).to_be_visible()
    await menu.get_by_role("menuitem", name="Reply").press("Enter")
    await page.keyboard.type("why?")
    await page.keyboard.press("Enter")
    await expect(page.locator("article.mine .quote")).to_contain_text("Received: a cat")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.type("?")
    await page.keyboard.press("Enter")
    await expect(page.locator("article.mine", has_text="why??")).to_contain_text("edited")
    await page.locator("article.mine", has_text="why??").focus()
    await page.keyboard.press("Enter")
    await menu.get_by_role("menuitem", name="Forward").press("Enter")
    await page.keyboard.press("Enter")
    await expect(bubbles(page, "Forwarded from Ann")).to_be_visible()
