"""The panel beside the chat: it really switches, and it shows what happens."""

import aiohttp
import pytest
from playwright.async_api import Browser, Page, expect

from genlock.sandbox.kie.faults import Fault as KieFault
from genlock.sandbox.kie.simulator import running_kie
from genlock.sandbox.providers import running_more_providers
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.packaged import CATALOG
from tests.sandbox.page.browser_tabs import Tabs, bubbles
from tests.sandbox.page.example_bot import ExampleBot

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def open_panel(page: Page, tab: str) -> None:
    await page.get_by_role("button", name="Show faults and calls").click()
    await page.locator(f'[data-tab="{tab}"]').click()


async def post_lines(telegram: TelegramSimulator, *lines: object) -> None:
    async with aiohttp.ClientSession() as session, session.post(f"{telegram.url}/sim/log", json=lines) as response:
        assert response.status == 200


async def test_a_fault_switch_turns_off_after_its_last_use(
    tabs: Tabs, ann: SimulatedUser, telegram: TelegramSimulator
) -> None:
    page = await tabs.open(ann)
    await open_panel(page, "faults")
    await page.get_by_label("For the method").select_option("sendMessage")
    switch = page.get_by_role("switch", name="Cut after", exact=True)
    await switch.click()
    await expect(switch).to_have_attribute("aria-checked", "true")
    (made,) = telegram.faults.switches
    assert (made.fault, made.method, made.times) == (Fault.DROP_AFTER, "sendMessage", 1)
    await ann.start()
    await expect(switch).to_have_attribute("aria-checked", "false")
    await expect(page.locator(".chip")).to_have_count(0)
    await page.locator('[data-tab="journal"]').click()
    await expect(page.locator(".note.call", has_text="sendMessage")).to_contain_text("executed, answer lost")
    await expect(bubbles(page, "Hello, Ann!")).to_be_visible()


async def test_a_fault_that_is_always_on_stays_until_it_is_switched_off(
    tabs: Tabs, ann: SimulatedUser, telegram: TelegramSimulator
) -> None:
    page = await tabs.open(ann)
    await open_panel(page, "faults")
    await page.get_by_role("button", name="always").click()
    await page.get_by_label("Seconds").fill("7")
    await page.get_by_label("Seconds").blur()
    await page.get_by_role("switch", name="429 Too Many Requests").click()
    await expect(page.locator(".chip")).to_have_text("429 Too Many Requests")
    (made,) = telegram.faults.switches
    assert (made.fault, made.method, made.times, made.seconds) == (Fault.TOO_MANY, None, None, 7.0)
    await ann.start()
    await page.locator('[data-tab="journal"]').click()
    await expect(page.locator(".note.call .end.bad").first).to_contain_text("429")
    await page.get_by_role("button", name="Switch off: 429 Too Many Requests").click()
    await expect(page.locator(".chip")).to_have_count(0)
    assert telegram.faults.switches == []


async def test_faults_of_the_kie_simulator_are_switched_through_the_page(browser: Browser, reused_page: Page) -> None:
    async with running_kie(catalog=CATALOG) as kie, running_telegram(kie_url=kie.url) as telegram:
        tabs = Tabs(browser, telegram.page_url, reused_page)
        page = await tabs.open(telegram.add_user("Ann"))
        await open_panel(page, "kie")
        await page.get_by_role("switch", name="Never sent").click()
        await page.get_by_role("button", name="Sent twice: next order").click()
        await expect(page.locator(".chip")).to_have_count(2)
        assert kie.faults.as_json()["on"] == [KieFault.CALLBACK_LOST]
        assert kie.faults.as_json()["coming"] == [[KieFault.CALLBACK_TWICE]]
        await page.get_by_role("switch", name="Never sent").click()
        await expect(page.locator(".chip")).to_have_count(1)
        assert kie.faults.as_json()["on"] == []
        await tabs.close()
        assert tabs.errors == []


async def test_every_fault_has_a_text(browser: Browser, reused_page: Page) -> None:
    async with running_kie(catalog=CATALOG) as kie, running_telegram(kie_url=kie.url) as telegram:
        tabs = Tabs(browser, telegram.page_url, reused_page)
        page = await tabs.open(telegram.add_user("Ann"))
        await open_panel(page, "faults")
        shown = await page.locator(".fault").all_inner_texts()
        assert len(shown) == len(Fault)
        await page.locator('[data-tab="kie"]').click()
        await expect(page.locator(".fault")).to_have_count(len(KieFault))
        shown += await page.locator(".fault b").all_inner_texts()
        assert [words for words in shown if "_" in words] == []
        await tabs.close()


async def test_an_ignored_duplicate_callback_is_visible_in_the_journal(
    tabs: Tabs, ann: SimulatedUser, telegram: TelegramSimulator
) -> None:
    page = await tabs.open(ann)
    await open_panel(page, "journal")
    one, other = "a1b2c3d4", "ffee0011"
    await post_lines(
        telegram,
        {"event": "JOB_CREATED", "correlation_id": one, "job": 17},
        {"event": "JOB_CREATED", "correlation_id": other, "job": 18},
        {"event": "CALLBACK_RECEIVED", "correlation_id": one, "job": 17, "bytes": 812},
        {"event": "DELIVER_OK", "correlation_id": one, "job": 17},
        {"event": "CALLBACK_RECEIVED", "correlation_id": one, "job": 17, "bytes": 812},
        {"event": "RESULT_DUPLICATE", "correlation_id": one, "job": 17},
    )
    await expect(page.locator(".note.event")).to_have_count(6)
    await expect(page.locator(".note.swallowed")).to_contain_text("RESULT_DUPLICATE")
    await expect(page.locator(".note.swallowed .end")).to_have_text("ignored")
    await page.locator(".jobtag", has_text=one).first.click()
    await expect(page.locator(".note")).to_have_count(5)
    await page.locator(".kinds .job").click()
    await expect(page.locator(".note.event")).to_have_count(6)
    await page.get_by_label("Filter").fill("callback")
    await expect(page.locator(".note")).to_have_count(2)
    await page.locator(".note button").first.click()
    await expect(page.locator(".details")).to_contain_text('"bytes": 812')


