"""The page of a job and the attention page in a real browser: hostile texts, a narrow phone, live changes, keyboard."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from genlock.dashboard.login import COOKIE
from genlock.domain.job import AttentionCode, Delivery, Job, State
from genlock.domain.job_event import EventRow
from tests.axe import serious_violations_of
from tests.dashboard.world import DashboardWorld, running_dashboard
from tests.databases import new_sqlite
from tests.stores.builders import end, ended, ensure_profile, finish, running

pytestmark = pytest.mark.asyncio(loop_scope="session")
HOSTILE = '"><img src=x onerror=alert(1)><script>alert(1)</script>\u202e\x07' + "W" * 100_000


@asynccontextmanager
async def opened(browser: Browser, world: DashboardWorld, *, width: int = 360) -> AsyncIterator[Page]:
    """A page of an operator's browser that fails the test on any script error or dialog."""
    client, problems = await world.log_in(), []
    context = await browser.new_context(viewport={"width": width, "height": 800}, locale="en")
    async with context:
        await context.add_cookies([{"name": COOKIE, "value": client.cookies[COOKIE], "url": world.url}])
        page = await context.new_page()
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
        page.on("request", lambda request: problems.append(request.url) if world.url not in request.url else None)
        yield page
        assert problems == []


async def hostile_job(world: DashboardWorld) -> Job:
    job = await running(world.store, model=HOSTILE[:300], input='{"prompt": ' + f'"{"W" * 5000}"' + "}")
    row = EventRow(
        correlation_id=job.correlation_id, number=1, events='[[0,"POLL_STATE",{"word":"' + "W" * 5000 + '"}]]'
    )
    await world.store.add_job_events("W" * 200, [row])
    await ensure_profile(world.store, job.account_id, language="en", name=HOSTILE[:200], username="", referred_by=None)
    await end(world.store, job, State.FAILED, error_code=HOSTILE[:100], error_text=HOSTILE)
    return job


async def test_hostile_texts_do_nothing_and_fit_on_a_narrow_phone(tmp_path: Path, browser: Browser) -> None:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}") as world, opened(browser, world) as page:
        job = await hostile_job(world)
        stuck = await ended(world.store, model=HOSTILE[:300])
        code = AttentionCode.UNDELIVERABLE
        assert await finish(world.store, stuck, Delivery.UNDELIVERABLE, attention_code=code, attention_reason=HOSTILE)
        for path in (f"/jobs/{job.id}", f"/jobs/{stuck.id}", "/attention", "/attention/undeliverable"):
            await page.goto(f"{world.url}/dashboard{path}")
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            assert await page.locator("img, main script").count() == 0, path
            assert [violation["id"] for violation in await serious_violations_of(page)] == [], path


async def test_an_open_page_follows_the_job_and_acts_by_keyboard(tmp_path: Path, browser: Browser) -> None:
    async with (
        running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}") as world,
        opened(browser, world, width=1280) as page,
    ):
        job = await running(world.store, provider="fake")
        await page.goto(f"{world.url}/dashboard/jobs/{job.id}")
        row = EventRow(correlation_id=job.correlation_id, number=1, events='[[0,"POLL_STATE",{"word":"busy"}]]')
        await world.store.add_job_events("one", [row])
        await expect(page.get_by_text("Status queries with this answer: 1")).to_be_visible()

        await page.locator("summary", has_text="Cancel").focus()
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Cancel the order", exact=True).focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_contain_text("is cancelled")
        await expect(page.locator("#live")).to_contain_text("Order cancelled")


async def test_a_confirmation_stays_inside_the_page(tmp_path: Path, browser: Browser) -> None:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}") as world:
        job = await running(world.store, provider="fake")
        for width, least in ((360, 4), (900, 4), (1250, 220)):  # a wider page has the menu at its left
            async with opened(browser, world, width=width) as page:
                await page.goto(f"{world.url}/dashboard/jobs/{job.id}")
                for label in ("Retry now", "Cancel"):
                    action = page.locator("details.action", has=page.locator("summary", has_text=label))
                    await action.locator("summary").click()
                    box = await action.locator(".panel").bounding_box()
                    assert box
                    assert box["x"] >= least, (width, label, box)
                    assert box["x"] + box["width"] <= width - 4, (width, label, box)
                    await page.keyboard.press("Escape")
