"""The pages about money: ledger, payments, Telegram's list, the ledger check, and the files."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from genlock.dashboard.csv_export import csv_lines
from genlock.domain.errors import ChannelBusy
from genlock.domain.figures import hour_number
from genlock.domain.job import State
from genlock.domain.money import EntryKind
from genlock.domain.operator import OperatorRole
from genlock.engine.reconciliation import PaymentDifference, PaymentDifferenceKind, Run
from genlock.stores.sqlite import SqliteStore
from tests.dashboard.users import add_payment, add_user
from tests.dashboard.world import Answer, DashboardWorld, running_dashboard
from tests.databases import new_sqlite
from tests.noon_clock import NoonClock
from tests.stores.builders import delivered, ended

PATHS = ("/money", "/money/ledger", "/money/payments", "/money/reconciliation", "/money/check")


def rows(answer: Answer) -> list[dict[str, str]]:
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
    return list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))


async def test_every_page_is_drawn_before_anything_has_happened(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in(OperatorRole.VIEWER)
    for path in PATHS:
        answer = await client.get(path)
        assert answer.status == 200, path
        assert '<form class="panel' not in answer.text, f"{path}: a viewer has no actions"
    for path in ("/money/ledger.csv", "/money/payments.csv"):
        assert rows(await client.get(path)) == []


async def test_the_ledger_says_what_the_bot_gave_in_the_language_of_the_page(dashboard: DashboardWorld) -> None:
    client, store = await dashboard.log_in(), dashboard.store
    account_id = await store.ensure_account("chat", "42", "of gifts")
    for key, reason in (("welcome:1", "welcome"), ("referral:1:a", "invitation of 1"), ("promo:1", "promo code MAY")):
        await store.transfer(account_id, EntryKind.GRANT, 1_000, key, reason)
    await store.transfer(account_id, EntryKind.REFUND, 1_000, "refund:77", "order 77 refunded")

    page = (await client.get("/money/ledger", **{"Accept-Language": "ru"})).text

    for text in ("Приветственный подарок", "Награда за приглашение", "Промокод", "MAY", "/dashboard/jobs/77"):
        assert text in page, text
    for text in (">welcome<", "invitation of", "promo code", "order 77 refunded"):
        assert text not in page, text


async def test_the_ledger_is_filtered_by_kind_user_and_time(
    dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.dashboard.pages.money.PAGE", 3)
    client, store = await dashboard.log_in(), dashboard.store
    ann, bob = await add_user(dashboard, "1", credits_=5), await add_user(dashboard, "2", credits_=5)
    paid, failed = await delivered(store, price=7), await ended(store, State.FAILED, price=8)
    for number in range(4):
        await store.transfer(ann, EntryKind.GRANT, 1000, f"g{number}", f"gift {number}.")
    await store.transfer(bob, EntryKind.DEBIT, 1000, "d", "for Bob.")

    async def page(query: str) -> str:
        return (await client.get(f"/money/ledger?{query}")).text

    first = await page("")
    assert "for Bob." in first
    assert "gift 3." in first
    assert "gift 1." not in first, "three on a page"
    grants = await page("kind=grant")
    assert ("gift 3." in grants, "for Bob." in grants) == (True, False)
    assert "for Bob." in await page(f"user={bob}")
    assert "gift" not in await page(f"user={bob}&kind=grant")
    assert f"Order #{paid.id}<" in await page("kind=capture")
    assert f"Order #{failed.id}<" not in await page("kind=capture")
    assert f"Order #{failed.id}<" in await page("kind=release")
    assert "No ledger entries" in await page("until=2001-01-01")
    assert "No ledger entries" in await page("since=2100-01-01&kind=orders")
    for query in ("kind=gold", "user=Bob", "since=yesterday", "since=2026-02-30", "before=rubbish", "colour=red"):
        assert "was ignored" in await page(query), query
    for query in ("kind=orders&before=1~x", "kind=moves&before=1"):
        assert "was ignored" in await page(query), "the place of another list"


async def test_files_hold_the_whole_range_and_no_formulas(
    dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.dashboard.pages.money_files.STEP", 2)
    client, store = await dashboard.log_in(OperatorRole.VIEWER), dashboard.store
    ann = await add_user(dashboard)
    for number in range(5):
        await store.transfer(ann, EntryKind.GRANT, 1500, f"g{number}", '=HYPERLINK("http://evil")\n\u202e')
        await add_payment(dashboard, ann, f"c{number}", stars=10, credits_=3)
    orders = [await delivered(store, price=7) for _ in range(3)]

    ledger = rows(await client.get("/money/ledger.csv?kind=grant"))
    assert [entry["key"] for entry in ledger] == [f"g{number}" for number in reversed(range(5))]
    assert {entry["reason"][:11] for entry in ledger} == {"'=HYPERLINK"}
    assert {(entry["credits"], entry["balance_change"], entry["order"]) for entry in ledger} == {("1.5", "1.5", "")}
    assert len(rows(await client.get(f"/money/ledger.csv?user={ann}"))) == 10
    lines = rows(await client.get("/money/ledger.csv?kind=orders"))
    assert {line["order"] for line in lines} == {str(order.id) for order in orders}
    assert len(lines) == 6
    payments = rows(await client.get("/money/payments.csv"))
    assert [(payment["receipt"], payment["stars"], payment["credits"]) for payment in payments][-1] == ("c0", "10", "3")
    assert len(payments) == 5
    assert rows(await client.get("/money/payments.csv?until=2001-01-01")) == []


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\uff1d1"])
def test_a_text_that_a_spreadsheet_would_run_is_only_text(cell: str) -> None:
    [[written, number]] = csv.reader(io.StringIO(csv_lines([(cell, -5)])))
    assert written.startswith("'")
    assert number == "-5", "our own numbers stay numbers"


@pytest.mark.parametrize(
    "cell", ["a;=cmd|' /C calc'!A0;b", "a\n=1+1", "a, b; @SUM(A1)", '{"a": "b;+1"}', "a\t-1", 'a;"=1+1;b']
)
def test_a_text_is_only_text_also_where_cells_are_separated_by_semicolons(cell: str) -> None:
    for separator in (";", "\t"):
        rows_there = csv.reader(io.StringIO(csv_lines([(7, cell, "x")])), delimiter=separator)
        cells = [found.strip(' "') for row in rows_there for found in row]
        assert [found for found in cells if found.startswith(("=", "+", "-", "@"))] == []
    assert csv_lines([("a; b - c = d",)]) == "a; b - c = d\r\n"


async def test_figures_by_day_are_those_of_the_rollups(tmp_path: Path) -> None:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", clock=NoonClock()) as dashboard:
        client, store = await dashboard.log_in(), dashboard.store
        ann = await add_user(dashboard)
        await add_payment(dashboard, ann, "c1", stars=111, credits_=77)
        role = await store.take_role("active", "me", 60.0)
        now = await store.read_clock()
        await store.fold_topups(hour_number(now), role)

        page = (await client.get("/money")).text
        assert "111" in page
        days = rows(await client.get("/money/days.csv"))
        assert len(days) == 30
        assert (days[0]["day"], days[0]["stars"], days[0]["credits_sold"]) == (f"{now:%Y-%m-%d}", "111", "77")
        old = rows(await client.get("/money/days.csv?since=2020-01-01&until=2020-01-03"))
        assert [row["day"] for row in old] == ["2020-01-03", "2020-01-02", "2020-01-01"]
        assert len(rows(await client.get("/money/days.csv?since=2001-01-01"))) == 400
        assert {row["time_zone"] for row in days} == {"UTC"}
        client.cookies["genlock_zone"] = "Pacific/Kiritimati"  # 14 hours before UTC
        there = rows(await client.get("/money/days.csv"))
        day = now.astimezone(ZoneInfo("Pacific/Kiritimati"))
        assert (there[0]["day"], there[0]["time_zone"], there[0]["stars"]) == (
            f"{day:%Y-%m-%d}", "Pacific/Kiritimati", "111",
        )  # fmt: skip
        assert "Totals by day (Pacific/Kiritimati)" in (await client.get("/money")).text


async def test_payments_are_filtered_by_their_state(dashboard: DashboardWorld) -> None:
    client, store = await dashboard.log_in(), dashboard.store
    ann = await add_user(dashboard)
    for number in range(3):
        await add_payment(dashboard, ann, f"charge-{number}")
    await store.begin_refund("charge-0", "op")
    await store.book_external_refund("charge-1", "outside")

    expected = {"all": {0, 1, 2}, "refunding": {0}, "refunded": {1}, "outside": {1}}
    for state, numbers in expected.items():
        page = (await client.get(f"/money/payments?state={state}")).text
        assert {number for number in range(3) if f"<bdi>charge-{number}" in page} == numbers, state


async def test_before_the_first_comparison_nothing_is_said_about_differences(dashboard: DashboardWorld) -> None:
    client, record = await dashboard.log_in(), dashboard.parts.tools.reconciliation
    page = (await client.get("/money/reconciliation")).text
    assert ("Not reconciled yet" in page, "No differences" in page) == (True, False)
    await record.write(Run(read=1, position=9, differences=[]))
    page = (await client.get("/money/reconciliation")).text
    assert ("Not reconciled yet" in page, "No differences" in page) == (False, True)


async def test_the_comparison_with_telegram_is_shown_and_run_once(dashboard: DashboardWorld) -> None:
    client, record = await dashboard.log_in(), dashboard.parts.tools.reconciliation
    found = PaymentDifference(
        kind=PaymentDifferenceKind.MISSED_PAYMENT, charge="charge-7", user="1001", paid_amount=250, at=datetime.now(UTC)
    )
    await record.write(Run(read=1, position=9, differences=[found]))

    page = (await client.get("/money/reconciliation")).text
    for text in ("Missed payment, credited now", "charge-7", "250"):
        assert text in page
    assert "a few seconds ago" in (await client.follow("/money/reconciliation")).text
    await move_back(dashboard, "chat:reconciliation", 60)
    dashboard.telegram.missed = 2
    assert "Missed transactions recorded: 2" in (await client.follow("/money/reconciliation")).text
    await move_back(dashboard, "chat:reconciliation", 60)
    dashboard.telegram.error = ChannelBusy(3.0, "Telegram is busy")
    assert "Not reconciled: Telegram is busy" in (await client.follow("/money/reconciliation")).text


async def test_a_balance_that_telegram_does_not_give_does_not_break_the_page(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    dashboard.telegram.error = ChannelBusy(3.0)
    assert "Telegram isn&#39;t responding" in (await client.get("/money")).text


async def test_the_ledger_check_runs_in_the_background_and_names_what_is_wrong(dashboard: DashboardWorld) -> None:
    client, check = await dashboard.log_in(), dashboard.parts.tools.full_check
    ann = await add_user(dashboard, credits_=5)
    assert "runs in the background" in (await client.follow("/money/check")).text
    await check.wait()
    assert "adds up" in (await client.get("/money/check")).text

    await raw(dashboard, f"UPDATE accounts SET available = 1 WHERE id = {ann}")  # noqa: S608
    await client.follow("/money/check", {"request_key": "second"})
    await check.wait()
    page = (await client.get("/money/check")).text
    assert "1 violation" in page
    assert "available 1, ledger 5000" in page


async def raw(dashboard: DashboardWorld, statement: str) -> None:
    assert isinstance(dashboard.store, SqliteStore)
    await dashboard.store.session.call(lambda connection: connection.execute(statement).fetchall())


async def move_back(dashboard: DashboardWorld, key: str, seconds: float) -> None:
    """Make an entry older."""
    microseconds = timedelta(seconds=seconds) // timedelta(microseconds=1)
    await raw(dashboard, f"UPDATE kv SET at = at - {microseconds} WHERE key = '{key}'")  # noqa: S608


async def test_successive_days_without_orders_are_one_line(dashboard: DashboardWorld) -> None:
    page = (await (await dashboard.log_in()).get("/money?since=2020-01-01&until=2020-01-10")).text

    assert page.count("no orders, no payments") == 1
    assert "1 Jan 2020 \N{EN DASH} 10 Jan 2020" in page


async def test_a_time_of_another_year_has_its_year(dashboard: DashboardWorld) -> None:
    for charge in ("new", "old"):
        await add_payment(dashboard, await add_user(dashboard, charge), charge)
    old = (datetime(2020, 3, 1, 12, 30, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    await raw(dashboard, f"UPDATE payments SET at = {old} WHERE charge = 'old'")  # noqa: S608

    page = (await (await dashboard.log_in()).get("/money/payments")).text

    assert re.findall(r">(1 Mar 2020, 12:30)</time>", page)
    assert len(re.findall(r">\d+ \w+, \d\d:\d\d</time>", page)) == 1
