"""What waits for an operator: every group with its fix, each done once, and the second operator is told."""

import re

import pytest

from genlock.dashboard.attention_groups import GROUPS
from genlock.domain.inbox import InboxState
from genlock.domain.job import AttentionCode, Delivery, Job, State
from genlock.domain.operator import OperatorRole
from genlock.domain.update import UpdateState
from genlock.engine import attention
from genlock.i18n.translator import package_texts
from genlock.stores.database import SqlDatabase
from tests.dashboard.world import Client, DashboardWorld
from tests.stores.builders import ME, end, ended, finish, see, update

HOSTILE = "<script>alert(1)</script>\u202e" + "x" * 100_000


@pytest.fixture
async def client(dashboard: DashboardWorld) -> Client:
    return await dashboard.log_in()


async def undeliverable(
    store: SqlDatabase, code: AttentionCode = AttentionCode.UNDELIVERABLE, why: str = "blocked"
) -> Job:
    job = await ended(store)
    assert await finish(store, job, Delivery.UNDELIVERABLE, attention_code=code, attention_reason=why)
    return await see(store, job)


async def unreadable(store: SqlDatabase, body: bytes = b"<html>") -> int:
    callback = await store.store_callback("kie", None, "", body)
    await store.settle_callback(callback.id, InboxState.UNREADABLE, note="not JSON")
    return callback.id


async def dead_update(store: SqlDatabase, number: int = 1) -> int:
    await store.store_update(update(number, body=f'{{"text": "{HOSTILE}"}}'))
    [queue] = await store.claim_update_queues(10, ME, bots=["bot"], urgent=False)
    assert queue.update
    assert await store.settle_update(queue, UpdateState.DEAD, "RuntimeError('<b>')", ME)
    return queue.update.id


def forms(page: str, path: str) -> list[dict[str, str]]:
    """The hidden fields of every button that posts to an address of this form."""
    found = re.findall(rf'action="/dashboard{path}".*?</form>', page, re.DOTALL)
    return [dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)) for form in found]


async def test_nothing_waits_at_first(client: Client) -> None:
    page = await client.get("/attention")

    assert "Nothing needs your attention" in page.text
    for group in GROUPS:
        assert (await client.get(f"/attention/{group.name}")).status == 200
    assert (await client.get("/attention/nonsense")).status == 404


def test_every_group_has_its_texts_in_every_language() -> None:
    texts = package_texts()
    missing = [
        f"{code}: {group.name}.{text}"
        for code, language in texts.languages.items()
        for group in GROUPS
        for text in ("title", "meaning", "fix")
        if f"dashboard.attention.group.{group.name}.{text}" not in language.texts
    ]
    assert missing == []


async def test_every_reason_is_listed_with_its_fix_and_counted_in_the_navigation(
    dashboard: DashboardWorld, client: Client
) -> None:
    store = dashboard.store
    for code in AttentionCode:
        await undeliverable(store, code, HOSTILE)
    await end(store, await ended(store), State.FAILED)
    await unreadable(store, HOSTILE.encode())
    await dead_update(store)
    await store.kv_put(f"{attention.COST_ABOVE_PRICE}<model>", "7")

    page = (await client.get("/attention")).text

    waiting = {*AttentionCode, "contradiction", "unreadable", "dead_update", "cost_above_price"}
    assert set(re.findall(r'<section class="card" aria-labelledby="group-(\w+)"', page)) == waiting
    assert re.search(r'href="/dashboard/attention"[^>]*>\s*Needs attention\s*<span class="count">11<', page)
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "<model>" not in page
    assert len(page) < 200_000


async def test_the_cost_of_a_cancelled_order_is_shown_with_the_money_and_asks_for_nothing(
    dashboard: DashboardWorld, client: Client
) -> None:
    empty = (await client.get("/attention/loss")).text
    assert "The provider has charged for no cancelled order." in empty
    assert "Another operator may have handled it" not in empty
    cancelled = await ended(dashboard.store, State.CANCELLED)
    await end(dashboard.store, cancelled, State.SUCCEEDED, cost=7)

    page = (await client.get("/attention")).text
    assert "Nothing needs your attention" in page
    assert '<span class="count">' not in page
    assert 'href="/dashboard/attention/loss"' in (await client.get("/money")).text

    found = (await client.get("/attention/loss")).text
    assert "<h1>Cost of cancelled orders</h1>" in found
    assert f'href="/dashboard/jobs/{cancelled.id}"' in found
    assert "Mark as handled" not in found
    order = (await client.get(f"/jobs/{cancelled.id}")).text
    assert re.search(r'<p class="quiet">The provider charged for this order although it was cancelled', order)


@pytest.mark.parametrize(
    "code", [AttentionCode.UNKNOWN_DELIVERY, AttentionCode.RETRIES_EXHAUSTED, AttentionCode.UNDELIVERABLE]
)
async def test_a_result_that_was_partly_shown_and_charged_is_not_said_to_be_free(
    dashboard: DashboardWorld, client: Client, code: AttentionCode
) -> None:
    job = await ended(dashboard.store)
    assert await finish(dashboard.store, job, attention_code=code, attention_reason="1 of 2 parts shown")
    page = (await client.get(f"/attention/{code}")).text

    assert f"/jobs/{job.id}" in page
    assert ">charged<" in page
    assert "charged; otherwise it isn&#39;t" in page
    assert "Nothing was charged" not in page


