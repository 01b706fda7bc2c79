"""The audit log: filters in the address, changes as a diff, pages, CSV."""

import asyncio
import csv
import io
import json
from typing import Any

import pytest

from genlock.dashboard.job_actions import JobAction
from genlock.domain.bulk import BulkKind
from genlock.domain.operator import Operator, OperatorRole
from tests.dashboard.users import add_user
from tests.dashboard.world import DashboardWorld


async def add(dashboard: DashboardWorld, number: int, **line: str) -> None:
    values = {"actor": "7", "action": "ban", "subject": "1", "detail": f"line {number}.", **line}
    await dashboard.store.add_audit(key=f"test-{number}", **values)


async def test_a_change_is_shown_as_a_diff(dashboard: DashboardWorld) -> None:
    await dashboard.store.set_operator(Operator(id="8", role=OperatorRole.SUPPORT, name="Ann"), "7")
    changed = {"before": {"price": 8, "hidden": False}, "after": {"price": 9, "hidden": False, "title": "<b>"}}
    await add(dashboard, 1, actor="8", action="edit_model", subject="z-image", detail=json.dumps(changed))
    await add(dashboard, 2, detail=json.dumps({"after": "plain"}))
    await add(dashboard, 3, subject="#12", action="refund", detail="as it is <i>")

    text = (await (await dashboard.log_in()).get("/audit")).text

    assert "<bdi>8</bdi></del>" in text
    assert "<bdi>9</bdi></ins>" in text
    assert "hidden:" not in text, "unchanged"
    assert "<bdi>&lt;b&gt;</bdi></ins>" in text
    assert "<bdi>plain</bdi></ins>" in text
    assert "as it is &lt;i&gt;" in text
    assert "Ann" in text
    assert 'href="/dashboard/jobs/12"' in text
    assert 'href="/dashboard/users/1"' in text
    assert text.index("as it is") < text.index("plain") < text.index("z-image")


async def test_what_operators_do_is_named_in_words_and_credits(dashboard: DashboardWorld) -> None:
    client, ann = await dashboard.log_in(), await add_user(dashboard)
    moved = {"request_key": "k", "direction": "credit", "amount": "1234567.5", "reason": "gift"}
    await client.follow(f"/users/{ann}/credits", moved)
    await client.follow("/campaigns/promos", {"code": "SPRING", "amount": "25", "each": "1"})
    for action in (*JobAction, *(f"bulk_{kind}" for kind in BulkKind), *(f"bulk_{kind}_done" for kind in BulkKind)):
        await dashboard.store.add_audit(key=action, actor="7", action=action, subject="#1", detail="")

    text = (await client.get("/audit")).text

    assert "<bdi>1234567.5</bdi>" in text
    assert "<bdi>25</bdi>" in text
    assert "000</bdi>" not in text, "no thousandths"
    assert "<code>" not in text, "every action has a name"


