"""The list of orders in a browser: rows that change, chosen ones, a long search."""

import pytest
from playwright.async_api import Browser, Page

from genlock.dashboard.login import COOKIE
from genlock.domain.bulk import BulkKind
from genlock.domain.job import Job
from tests.dashboard.job_list import ended_job, running_job, stop_after_one_step, user, work_to_the_end
from tests.dashboard.world import Client, DashboardWorld


async def open_page(browser: Browser, dashboard: DashboardWorld, client: Client, path: str) -> Page:
    context = await browser.new_context(locale="en")
    await context.add_cookies([{"name": COOKIE, "value": client.cookies[COOKIE], "url": dashboard.url}])
    page = await context.new_page()
    await page.goto(f"{dashboard.url}/dashboard{path}")
    return page


async def change_a_chosen_row(page: Page, dashboard: DashboardWorld, job: Job, old: Job) -> None:
    await page.check(f"#choose-{job.id}")
    await page.check(f"#choose-{old.id}")
    await dashboard.engine.cancel(job.id, "ann")
    await page.locator(f"#job-{job.id} .badge", has_text="cancelled").wait_for()
    assert await page.is_checked(f"#choose-{job.id}")
    assert await page.is_checked(f"#choose-{old.id}")


async def resend_the_chosen(page: Page, dashboard: DashboardWorld) -> None:
    await page.click(f"button[value={BulkKind.RESEND}]")
    await page.get_by_text("Applies to 1 of 2 selected orders.").wait_for()
    await page.get_by_role("button", name="Send again").click()
    await page.get_by_text("Started.").wait_for()
    await work_to_the_end(dashboard)
    await page.locator("#bulk-progress .badge", has_text="done").wait_for()


@pytest.mark.asyncio(loop_scope="session")
async def test_rows_change_chosen_ones_stay_chosen_and_a_long_search_goes_on_by_itself(
    browsed_dashboard: DashboardWorld, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    dashboard = browsed_dashboard
    ann = await user(dashboard, "Ann")
    needles = [await ended_job(dashboard, ann, prompt="needle" if number in (0, 3) else "hay") for number in range(5)]
    job, old = await running_job(dashboard, ann), await ended_job(dashboard, ann)
    client = await dashboard.log_in()
    page = await open_page(browser, dashboard, client, "/jobs")
    await change_a_chosen_row(page, dashboard, job, old)
    await resend_the_chosen(page, dashboard)
    await page.context.close()

    stop_after_one_step(dashboard, monkeypatch)
    page = await open_page(browser, dashboard, client, "/jobs?text=needle")
    await page.get_by_text("No more orders.").wait_for()
    assert await page.locator("#job-rows tr").count() == 2
    assert await page.locator(f"#job-rows #job-{needles[0].id}").count() == 1
    await page.context.close()
