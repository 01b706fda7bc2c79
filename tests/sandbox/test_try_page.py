"""The page at `/try` in a real browser: order and result, a lost answer, no credits, a reload, phone and desktop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, Page, Route, expect

from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.serving import serving
from genlock.sandbox.try_page.access import FILE, TryKey, make_try_key
from genlock.sandbox.try_page.routes import POLICY, TryAccess, add_try_page
from tests.api.world import ApiWorld, Client, running_api
from tests.axe import violations_of
from tests.databases import new_sqlite
from tests.sandbox.sample_media import picture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.browser]
PATIENCE = 60_000
#: the codes that the API gives wrong inputs, and the limits that they may break
CODES = ("missing", "type", "choice", "address", "combination", "price", "task", "range")
FILE_CODES = ("file_unknown", "file_expired", "file_kind")
LIMITS: list[dict[str, float]] = [{"min": 2, "max": 5}, {"min": 2}, {"max": 5}, {"min": 0, "max": 5}]
INPUT_ERRORS = [
    *({"code": code, "detail": "English"} for code in (*CODES, *FILE_CODES)),
    *(
        {"code": code, "detail": "English", "given": 9, **limits}
        for code in ("length", "range", "count")
        for limits in LIMITS
    ),
    {"code": "step", "detail": "English", "step": 0.5},
    {"code": "file_length", "detail": "English", "max": 5, "given": 9.5},
]
#: width, colours, language
LOOKS = ((360, "dark", "ru"), (1280, "light", "en"))


class TryWorld:
    """The API with its page. Each test opens the page with a client of its own."""

    def __init__(self, api: ApiWorld, browser: Browser) -> None:
        self.api = api
        self.browser = browser
        self.url = ""
        self.access: TryAccess | None = None
        self.problems: list[str] = []

    @asynccontextmanager
    async def page(self, client: Client, look: tuple[int, str, str] = LOOKS[1]) -> AsyncIterator[Page]:
        width, colours, language = look
        self.problems = []

        async def key() -> str:
            return client.secret

        self.access = TryAccess(url=self.api.url, key=key)
        context = await self.browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if colours == "dark" else "light",
            locale=language,
        )
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda one: self._check(one.url, is_good=one.url.startswith(self.url)))
        page.on("console", lambda line: self._check(line.text, is_good="Content Security" not in line.text))
        try:
            await page.goto(f"{self.url}/try")
            yield page
            assert self.problems == []
        finally:
            await context.close()

    def _check(self, words: str, *, is_good: bool) -> None:
        if not is_good:
            self.problems.append(words)

    async def jobs(self, client: Client) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await client.get("/v1/jobs")).json["data"]
        return found


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> AsyncIterator[TryWorld]:
    folder = tmp_path_factory.mktemp("try")
    async with running_api(f"sqlite:///{new_sqlite(folder)}", folder / "media") as api:
        running = TryWorld(api, browser)
        app = web.Application()
        add_try_page(app, lambda: running.access)
        async with serving(app, "127.0.0.1", 0) as url:
            running.url = url
            yield running


async def choose(page: Page, title: str, prompt: str) -> None:
    await page.locator("#search").fill(title)
    await page.locator(".model").first.click()
    await page.locator("#form-slot textarea").first.fill(prompt)


async def order(page: Page, title: str = "Z-Image", prompt: str = "a cat in a space suit") -> None:
    await choose(page, title, prompt)
    await page.locator("#order:enabled").click()


async def test_an_order_leads_to_its_result_and_the_price_is_shown_before(world: TryWorld) -> None:
    client = await world.api.client()
    async with world.page(client) as page:
        await choose(page, "Z-Image", "a cat in a space suit")
        await expect(page.locator("#order")).to_be_enabled(timeout=PATIENCE)
        price = await page.locator("#order").text_content()
        await page.locator("#order").click()
        await expect(page.locator(".order .badge")).to_have_text("Done", timeout=PATIENCE)
        picture = page.locator(".order img")
        await picture.scroll_into_view_if_needed()
        await expect(picture).to_have_js_property("complete", value=True, timeout=PATIENCE)
        assert await picture.evaluate("(one) => one.naturalWidth") > 0
        assert "credits charged." in str(await page.locator(".order").text_content())
        await expect(page.locator("#balance")).not_to_contain_text("1,000 credits")

    [job] = await world.jobs(client)
    assert f"{job['price']:g}" in str(price)
    assert job["charged"]


async def test_an_order_whose_answer_is_lost_is_sent_again_and_ordered_once(world: TryWorld) -> None:
    client = await world.api.client()
    keys: list[str] = []
    sent_again = asyncio.Event()

    async def lose(route: Route) -> None:
        if route.request.method != "POST":
            await route.continue_()
            return
        keys.append(str(await route.request.header_value("idempotency-key")))
        await route.fetch()  # the service has taken it
        if len(keys) == 1:
            await route.abort()
            return
        await route.continue_()
        sent_again.set()

    async with world.page(client) as page:
        await page.route("**/v1/jobs", lose)
        await order(page)
        await expect(page.locator(".order .badge")).to_have_text("Done", timeout=PATIENCE)
        assert await page.locator(".order").count() == 1
        async with asyncio.timeout(PATIENCE / 1000):
            await sent_again.wait()

    assert len(set(keys)) == 1 < len(keys)
    assert len(await world.jobs(client)) == 1


async def test_a_reload_before_the_answer_goes_on_with_the_same_order(world: TryWorld) -> None:
    client = await world.api.client()

    async def lose(route: Route) -> None:
        if route.request.method == "POST":
            await route.fetch()
        await route.abort()

    async with world.page(client) as page:
        await page.route("**/v1/jobs", lose)
        await page.route("**/v1/events", lose)  # else an event may tell of the order before its loss is noticed
        await page.reload()
        await order(page)
        await expect(page.locator(".order")).to_contain_text("same key", timeout=PATIENCE)
        await page.unroute_all()
        await page.reload()
        await expect(page.locator(".order .badge")).to_have_text("Done", timeout=PATIENCE)
        await page.reload()
        await expect(page.locator(".order .badge")).to_have_text("Done", timeout=PATIENCE)
        assert await page.locator(".order").count() == 1

    assert len(await world.jobs(client)) == 1


async def test_an_answer_that_comes_after_the_end_does_not_put_the_order_back(world: TryWorld) -> None:
    client = await world.api.client()
    ended = asyncio.Event()

    async def delay(route: Route) -> None:
        answer = await route.fetch()
        await ended.wait()
        await route.fulfill(response=answer)

    async with world.page(client) as page:
        await page.route("**/v1/jobs", delay)
        await order(page)
        await expect(page.locator(".order .badge")).to_have_text("Done", timeout=PATIENCE)
        ended.set()
        await expect(page.locator("#order")).to_be_enabled(timeout=PATIENCE)  # once the answer was taken
        await expect(page.locator(".order .badge")).to_have_text("Done", timeout=1_000)


async def test_a_running_order_is_followed_after_a_reload_and_can_be_cancelled(world: TryWorld) -> None:
    client = await world.api.client()
    world.api.kie.faults.switch(Fault.STATUS_NULL)
    try:
        async with world.page(client) as page:
            await order(page)
            await expect(page.locator(".order progress")).to_be_visible(timeout=PATIENCE)
            await page.reload()
            await expect(page.locator(".order progress")).to_be_visible(timeout=PATIENCE)
            await page.locator(".order button").click()
            await expect(page.locator(".order .badge")).to_have_text("Cancelled", timeout=PATIENCE)
            await expect(page.locator(".order")).to_contain_text("Nothing was charged")
    finally:
        world.api.kie.faults.clear()
    assert await world.api.available(client) == 1_000_000


async def test_without_credits_nothing_is_ordered_and_both_amounts_are_named(world: TryWorld) -> None:
    client = await world.api.client(credits_=1)
    async with world.page(client) as page:
        await choose(page, "Veo", "a film of the sea")
        await expect(page.locator("#price")).to_contain_text("Not enough credits", timeout=PATIENCE)
        await expect(page.locator("#price")).to_contain_text("you have 1 credit.")
        await page.locator("#order:enabled").click()
        await expect(page.locator(".order .error")).to_contain_text("you have 1 credit.", timeout=PATIENCE)
        await expect(page.locator(".order")).to_contain_text("Nothing was charged")
    assert await world.jobs(client) == []


async def test_a_file_is_sent_and_a_wrong_one_is_explained(world: TryWorld, tmp_path: Path) -> None:
    client = await world.api.client()
    good, bad = tmp_path / "a.png", tmp_path / "b.png"
    good.write_bytes(picture(320, 320))
    bad.write_bytes(b"not a picture")
    async with world.page(client) as page:
        await page.locator("#category").select_option("background-removal")
        await page.locator(".model").first.click()
        await page.locator("#form-slot input[type=file]").set_input_files(bad)
        await expect(page.locator(".files .error")).to_contain_text("wasn't uploaded", timeout=PATIENCE)
        await page.locator(".files button").click()
        await page.locator("#form-slot input[type=file]").set_input_files(good)
        await page.locator("#order:enabled").click()
        await expect(page.locator(".order .badge")).to_have_text("Done", timeout=PATIENCE)
    [job] = await world.jobs(client)
    assert job["charged"]


async def test_a_wrong_value_is_explained_in_the_language_of_the_page(world: TryWorld) -> None:
    client = await world.api.client()
    async with world.page(client, LOOKS[0]) as page:
        await choose(page, "Seedream 4.0", "кот")
        await page.locator("#form-slot input[type=number][max='6']").fill("7")
        for place in ("#form-slot .error:visible", "#price"):
            await expect(page.locator(place)).to_have_text("Нужно число от 1 до 6.", timeout=PATIENCE)
        await page.get_by_role("button", name="English").click()
        await expect(page.locator("#form-slot .error:visible")).to_have_text(
            "must be a whole number from 1 to 6", timeout=PATIENCE
        )
        await page.get_by_role("button", name="Русский").click()
        untranslated = await page.evaluate(
            "async (errors) => errors.map((await import('/try/texts.js')).explainInput)"
            ".filter((words) => /[a-z{}]/.test(words.replace('https', '')))",
            INPUT_ERRORS,
        )
        assert untranslated == []


async def test_every_look_can_be_used_with_a_keyboard_and_a_screen_reader(world: TryWorld) -> None:
    client = await world.api.client()
    for look in LOOKS:
        async with world.page(client, look) as page:
            await order(page)
            await expect(page.locator(".badge.succeeded").first).to_be_visible(timeout=PATIENCE)
            await choose_again(page)
            assert await page.evaluate("document.documentElement.scrollWidth") <= look[0]
            assert [violation["id"] for violation in await violations_of(page)] == [], look
            assert await page.locator("html").get_attribute("lang") == look[2]
            page_policy = await page.evaluate("fetch('/try').then((one) => one.headers.get('content-security-policy'))")
            assert page_policy == POLICY


async def choose_again(page: Page) -> None:
    """Show the list of models beside the order: both are examined."""
    await page.locator("#change").click()


async def test_the_language_changes_without_losing_what_was_written(world: TryWorld) -> None:
    client = await world.api.client()
    async with world.page(client) as page:
        await choose(page, "Z-Image", "a cat")
        await page.get_by_role("button", name="Русский").click()
        await expect(page.locator("#form-slot label").first).to_contain_text("Опишите")
        assert await page.locator("#form-slot textarea").first.input_value() == "a cat"
        await expect(page.locator("#order")).to_contain_text("Заказать за", timeout=PATIENCE)


async def test_the_key_is_made_once_per_sandbox(tmp_path: Path) -> None:
    url = f"sqlite:///{new_sqlite(tmp_path)}"
    key = TryKey(url, tmp_path)
    first, again = await asyncio.gather(key.read(), key.read())
    assert first == again == await make_try_key(url, tmp_path)
    (tmp_path / FILE).unlink()
    assert await make_try_key(url, tmp_path) != first
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0