@pytest.mark.parametrize(
    ("action", "subject", "detail", "shown"),
    [
        ("refund", "#7", {"before": "succeeded/delivered/captured/", "after": "refunded 24 credits"},
         ("<bdi>24\N{NO-BREAK SPACE}кредита</bdi>",)),
        ("refund", "#7", "1.5", ("<bdi>1,5\N{NO-BREAK SPACE}кредита</bdi>",)),
        ("credit", "3", "20: за ошибку", ("<bdi>20\N{NO-BREAK SPACE}кредитов, причина: за ошибку</bdi>",)),
        ("resend", "#7", {"before": "succeeded/undeliverable/held/x", "after": "succeeded/pending/held/"},
         ("<bdi>доставить нельзя</bdi></del> → ", "<bdi>ожидает</bdi>")),
        ("handled", "#7", {"before": "failed/delivered/released/x", "after": "failed/delivered/released/"},
         ("<bdi>не выполнен, доставлен, не списано</bdi>",)),
        ("set_operator", "8", {"before": {"role": "viewer"}, "after": {"role": "support"}},
         ("роль:", "наблюдатель", "поддержка")),
        ("edit model", "z", {"before": {"status": "offered", "price": 8}, "after": {"status": "paused", "price": 9}},
         ("Статус:", "продаётся", "Своя цена", ">8<", ">9<")),
        ("create_api_key", "3", {"after": {"scopes": ["order", "read"], "key": 4}}, ("доступ:", "заказы, чтение")),
        ("bulk_retry", "bulk 3", {"after": {"jobs": [5], "expected": "about 21"}},
         ("массовое действие 3", "ожидалось:", "примерно 21 заказ")),
        ("bulk_retry_done", "bulk 3", {"jobs": 5, "done": 4, "left_out": 1}, ("сделано:", ">4<", "пропущено:")),
        ("refund of stars", "c1", {"after": {"stars": 50, "credits taken": "200"}}, ("звёзды:", "списано кредитов:")),
        ("erasure", "3", "requested", ("запрошено",)),
        ("refund by Telegram", "c1", "50 ⭐, account 3: 200 credits deducted, 0 owed",
         ("счёт 3; списано кредитов: 200, долг: 0",)),
        ("login", "token", "", ("токен",)),
        ("maintenance", "on", "wait", ("включены", "wait")),
        ("anomalies.handled", "anomaly 4", "", ("расхождение 4",)),
    ],
)  # fmt: skip
async def test_what_the_service_wrote_is_in_the_language_of_the_viewer(
    dashboard: DashboardWorld, action: str, subject: str, detail: object, shown: tuple[str, ...]
) -> None:
    written = detail if isinstance(detail, str) else json.dumps(detail)
    await add(dashboard, 1, action=action, subject=subject, detail=written)

    client = await dashboard.log_in()
    rows = (await client.get("/audit", **{"Accept-Language": "ru"})).text.partition("<tbody>")[2]

    for words in shown:
        assert words in rows


@pytest.mark.parametrize("detail", ["requested", "refunded 24 credits", '{"after": {"reason": "owner"}}'])
async def test_the_words_of_an_operator_are_not_translated(dashboard: DashboardWorld, detail: str) -> None:
    await add(dashboard, 1, action="ban", subject="all", detail=detail)

    rows = (await (await dashboard.log_in()).get("/audit", **{"Accept-Language": "ru"})).text.partition("<tbody>")[2]

    said = json.loads(detail)["after"]["reason"] if detail.startswith("{") else detail
    assert f"<bdi>{said}</bdi>" in rows
    assert "<bdi>all</bdi>" in rows


async def test_filters_live_in_the_address_and_combine(dashboard: DashboardWorld) -> None:
    await add(dashboard, 1, actor="8", action="ban", subject="1")
    await add(dashboard, 2, actor="8", action="unban", subject="2")
    await add(dashboard, 3, actor="9", action="ban", subject="2")
    client = await dashboard.log_in()
    expected = {
        "actor=8": {1, 2},
        "action=ban": {1, 3},
        "subject=2": {2, 3},
        "actor=8&subject=2": {2},
        "since=2020-01-01": {1, 2, 3},
        "until=2020-01-01": set(),
        "actor=404": set(),
    }
    for query, numbers in expected.items():
        text = (await client.get(f"/audit?{query}")).text
        assert {number for number in (1, 2, 3) if f"line {number}." in text} == numbers, query
        assert ("No entries match" in text) == (not numbers), query


async def test_a_filter_without_a_meaning_is_named_and_the_others_apply(dashboard: DashboardWorld) -> None:
    await add(dashboard, 1, actor="8")
    await add(dashboard, 2, actor="9")
    client = await dashboard.log_in()
    text = (await client.get("/audit?actor=8&colour=red&since=yesterday&before=x")).text
    for problem in ("There&#39;s no filter “colour”", "“yesterday” doesn&#39;t fit “since”", "“x” doesn&#39;t fit"):
        assert problem in text
    assert "line 1." in text
    assert "line 2." not in text
    assert "“2026-01-01” doesn&#39;t fit" in (await client.get("/audit?since=2026-02-01&until=2026-01-01")).text
    export = await client.get("/audit/export.csv?colour=red")
    assert (export.status, export.headers["Location"]) == (303, "/dashboard/audit?colour=red")