async def test_calls_and_updates_appear_in_the_journal_unless_it_is_paused(
    tabs: Tabs, ann: SimulatedUser, telegram: TelegramSimulator, example: ExampleBot
) -> None:
    page = await tabs.open(ann)
    await open_panel(page, "journal")
    await ann.start()
    await expect(page.locator(".note.update").last).to_contain_text("Ann · /start")
    await expect(page.locator(".note.call").last).to_contain_text("Hello, Ann!")
    await page.get_by_role("button", name="Calls").click()
    await expect(page.locator(".note.call")).to_have_count(0)
    await page.get_by_role("button", name="Calls").click()
    await page.locator(".sieve").get_by_role("button", name="Pause").click()
    await ann.say("more")
    await ann.sees("Received: more")
    await expect(page.locator(".paused")).to_have_text("Paused · 2 new")
    await expect(page.locator(".note", has_text="more")).to_have_count(0)
    await page.locator(".paused").click()
    await expect(page.locator(".note", has_text="Received: more")).to_be_visible()
    again = [{"text": "Show again", "callback_data": "again:17"}]
    await post_lines(telegram, {"event": "JOB_CREATED", "correlation_id": "a1b2c3d4", "job": 17})
    await example.bot.send_message(ann.id, "done", reply_markup={"inline_keyboard": [again]})  # type: ignore[arg-type]
    await expect(page.locator(".note.call").last).to_have_attribute("data-job", "a1b2c3d4")


async def test_the_journal_follows_the_newest_line_until_the_user_scrolls_up(
    tabs: Tabs, ann: SimulatedUser, telegram: TelegramSimulator
) -> None:
    page = await tabs.open(ann)
    await open_panel(page, "journal")
    await post_lines(telegram, *({"event": f"LINE_{number}", "job": number} for number in range(60)))
    await expect(page.locator(".note", has_text="LINE_59")).to_be_in_viewport()
    for fault in (Fault.DELAY, Fault.TOO_MANY, Fault.DROP_AFTER, Fault.SERVER_ERROR):
        telegram.faults.switch(fault, method="getChat")
    telegram.state.events.add("fault", faults=telegram.faults.as_json())
    await expect(page.locator(".chip")).to_have_count(4)
    for tab in ("faults", "journal"):
        await page.locator(f'[data-tab="{tab}"]').click()
    await post_lines(telegram, {"event": "AFTER_THE_CHIPS", "correlation_id": "new", "job": 99})
    await expect(page.locator(".note", has_text="AFTER_THE_CHIPS")).to_be_in_viewport()
    await page.locator(".journal").evaluate("journal => journal.scrollTo(0, 0)")
    await expect(page.locator(".note", has_text="LINE_0")).to_be_in_viewport()
    await post_lines(telegram, {"event": "UNSEEN"})
    await expect(page.locator(".note", has_text="UNSEEN")).to_be_attached()
    await expect(page.locator(".note", has_text="UNSEEN")).not_to_be_in_viewport()


async def test_a_provider_is_taken_down_and_up_again_and_each_order_shows_who_made_it(
    browser: Browser, reused_page: Page
) -> None:
    async with (
        running_kie(catalog=CATALOG) as kie,
        running_more_providers(CATALOG) as more,
        running_telegram(kie_url=kie.url) as telegram,
        aiohttp.ClientSession() as session,
    ):
        telegram.providers = more.beside(kie)
        tabs = Tabs(browser, telegram.page_url, reused_page)
        page = await tabs.open(telegram.add_user("Ann"))
        await open_panel(page, "providers")
        switch = page.get_by_role("switch", name="Kie.ai")
        await expect(switch).to_have_attribute("aria-checked", "true")
        async with session.get(f"{kie.url}/_control") as answer:
            assert answer.status == 200

        await switch.click()
        await expect(switch).to_have_attribute("aria-checked", "false")
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(f"{kie.url}/_control")

        await switch.click()
        await expect(switch).to_have_attribute("aria-checked", "true")
        async with session.get(f"{kie.url}/_control") as answer:
            assert answer.status == 200
        for line in (
            {"event": "SUBMIT_START", "job": 7, "provider": "kie"},
            {"event": "FAILED_OVER", "job": 7, "provider": "kie", "code": "no_provider_credits"},
            {"event": "SUBMIT_START", "job": 7, "provider": "fal"},
            {"event": "MARK_DELIVERED", "job": 7},
        ):
            telegram.state.events.add("log", line=line)
        order = page.locator('[data-order="7"]')
        await expect(order).to_contain_text("Kie.ai (no credit left) → fal · delivered")
        await tabs.close()
        assert tabs.errors == []


async def test_a_request_to_switch_an_unknown_provider_names_the_known_ones(telegram: TelegramSimulator) -> None:
    async with aiohttp.ClientSession() as session:
        wrong: list[object] = [{}, {"name": "nowhere", "up": False}, [], {"name": [], "up": True}]
        for body in wrong:
            async with session.post(f"{telegram.url}/sim/providers", json=body) as answer:
                assert answer.status == 400