async def test_a_job_is_sent_again_from_the_list_and_the_second_operator_is_told(
    dashboard: DashboardWorld, client: Client
) -> None:
    job = await undeliverable(dashboard.store)
    other = await dashboard.log_in(OperatorRole.SUPPORT)
    [mine] = forms((await client.get("/attention")).text, f"/jobs/{job.id}/resend")
    [theirs] = forms((await other.get("/attention/undeliverable")).text, f"/jobs/{job.id}/resend")

    first = await client.follow(f"/jobs/{job.id}/resend", mine)
    second = await other.follow(f"/jobs/{job.id}/resend", theirs)

    assert "is being sent again" in first.text
    assert "Nothing needs your attention" in first.text
    assert "the order has changed since you opened the page" in second.text
    assert "This group is empty" in second.text


async def test_updates_callbacks_anomalies_and_costs_are_handled_once_with_an_audit_line(
    dashboard: DashboardWorld, client: Client
) -> None:
    store = dashboard.store
    updates = [await dead_update(store, number) for number in (1, 2)]
    callbacks = [await unreadable(store) for _ in range(2)]
    await end(store, await ended(store), State.FAILED)
    await store.kv_put(f"{attention.COST_ABOVE_PRICE}z-image", "7")
    page = (await client.get("/attention")).text
    paths = [
        f"/attention/updates/{updates[0]}/retry",
        f"/attention/updates/{updates[1]}/discard",
        f"/attention/callbacks/{callbacks[0]}/retry",
        f"/attention/callbacks/{callbacks[1]}/close",
        "/attention/anomalies/1/handled",
        "/attention/costs/handled",
    ]
    for path in paths:
        [fields] = forms(page, path)
        first = await client.follow(path, fields)
        second = await client.follow(path, fields)
        assert 'class="notice good"' in first.text, path
        assert "it has already been handled" in second.text, path

    assert await attention_counts(store) == {}
    lines = await store.audit(20)
    assert [line.action for line in lines if line.action != "login"][::-1] == [
        "updates.retry", "updates.discard", "callbacks.retry", "callbacks.close", "anomalies.handled", "costs.handled",
    ]  # fmt: skip


async def attention_counts(store: SqlDatabase) -> dict[str, int]:
    counts = await store.attention_counts(10, attention.REFUND_OVERDUE_SECONDS)
    return {name: number for name, number in counts.items() if number}


async def test_a_newer_cost_above_the_price_is_not_accepted_unseen(dashboard: DashboardWorld, client: Client) -> None:
    key = f"{attention.COST_ABOVE_PRICE}z-image"
    await dashboard.store.kv_put(key, "7")
    [fields] = forms((await client.get("/attention")).text, "/attention/costs/handled")
    await dashboard.store.kv_put(key, "9")

    assert "already been handled" in (await client.follow("/attention/costs/handled", fields)).text
    assert await dashboard.store.kv_get(key)


async def test_only_an_owner_asks_for_open_refunds_again(
    dashboard: DashboardWorld, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "REFUND_OVERDUE_SECONDS", 0.0)
    await dashboard.store.kv_put("chat:refund:charge-1", "42", "bot")
    support = await dashboard.log_in(OperatorRole.SUPPORT)

    page = (await client.get("/attention/open_refund")).text
    [fields] = forms(page, "/attention/refunds/retry")

    assert "charge-1" in page
    assert "Telegram was asked again" in (await client.follow("/attention/refunds/retry", fields)).text
    assert forms((await support.get("/attention/open_refund")).text, "/attention/refunds/retry") == []
    assert (await support.post("/attention/refunds/retry")).status == 403


def shown(page: str) -> list[int]:
    """The numbers of the orders on the page."""
    return [int(number) for number in re.findall(r'class="order".*?>#(\d+)</a>', page)]


async def test_a_long_group_is_paged_by_cursor_and_a_broken_cursor_shows_the_newest(
    dashboard: DashboardWorld, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.dashboard.pages.attention.SHOWN_ON_GROUP", 2)
    jobs = [await undeliverable(dashboard.store) for _ in range(5)]
    pages, path = [], "/attention/undeliverable"
    while path:
        page = (await client.get(path)).text
        pages.append(shown(page))
        older = re.findall(r'href="/dashboard(/attention/undeliverable\?before=\d+)">Older', page)
        path = older[0] if older else ""

    ids = [job.id for job in jobs][::-1]
    assert pages == [ids[:2], ids[2:4], ids[4:]]
    for broken in ("x", "-1", "9" * 50, "²"):
        assert shown((await client.get(f"/attention/undeliverable?before={broken}")).text) == ids[:2]


async def test_a_viewer_sees_the_list_without_buttons(dashboard: DashboardWorld) -> None:
    await undeliverable(dashboard.store)
    await dead_update(dashboard.store)
    viewer = await dashboard.log_in(OperatorRole.VIEWER)

    page = (await viewer.get("/attention")).text

    assert "Undeliverable" in page
    assert 'action="/dashboard/jobs' not in page
    assert 'action="/dashboard/attention' not in page
