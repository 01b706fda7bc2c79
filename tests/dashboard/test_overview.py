"""The overview: figures of a period, hostile names, the live part, and how it looks in a browser."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import aiohttp
import pytest
from playwright.async_api import Browser

from genlock.dashboard import live as live_module
from genlock.domain.job import State
from genlock.domain.money import EntryKind
from genlock.domain.operator import OperatorRole
from genlock.engine.hourly_figures import HourlyFigureKeeper
from genlock.i18n.translator import package_texts
from genlock.stores import hourly_figures as store_module
from tests.changes import PATIENCE_SECONDS, poll_until
from tests.dashboard.browser_pages import LOOKS, faults_of, open_context, watched_page
from tests.dashboard.world import Client, DashboardWorld, running_dashboard
from tests.databases import new_sqlite
from tests.loop_clock import LoopClock
from tests.noon_clock import NoonClock
from tests.stores.builders import account_with, delivered, end, finish, queued, running


@pytest.fixture
async def dashboard(tmp_path: Path) -> AsyncIterator[DashboardWorld]:
    """Its figures are those of today."""
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", clock=NoonClock()) as world:
        yield world


@pytest.fixture(autouse=True)
def without_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """On SQLite, ids and times are in the order of the commits, so nothing must be waited for."""
    monkeypatch.setattr(store_module, "COMMIT_SECONDS", 0.0)


async def count(world: DashboardWorld) -> None:
    await world.engine.leader.elect()
    await HourlyFigureKeeper(world.engine.ctx, world.engine.leader, world.store).round()


async def payments_are_settled(world: DashboardWorld) -> bool:
    return all(payment.settled for payment in await world.store.payments_after(0, 10))


async def some_orders(world: DashboardWorld, model: str = "z-image") -> None:
    store = world.store
    account_id = await account_with(store, 1_000_000)
    for _ in range(2):
        await delivered(store, account_id=account_id, model=model, price=50_000)
    failed = (await end(store, await running(store, account_id=account_id, model=model), State.FAILED)).job
    assert failed
    await finish(store, failed)
    await queued(store, account_id=account_id, model=model)
    assert await store.transfer(account_id, EntryKind.TOPUP, 5000, "stars")
    assert await store.add_payment("charge", account_id, 250, 5000)
    await poll_until(lambda: payments_are_settled(world))
    await count(world)


def figure(page: str, label: str) -> str:
    match = re.search(rf'class="label">{label}</span>\s*<span class="value[^"]*">(?:<a[^>]*>)?([^<]*)', page)
    assert match, label
    return match[1]


async def test_a_model_that_two_providers_made_is_one_line(dashboard: DashboardWorld) -> None:
    await delivered(dashboard.store, model="z-image", price=500)
    await delivered(dashboard.store, model="z-image", price=500, provider="other")
    await count(dashboard)

    page = (await (await dashboard.log_in()).get("")).text

    table = page.split("By model")[1].split("</table>")[0]
    assert table.count("Z-Image") == 1
    assert '<td class="num" data-label="Orders">2</td>' in table


def failed_cell(page: str) -> str:
    [cell] = re.findall(r'data-label="Failed">(.*?)</td>', page.split("By model")[1].split("</table>", maxsplit=1)[0])
    return str(cell)


async def test_the_share_of_failed_orders_takes_room_only_where_some_have_failed(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    await delivered(dashboard.store, model="z-image")
    await count(dashboard)
    assert "share" not in failed_cell((await client.get("")).text)

    await some_orders(dashboard)

    assert re.sub(r"<[^>]*>", "", failed_cell((await client.get("")).text)) == "1 20.0%"


async def test_weeks_are_named_by_their_first_day_also_after_the_clocks_changed(dashboard: DashboardWorld) -> None:
    await some_orders(dashboard)
    client, t = await dashboard.log_in(OperatorRole.VIEWER), package_texts().translator("en")
    for zone in ("Europe/Berlin", "Australia/Sydney"):  # one of them had summer time a year ago
        today = (await dashboard.store.read_clock()).astimezone(ZoneInfo(zone)).date()
        first = today - timedelta(days=7 * 52)
        client.cookies["genlock_zone"] = zone

        page = (await client.get(f"?period=range&from={first}&to={today}")).text

        weeks = (datetime.combine(first + timedelta(days=7 * week), time(), UTC) for week in range(52))
        wanted = [t.day(week) for week in weeks]
        assert re.findall(r'<th scope="row">([^<]*)</th><td class="num">', page)[:52] == wanted, zone


async def test_the_cards_show_the_figures_of_today(dashboard: DashboardWorld) -> None:
    await some_orders(dashboard)
    client = await dashboard.log_in(OperatorRole.VIEWER)

    page = (await client.get("")).text

    expected = {
        "Orders": "4", "Delivered": "2", "Failed": "1", "Refunded or not charged": "1", "Revenue": "$1.00",
        "Top-ups": "1",
        "Stars": "250", "New users": "1", "Active users": "1", "First orders": "1", "In progress": "1",
    }  # fmt: skip
    assert {label: figure(page, label) for label in expected} == expected
    assert "Z-Image" in page


async def test_a_period_that_cannot_be_shown_is_named_and_today_is_shown(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()

    page = (await client.get("?period=range&from=%3Cb%3E2026&to=2026-01-01")).text

    assert "“&lt;b&gt;2026” isn&#39;t a date" in page
    for period in ("today", "7d", "30d"):
        assert (await client.get(f"?period={period}")).status == 200


async def test_a_filter_that_does_not_exist_is_named(dashboard: DashboardWorld) -> None:
    page = (await (await dashboard.log_in()).get("?preiod=7d&colour=%3Cb%3E")).text

    assert "There&#39;s no filter “preiod”" in page
    assert "“period”" in page
    assert "There&#39;s no filter “colour”" in page


async def test_a_new_installation_is_told_what_to_do_first(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()

    assert "No orders yet" in (await client.get("")).text
    await queued(dashboard.store)
    await asyncio.sleep(0)
    dashboard_page = await (await dashboard.log_in()).get("")
    assert dashboard_page.status == 200


async def test_a_model_that_the_catalog_does_not_know_cannot_write_into_the_page(dashboard: DashboardWorld) -> None:
    await some_orders(dashboard, model="<script>alert(1)</script>\u202e" + "x" * 500)
    client = await dashboard.log_in()

    page = (await client.get("")).text

    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "No longer in the catalog" in page


async def test_open_alarms_are_shown_with_their_remedy(dashboard: DashboardWorld) -> None:
    await dashboard.store.kv_put("alarm:undelivered", json.dumps({"since": 0, "told": True}))
    client = await dashboard.log_in()

    page = (await client.get("")).text

    assert "Results are waiting to be delivered" in page
    assert "<code>genlock jobs attention</code>" in page


async def test_the_credit_lasts_as_long_as_at_the_rate_of_the_last_days(dashboard: DashboardWorld) -> None:
    store = dashboard.store
    await finish(store, (await end(store, await running(store, price=0), State.SUCCEEDED, cost=2000)).job)  # type: ignore[arg-type]
    await count(dashboard)
    await store.kv_put("provider_credit:kie", json.dumps({"credit": 10_000}))

    page = (await (await dashboard.log_in()).get("")).text

    assert figure(page, "Balance at Kie.ai") == "10"
    assert "lasts 5\u00a0days" in page


# the live part


async def events(world: DashboardWorld, client: Client, language: str) -> AsyncIterator[str]:
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    headers = {"Cookie": cookie, "Accept": "text/event-stream", "Accept-Language": language}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{world.url}/dashboard/live", headers=headers) as response,
    ):
        assert response.headers["Content-Type"].startswith("text/event-stream")
        text = ""
        async for line in response.content:
            text += line.decode()
            if text.endswith("\n\n"):
                if not text.startswith("event: release\n"):
                    yield text
                text = ""


async def test_all_tabs_are_served_by_one_reading_and_each_language_is_rendered_once(
    dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "READ_SECONDS", 0.05)
    monkeypatch.setattr("genlock.engine.stats.CACHE_SECONDS", 0.05)
    readers = set[asyncio.Task[None] | None]()
    read = live_module.LiveReader.read

    async def noted(self: live_module.LiveReader) -> live_module.LiveFigures | None:
        readers.add(asyncio.current_task())
        return await read(self)

    monkeypatch.setattr(live_module.LiveReader, "read", noted)
    client = await dashboard.log_in()
    tabs = [events(dashboard, client, language) for language in ("en", "ru", "en", "ru", "en", "ru")]
    first = [await anext(tab) for tab in tabs]
    assert ["In progress" in text for text in first] == [True, False] * 3
    await queued(dashboard.store)

    async with asyncio.timeout(PATIENCE_SECONDS):
        second = [await _until(tab, ">1<") for tab in tabs]

    assert len(second) == 6
    assert len(readers) == 1
    for tab in tabs:
        await tab.aclose()  # type: ignore[attr-defined]


async def test_a_stream_ends_when_its_time_is_over(dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "READ_SECONDS", 0.05)
    monkeypatch.setattr(live_module, "STREAM_SECONDS", 60.0)
    loop_clock = LoopClock()
    tab = events(dashboard, await dashboard.log_in(), "en")
    received = [await anext(tab)]
    loop_clock.advance(60.0)

    async with asyncio.timeout(PATIENCE_SECONDS):
        received += [text async for text in tab]

    assert all(text.startswith(("data: ", ":")) for text in received)


async def test_a_stream_ends_with_its_session(dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "READ_SECONDS", 0.05)
    monkeypatch.setattr(live_module, "SESSION_SECONDS", 0.1)
    for revoke in (dashboard.store.end_session, lambda _: dashboard.store.remove_operator("id-of-viewer")):
        client = await dashboard.log_in(OperatorRole.VIEWER)
        tab = events(dashboard, client, "en")
        await anext(tab)
        [session, *_] = await dashboard.store.sessions(1)

        await revoke(session.id)

        async with asyncio.timeout(PATIENCE_SECONDS):
            assert [text async for text in tab if not text.startswith(("data: ", ":"))] == []


async def test_one_session_cannot_take_every_connection(
    dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "READ_SECONDS", 0.05)
    monkeypatch.setattr(live_module, "SESSION_STREAMS_MAX", 2)
    greedy, other = await dashboard.log_in(OperatorRole.VIEWER), await dashboard.log_in()
    tabs = [events(dashboard, greedy, "en") for _ in range(2)]
    for tab in tabs:
        await anext(tab)

    assert (await greedy.get("/live", Accept="text/event-stream")).status == 429
    free = events(dashboard, other, "en")
    assert "In progress" in await anext(free)
    for tab in (*tabs, free):
        await tab.aclose()  # type: ignore[attr-defined]


async def test_a_client_that_asks_for_no_events_gets_the_live_part_once(dashboard: DashboardWorld) -> None:
    answer = await (await dashboard.log_in()).get("/live")

    assert (answer.status, figure(answer.text, "In progress")) == (200, "0")


async def _until(tab: AsyncIterator[str], part: str) -> str:
    async for text in tab:
        if part in text:
            return text
    raise AssertionError(part)


# in a browser


@pytest.mark.asyncio(loop_scope="session")
async def test_charts_and_tables_fit_every_screen(browsed_dashboard: DashboardWorld, browser: Browser) -> None:
    dashboard = browsed_dashboard
    await some_orders(dashboard)
    await dashboard.store.kv_put("alarm:undelivered", json.dumps({"since": 0, "told": True}))
    problems: list[str] = []
    for look in LOOKS:
        context = await open_context(browser, dashboard, look)
        page = await watched_page(context, dashboard, problems)
        await page.goto(f"{dashboard.url}/dashboard?period=7d")
        await page.evaluate("for (const one of document.querySelectorAll('figure details, .range')) one.open = true")
        assert await page.locator("svg.chart rect.series-2").count() > 0
        problems += [f"{look}: {fault}" for fault in await faults_of(page, look[0])]
        await context.close()
    assert problems == []


@pytest.mark.asyncio(loop_scope="session")
async def test_an_order_appears_without_a_reload(browsed_dashboard: DashboardWorld, browser: Browser) -> None:
    dashboard = browsed_dashboard
    context = await open_context(browser, dashboard, LOOKS[1])
    page = await watched_page(context, dashboard, [])
    await page.goto(f"{dashboard.url}/dashboard")
    await queued(dashboard.store)
    await page.locator("[data-live] .figure", has_text="1 queued").wait_for()
    await context.close()