async def test_older_lines_are_on_the_next_page_with_the_same_filters(dashboard: DashboardWorld) -> None:
    for number in range(55):
        await add(dashboard, number, actor="8")
    client = await dashboard.log_in()
    first = (await client.get("/audit?actor=8")).text
    assert "line 54." in first
    assert "line 4." not in first
    before = first.split("before=")[1].split('"')[0]
    second = (await client.get(f"/audit?actor=8&before={before}")).text
    assert "line 4." in second
    assert "line 54." not in second
    assert f"actor=8&amp;before={before}" in first


async def test_the_file_has_every_matching_line_and_runs_no_formula(dashboard: DashboardWorld) -> None:
    for number in range(3):
        await add(dashboard, number, actor="8", detail="=cmd()" if number == 2 else "x")
    answer = await (await dashboard.log_in()).get("/audit/export.csv?actor=8")
    rows = list(csv.reader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert rows[0] == ["id", "at", "bot", "actor", "action", "subject", "detail"]
    assert [row[6] for row in rows[1:]] == ["'=cmd()", "x", "x"]
    assert "attachment" in answer.headers["Content-Disposition"]


async def test_a_reused_key_of_a_form_hides_no_action(dashboard: DashboardWorld) -> None:
    """The key comes from outside: it makes one form act once, and must not keep other actions out of the log."""
    ann, support = await add_user(dashboard), await dashboard.log_in(OperatorRole.SUPPORT)
    for path, fields in (("ban", {"reason": "spam"}), ("unban", {}), ("ban", {"reason": "spam"})):
        answer = await support.post(f"/users/{ann}/{path}", {"request_key": "k", **fields})
        assert answer.status == 303
    for query in ("model=z-image", "model=veo"):
        await support.post("/jobs/export", {"request_key": "k", "scope": "all", "query": query})

    lines = [(line.action, line.detail) for line in await dashboard.store.audit(20)]

    assert [action for action, _ in lines].count("ban") == 2
    exported = [detail for action, detail in lines if action == "export_jobs"]
    assert [("veo" in detail, "z-image" in detail) for detail in exported] == [(True, False), (False, True)]


async def test_a_form_that_acts_once_adds_one_line(dashboard: DashboardWorld) -> None:
    ann, owner = await add_user(dashboard), await dashboard.log_in()
    form = {"request_key": "k", "direction": "credit", "amount": "2", "reason": "sorry"}
    for _ in range(3):
        await owner.post(f"/users/{ann}/credits", form)
    assert [line.action for line in await dashboard.store.audit(20)] == ["credit", "login"]
    assert (await dashboard.store.wallet(ann)).available == 2_000


async def test_a_session_has_one_download_at_a_time(dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    client, other = await dashboard.log_in(), await dashboard.log_in()
    search, reading, read = dashboard.store.search_audit, asyncio.Event(), asyncio.Event()

    async def slowly(*args: Any, **how: Any) -> Any:
        reading.set()
        await read.wait()
        return await search(*args, **how)

    monkeypatch.setattr(dashboard.store, "search_audit", slowly)
    first = asyncio.create_task(client.get("/audit/export.csv"))
    await reading.wait()
    second = await client.get("/audit/export.csv")
    assert (second.status, "A download is already running" in second.text) == (429, True)
    another = asyncio.create_task(other.get("/audit/export.csv"))
    read.set()
    assert ((await first).status, (await another).status) == (200, 200)
    assert (await client.get("/audit/export.csv")).status == 200
