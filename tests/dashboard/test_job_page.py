"""The page of a job: everything that is known, escaped and cut; every action once, and told before it is done."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genlock.domain.delivery import MESSAGE_ONLY, Part
from genlock.domain.job import AttentionCode, Delivery, Job, State, hash_secret
from genlock.domain.job_event import EventRow
from genlock.domain.money import EntryKind, HoldState
from genlock.domain.operator import OperatorRole
from genlock.domain.result import PartKind
from genlock.ports import EndJob, NewCallback, Reschedule
from tests.dashboard.job_pages import form, settled, with_result
from tests.dashboard.world import Client, DashboardWorld, running_dashboard
from tests.databases import new_sqlite
from tests.stores import builders
from tests.stores.builders import SECRET, ended, ensure_profile, finish, queued, running, see

HOSTILE = "<script>alert(1)</script>\u202e\x07" + "я" * 100_000


@pytest.fixture
async def client(dashboard: DashboardWorld) -> Client:
    return await dashboard.log_in()


async def press(client: Client, job: Job, action: str) -> str:
    """Open the page of the job, press a button, and return the page that follows."""
    page = (await client.get(f"/jobs/{job.id}")).text
    return (await client.follow(f"/jobs/{job.id}/{action}", form(page, action))).text


async def test_the_page_tells_the_whole_life_of_a_job(dashboard: DashboardWorld, client: Client) -> None:
    job = await settled(dashboard, model="z-image", price=750)
    events = '[[900,"SUBMIT_OK",{"task_id":"t-1"}],[10,"DELIVER_LOCK_WIN",{"token":3}]]'
    await dashboard.store.add_job_events(
        "instance-7", [EventRow(correlation_id=job.correlation_id, number=1, events=events)]
    )
    await dashboard.store.add_audit(key="k", actor="42", action="resend", subject=f"#{job.id}", detail="")

    page = await client.get(f"/jobs/{job.id}")

    assert page.status == 200
    for text in (
        f"Order #{job.id}", "Z-Image", "Order accepted", "Credits held", "0.75", "The provider completed the order",
        "An instance started the delivery", "instance-7", "Delivered to the chat", "Credits charged",
        "Operator (42): Send again", "a cat", job.correlation_id, f"/dashboard/users/{job.account_id}",
    ):  # fmt: skip
        assert text in page.text, text


async def test_the_page_shows_what_the_provider_got_and_not_what_it_would_get_now(
    dashboard: DashboardWorld, client: Client
) -> None:
    job = await queued(dashboard.store, model="z-image", provider="kie", input='{"prompt": "a cat"}')
    before = await client.get(f"/jobs/{job.id}")
    sent = '{"prompt": "a cat", "image": "https://files.example/as-it-was-sent.png"}'
    assert await dashboard.store.begin_submit(job.id, job.lease_token, hash_secret("x"), None, "kie", "old-image", sent)
    after = await client.get(f"/jobs/{job.id}")

    assert "as-it-was-sent" not in before.text
    assert "https://files.example/as-it-was-sent.png" in after.text
    assert "old-image" in after.text


async def test_an_unknown_number_is_answered_kindly(client: Client) -> None:
    for number in ("404", "9" * 40):
        page = await client.get(f"/jobs/{number}")
        assert (page.status, "Order not found" in page.text) == (404, True)
    assert (await client.get("/jobs/x7")).status == 404


async def test_hostile_texts_are_escaped_and_cut(dashboard: DashboardWorld, client: Client) -> None:
    store = dashboard.store
    running_job = await running(store, price=0, input='{"prompt": "<b>&"}', model="<i>model</i>")
    arrival = NewCallback(provider="kie", secret_hash=hash_secret(SECRET), body=HOSTILE)
    ending = EndJob(
        job_id=running_job.id, state=State.FAILED, parts=MESSAGE_ONLY, error_code="<e>", error_text=HOSTILE,
        arrival=arrival,
    )  # fmt: skip
    ended_job = await store.end_job(ending, None)
    assert ended_job.callback
    fields = f'[[0,"CALLBACK_RECEIVED",{{"callback":{ended_job.callback.id}}}],[0,"<X>",{{"<k>":"<v>"}}]]'
    await store.add_job_events("<one>", [EventRow(correlation_id=running_job.correlation_id, number=1, events=fields)])
    await ensure_profile(
        store, running_job.account_id, language="en", name=HOSTILE[:60], username="ann", referred_by=None
    )

    page = (await client.get(f"/jobs/{running_job.id}")).text

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    for raw in ("<b>&", "<i>model", "<e>", "<X>", "<k>", "<v>", "<one>", "\u202e", "\x07"):
        assert raw not in page, raw
    assert len(page) < 60_000
    assert "Raw body, secrets hidden" in page


async def test_without_the_permission_nothing_of_the_user_is_shown(tmp_path: Any) -> None:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", viewers_see_prompts=False) as world:
        job = await settled(world, input='{"prompt": "a secret wish"}')
        viewer = await world.log_in(OperatorRole.VIEWER)

        page = await viewer.get(f"/jobs/{job.id}")

        assert page.status == 200
        assert "secret wish" not in page.text
        assert "see what users write and receive" in page.text
        assert 'method="post" action="/dashboard/jobs' not in page.text
        assert (await viewer.get(f"/jobs/{job.id}/results/1")).status == 403


# actions


async def test_a_resend_happens_once_and_is_in_the_audit_log(dashboard: DashboardWorld, client: Client) -> None:
    job = await settled(dashboard)
    page = (await client.get(f"/jobs/{job.id}")).text
    assert "t charged again" in page
    fields = form(page, "resend")

    first = await client.follow(f"/jobs/{job.id}/resend", fields)
    second = await client.follow(f"/jobs/{job.id}/resend", fields)

    assert "is being sent again" in first.text
    assert "Nothing was done: the order has changed since you opened the page" in second.text
    now = await see(dashboard.store, job)
    assert (now.delivery, now.lease_token) == (Delivery.PENDING, job.lease_token + 1)
    [line] = await dashboard.store.audit_about([f"#{job.id}"], 10)
    assert (line.actor, line.action, "delivered" in line.detail) == ("7", "resend", True)


async def test_a_resend_that_was_done_and_delivered_meanwhile_is_not_done_again(
    dashboard: DashboardWorld, client: Client
) -> None:
    job = await settled(dashboard)
    fields = form((await client.get(f"/jobs/{job.id}")).text, "resend")
    assert await dashboard.store.resend_job(job.id, job.parts, job.lease_token)
    again = await builders.claimed(dashboard.store, job)
    assert await finish(dashboard.store, again)

    answer = await client.follow(f"/jobs/{job.id}/resend", fields)

    assert "Nothing was done" in answer.text
    assert (await see(dashboard.store, job)).delivery is Delivery.DELIVERED


async def test_a_refund_returns_the_price_and_tells_the_user(dashboard: DashboardWorld, client: Client) -> None:
    job = await settled(dashboard, channel="chat")
    await dashboard.store.set_account_address(job.account_id, "here")
    before = await dashboard.store.wallet(job.account_id)

    page = await press(client, job, "refund")

    assert "is refunded, and the user is being notified" in page
    assert (await dashboard.store.wallet(job.account_id)).available == before.available + job.price
    assert [address for address, _ in dashboard.channel.told] == ["here"]
    assert "charged and refunded" in page
    assert re.search(r"<button disabled title=\"The order has already been refunded", page)


async def test_a_cancel_releases_the_hold_of_a_polled_job(dashboard: DashboardWorld, client: Client) -> None:
    job = await running(dashboard.store, provider="fake")
    fields = form((await client.get(f"/jobs/{job.id}")).text, "cancel")
    await dashboard.store.retry_job(job.id)  # a poll in between changes the lease token, but nothing that matters

    answer = await client.follow(f"/jobs/{job.id}/cancel", fields)

    assert "is cancelled" in answer.text
    now = await see(dashboard.store, job)
    assert (now.state, now.hold_state) == (State.CANCELLED, HoldState.RELEASED)


async def test_a_stale_form_says_what_the_order_is_now(dashboard: DashboardWorld, client: Client) -> None:
    job = await running(dashboard.store)
    fields = form((await client.get(f"/jobs/{job.id}")).text, "retry")
    await builders.end(dashboard.store, job, State.FAILED, None)
    before = await see(dashboard.store, job)

    answer = await client.follow(f"/jobs/{job.id}/retry", fields)

    assert "It was: running, not started, held. It is now: failed, waiting" in answer.text
    assert (await see(dashboard.store, job)).lease_token == before.lease_token
    assert await dashboard.store.audit_about([f"#{job.id}"], 10) == []


async def test_what_is_not_possible_is_disabled_with_its_reason_and_refused(
    dashboard: DashboardWorld, client: Client
) -> None:
    job = await settled(dashboard, price=0)
    page = (await client.get(f"/jobs/{job.id}")).text
    for action, reason in {
        "retry": "The order has ended: send the result again",
        "cancel": "The order has already ended",
        "refund": "The order was free.",
        "handled": "The order isn&#39;t on the Needs attention list",
    }.items():
        assert f'<button disabled title="{reason}' in page
        seen = form(page, "resend")
        assert reason in (await client.follow(f"/jobs/{job.id}/{action}", seen)).text
    assert replace(await see(dashboard.store, job), read_at=job.read_at) == job


async def test_a_handled_job_leaves_the_list(dashboard: DashboardWorld, client: Client) -> None:
    job = await ended(dashboard.store)
    assert await finish(dashboard.store, job, Delivery.UNDELIVERABLE)

    page = await press(client, job, "handled")

    assert "is marked as handled" in page
    assert (await see(dashboard.store, job)).attention_code is None


async def park(dashboard: DashboardWorld, job: Job) -> None:
    assert await dashboard.store.begin_submit(job.id, job.lease_token, "hash", None)
    parked = Reschedule(
        job_id=job.id,
        token=job.lease_token,
        after=None,
        attention_code=AttentionCode.PARKED,
        attention_reason="submit_unknown",
    )
    assert await dashboard.store.reschedule(parked)


async def test_a_retry_of_a_parked_order_warns_of_the_second_bill(dashboard: DashboardWorld, client: Client) -> None:
    job = await builders.queued(dashboard.store)
    await park(dashboard, job)

    assert "you pay for it twice" in (await client.get(f"/jobs/{job.id}")).text
    assert "is being processed now" in await press(client, job, "retry")
    assert (await see(dashboard.store, job)).state is State.QUEUED


async def test_a_form_submits_a_parked_order_once(dashboard: DashboardWorld, client: Client) -> None:
    job = await builders.queued(dashboard.store)
    await park(dashboard, job)
    fields = form((await client.get(f"/jobs/{job.id}")).text, "retry")
    await client.follow(f"/jobs/{job.id}/retry", fields)
    await park(dashboard, await builders.claimed(dashboard.store, job))

    answer = await client.follow(f"/jobs/{job.id}/retry", fields)

    assert "is being processed now" not in answer.text
    assert (await see(dashboard.store, job)).state is State.SUBMITTING


# live


async def test_the_live_part_is_sent_only_if_something_is_new(dashboard: DashboardWorld, client: Client) -> None:
    job = await running(dashboard.store)
    page = (await client.get(f"/jobs/{job.id}")).text
    [address] = re.findall(r'hx-get="/dashboard([^"]*/live[^"]*)"', page)
    address = address.replace("&amp;", "&")

    assert (await client.get(address)).status == 204
    row = EventRow(correlation_id=job.correlation_id, number=1, events='[[0,"POLL_STATE",{"word":"x"}]]')
    await dashboard.store.add_job_events("one", [row])
    changed = await client.get(address)
    assert (changed.status, "Status queries with this answer: 1" in changed.text) == (200, True)
    assert "<html" not in changed.text
    await builders.end(dashboard.store, job, State.FAILED)
    ended_now = await client.get(address)
    assert (ended_now.status, ended_now.headers["HX-Refresh"]) == (204, "true")
    settled_job = await settled(dashboard)
    assert "/live" not in (await client.get(f"/jobs/{settled_job.id}")).text


# results


async def test_a_text_result_is_shown_and_a_number_that_does_not_exist_is_not_found(
    dashboard: DashboardWorld, client: Client
) -> None:
    job = await with_result(dashboard, Part(kind=PartKind.TEXT, value="<b>hello"))

    page = await client.get(f"/jobs/{job.id}")

    assert "&lt;b&gt;hello" in page.text
    for number in (0, 1, 2, 10**30):
        assert (await client.get(f"/jobs/{job.id}/results/{number}")).status == 404


async def test_a_preview_refuses_private_addresses(dashboard: DashboardWorld, client: Client) -> None:
    urls = ["http://127.0.0.1:1/x.png", "http://169.254.169.254/latest", "file:///etc/passwd", "http://[::1]/", "::::"]
    job = await with_result(dashboard, *(Part(kind=PartKind.FILE, value=url) for url in urls))

    for number in range(1, len(urls) + 1):
        shown = await client.get(f"/jobs/{job.id}/results/{number}/preview", **{"HX-Request": "true"})
        opened = await client.get(f"/jobs/{job.id}/results/{number}")
        assert "a private address" in shown.text, urls[number - 1]
        assert (shown.status, opened.status) == (200, 502)


async def test_money_of_a_job_without_capture_is_no_revenue(dashboard: DashboardWorld, client: Client) -> None:
    job = await queued(dashboard.store, price=900)
    await dashboard.store.transfer(job.account_id, EntryKind.GRANT, 5, "other")

    page = (await client.get(f"/jobs/{job.id}")).text

    assert "unknown: the provider hasn&#39;t reported its cost" in page
    assert "held" in page


async def test_supports_refunds_and_free_runs_count_under_its_daily_limit(tmp_path: Path) -> None:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", support_credits_max=0.15) as dashboard:
        await dashboard.parts.editor.save("z-image", {"free": True}, follows=0, author="7", request_key="k")
        client = await dashboard.log_in(OperatorRole.SUPPORT)
        first, second = await settled(dashboard), await settled(dashboard)
        assert first.price == 100
        await press(client, first, "refund")
        assert await dashboard.store.allowance_used("id-of-support") == 100
        refused = await press(client, second, "refund")
        assert "0.1\u00a0credits is more than you can still move today" in refused
        assert await dashboard.store.ledger_entry(f"refund:{second.id}") is None
        runs = await client.post(f"/users/{first.account_id}/free-runs", {"runs": "3", "request_key": "k"})
        assert (runs.status, "more than you can still move today" in runs.text) == (409, True)
        assert (await dashboard.store.free_runs(first.account_id, 0)).gifts == 0
        owner = await dashboard.log_in()
        assert "is refunded" in await press(owner, second, "refund")
        assert await dashboard.store.allowance_used("id-of-support") == 100
