"""The list of orders and bulk actions on them, over HTTP and in a browser."""

import asyncio
import csv
import io
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from genlock.dashboard.login import COOKIE
from genlock.domain.bulk import BulkKind, BulkState
from genlock.domain.delivery import plan
from genlock.domain.job import Delivery, Job, NewJob, State, hash_secret
from genlock.domain.money import EntryKind, HoldState
from genlock.domain.operator import OperatorRole
from genlock.engine.bulk import BulkWork
from genlock.ports import EndJob, FinishDelivery, Lease
from tests.dashboard.world import Client, DashboardWorld, running_dashboard
from tests.databases import new_sqlite
from tests.engine.fake_provider import success
from tests.stores.builders import ensure_profile

ME = Lease(owner="me", seconds=30.0)
PRICE = 12_500


async def user(dashboard: DashboardWorld, name: str) -> int:
    account_id = await dashboard.store.ensure_account("chat", "42", f"id-{name}")
    await ensure_profile(dashboard.store, account_id, language="en", name=name, username=name.lower(), referred_by=None)
    await dashboard.store.transfer(account_id, EntryKind.TOPUP, 1_000_000, f"topup:{name}")
    await dashboard.store.set_account_address(account_id, f"chat of {name}")
    return account_id


async def running_job(dashboard: DashboardWorld, account_id: int, prompt: str = "a fox", model: str = "veo") -> Job:
    store, number = dashboard.store, len(await dashboard.store.jobs(limit=1000))
    order = NewJob(
        account_id=account_id, request_key=f"k{number}", provider="fake", channel="chat", address="1", model=model,
        input=json.dumps({"prompt": prompt}, ensure_ascii=False), price=PRICE, deadline_seconds=600.0,
        placeholder=dashboard.channel.new_message(),
    )  # fmt: skip
    job = (await store.accept_job(order, ME)).job
    assert await store.begin_submit(job.id, job.lease_token, hash_secret("x"), None)
    assert await store.mark_submitted(job.id, job.lease_token, f"task-{number}", 100.0)
    return job


async def ended_job(dashboard: DashboardWorld, account_id: int, state: State = State.SUCCEEDED, **order: Any) -> Job:
    store, job = dashboard.store, await running_job(dashboard, account_id, **order)
    parts = plan(success("t").pieces)
    code = "" if state is State.SUCCEEDED else "=nsfw"
    ended = (await store.end_job(EndJob(job_id=job.id, state=state, parts=parts, error_code=code), ME)).job
    assert ended
    finish = FinishDelivery(job_id=job.id, token=ended.lease_token, delivery=Delivery.DELIVERED, parts=parts)
    assert await store.finish_delivery(finish, ME)
    assert await store.begin_notice(job.id, ended.lease_token)
    return job


def listed(text: str) -> list[int]:
    return [int(number) for number in re.findall(r'<tr id="job-(\d+)"', text)]


def stop_after_one_step(dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every search look at two ids only."""
    search = dashboard.store.search_jobs
    monkeypatch.setattr("genlock.stores.job_search.FIRST_STEP", 2)
    monkeypatch.setattr(dashboard.store, "search_jobs", lambda filters, **how: search(filters, **how, seconds=0.0))


async def work_to_the_end(dashboard: DashboardWorld) -> None:
    work = BulkWork(dashboard.engine.ctx, dashboard.engine.leader, dashboard.store, pause_seconds=0.0)
    while open_ := await dashboard.store.open_bulk_actions(10):
        await work.advance(open_[0])


async def test_the_list_shows_what_the_filters_of_the_address_ask_for(dashboard: DashboardWorld) -> None:
    ann, bob = await user(dashboard, "Ann"), await user(dashboard, "Bob")
    fox, cat = await ended_job(dashboard, ann), await ended_job(dashboard, bob, prompt="a cat", model="suno")
    failed, open_ = await ended_job(dashboard, bob, State.FAILED), await running_job(dashboard, ann, "50%_off")
    client, wrong = await dashboard.log_in(), []
    for query, expected in {
        "": [open_, failed, cat, fox],
        "state=open": [open_],
        "state=unsuccessful": [failed],
        "state=succeeded&hold=captured&delivery=delivered": [cat, fox],
        "model=suno": [cat],
        "user=@ann": [open_, fox],
        f"user=%23{bob}": [failed, cat],
        "user=Bo": [failed, cat],
        "user=zoe": [],
        "text=a+CAT&user=Bob": [cat],
        "text=%25_": [open_],
        "error=%3Dnsfw": [failed],
        "task=task-0": [fox],
        "period=1h": [open_, failed, cat, fox],
        "until=2020-01-01": [],
        "attention=1": [],
        f"before={cat.id}": [fox],
        "before=junk&nonsense=1": [open_, failed, cat, fox],
    }.items():
        answer = await client.get(f"/jobs?{query}")
        if answer.status != 200 or listed(answer.text) != [job.id for job in expected]:
            wrong.append(f"{query}: {answer.status} {listed(answer.text)}")
    assert wrong == []


async def test_a_row_is_in_the_operators_language_and_a_failed_order_was_told_and_not_delivered(
    dashboard: DashboardWorld,
) -> None:
    await ended_job(dashboard, await user(dashboard, "Ann"), State.FAILED, model="wan/2-6-image-to-video")
    client = await dashboard.log_in()
    for language, title, told, delivered in (
        ("en", "Wan 2.6 from an image", ">notified<", ">delivered<"),
        ("ru", "Wan 2.6 по картинке", ">сообщено<", ">доставлен<"),
    ):
        text = (await client.get("/jobs", **{"Accept-Language": language})).text
        rows = text[text.index('<tr id="job-') :]
        assert title in rows
        assert told in rows
        assert delivered not in rows


async def test_filters_are_chips_that_can_be_removed_and_unknown_ones_are_named(dashboard: DashboardWorld) -> None:
    await ended_job(dashboard, await user(dashboard, "Ann"))
    page = unescape((await (await dashboard.log_in()).get("/jobs?state=succeeded&user=ann&colour=red")).text)
    assert "There's no filter “colour”, so “red” has no effect." in page
    assert 'href="/dashboard/jobs?user=ann&colour=red"' in page  # without the state
    assert 'href="/dashboard/jobs?state=succeeded&user=ann"' in page  # without the unknown one
    assert '<input type="hidden" name="colour" value="red">' in page
    assert re.search(r'name="scope" value="all" disabled', page)
    page = unescape((await (await dashboard.log_in()).get("/jobs?sate=failed")).text)
    assert "There's no filter “sate”, so “failed” has no effect. Did you mean “state”?" in page


async def test_a_name_that_several_users_have_asks_which_one_and_finds_nothing(dashboard: DashboardWorld) -> None:
    ann, anna = await user(dashboard, "Ann A"), await user(dashboard, "Ann B")
    await ended_job(dashboard, ann)
    answer = await (await dashboard.log_in()).get("/jobs?user=Ann")
    assert listed(answer.text) == []
    assert f"user=%23{ann}" in answer.text
    assert f"user=%23{anna}" in answer.text


async def test_an_order_is_found_by_its_number(dashboard: DashboardWorld) -> None:
    job = await running_job(dashboard, await user(dashboard, "Ann"))
    client = await dashboard.log_in()
    for number in (f"{job.id}", f" %23{job.id} "):
        answer = await client.get(f"/jobs/find?number={number}")
        assert (answer.status, answer.headers["Location"]) == (303, f"/dashboard/jobs/{job.id}")
    for number in ("404", "", "-1", "x" * 500, "9" * 30):
        answer = await client.get(f"/jobs/find?number={number}")
        assert (answer.status, answer.headers["Location"]) == (303, "/dashboard/jobs")
        assert "There&#39;s no order" in (await client.get("/jobs")).text


async def test_without_orders_the_page_says_so(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    assert "No orders yet" in (await client.get("/jobs")).text
    assert "No matching orders" in (await client.get("/jobs?state=failed")).text
    assert "No bulk actions yet" in (await client.get("/jobs/bulk")).text
    assert (await client.get("/jobs/bulk/404")).status == 404


async def test_prompts_are_hidden_from_a_viewer_where_the_setting_says_so(tmp_path: Path) -> None:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", viewers_see_prompts=False) as dashboard:
        job = await ended_job(dashboard, await user(dashboard, "Ann"), prompt="my secret wish")
        viewer = await dashboard.log_in(OperatorRole.VIEWER)
        for path in ("/jobs", "/jobs?text=secret", f"/jobs/rows?ids={job.id}.x", "/jobs/export.csv"):
            answer = await viewer.get(path)
            assert str(job.id) in answer.text, path
            assert "secret wish" not in answer.text, path
        assert "see prompts, so the filter" in (await viewer.get("/jobs?text=secret")).text
        refused = await viewer.get("/jobs/export.csv?text=secret")
        assert refused.status == 303
        assert 'name="job"' not in (await viewer.get("/jobs")).text
        assert "my secret wish" in (await (await dashboard.log_in()).get("/jobs")).text


async def test_only_rows_that_have_changed_are_sent_again(dashboard: DashboardWorld) -> None:
    ann = await user(dashboard, "Ann")
    job, _ = await running_job(dashboard, ann), await ended_job(dashboard, ann)
    client = await dashboard.log_in()
    [ids] = re.findall(r'hx-get="/dashboard/jobs/rows\?ids=([^"]+)"', (await client.get("/jobs")).text)
    assert re.fullmatch(rf"{job.id}\.\w+", ids)  # the ended one does not change any more
    assert (await client.get(f"/jobs/rows?ids={ids}")).status == 204

    await dashboard.engine.cancel(job.id, "ann")
    changed = await client.get(f"/jobs/rows?ids={ids}")

    assert listed(changed.text) == [job.id]
    assert "cancelled" in changed.text
    for junk in ("", "x", "1.2.3,,-5", "9" * 50, ",".join(["1.a"] * 5000)):
        assert (await client.get(f"/jobs/rows?ids={junk}")).status in (200, 204)


async def test_a_search_that_is_not_over_continues_where_it_stopped(
    dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await user(dashboard, "Ann")
    jobs = [await ended_job(dashboard, ann, prompt="needle" if number == 0 else "hay") for number in range(5)]
    stop_after_one_step(dashboard, monkeypatch)
    client = await dashboard.log_in()

    answer, seen, steps = await client.get("/jobs?text=needle"), [], 0
    while match := re.search(r'hx-get="(/dashboard/jobs/more[^"]+)"', answer.text):
        assert "Searched orders back to" in answer.text
        answer = await client.get(unescape(match[1]).removeprefix("/dashboard"))
        seen += listed(answer.text)
        steps += 1

    assert seen == [jobs[0].id]
    assert steps == 2
    assert "No more orders." in answer.text


# bulk actions


async def confirmed(client: Client, **fields: Any) -> tuple[str, str]:
    """Post the form of the list, then that of the confirmation. Returns both pages."""
    confirmation = await client.post("/jobs/confirm", fields)
    assert confirmation.status == 200, confirmation.headers.get("Location")
    hidden = dict(re.findall(r'<input type="hidden" name="(?!job)(\w+)" value="([^"]*)">', confirmation.text))
    form = {**{name: unescape(text) for name, text in hidden.items()}, "job": fields.get("job", [])}
    return confirmation.text, (await client.follow("/jobs/bulk", form)).text


async def test_chosen_orders_are_refunded_after_a_confirmation_that_says_what_happens(
    dashboard: DashboardWorld,
) -> None:
    ann = await user(dashboard, "Ann")
    paid, other, open_ = (
        await ended_job(dashboard, ann),
        await ended_job(dashboard, ann),
        await running_job(dashboard, ann),
    )
    client = await dashboard.log_in()

    confirmation, begun = await confirmed(client, action="refund", scope="chosen", job=[paid.id, open_.id])

    assert "Applies to 1 of 2 selected orders." in confirmation
    assert "Total refund to users: 12.5\u00a0credits." in confirmation
    assert "1 order will be skipped: not charged." in confirmation
    assert "Started." in begun
    await work_to_the_end(dashboard)
    [action] = await dashboard.store.bulk_actions(10)
    assert (action.state, action.done, action.failed, action.author) == (BulkState.DONE, 1, 1, "7")
    assert await dashboard.store.refunded_jobs([paid.id, other.id, open_.id]) == {paid.id}
    assert [address for address, _ in dashboard.channel.told] == ["chat of Ann"]
    page = (await client.get(f"/jobs/bulk/{action.id}")).text
    assert f'href="/dashboard/jobs/{open_.id}"' in page
    assert "not charged" in page
    lines = await dashboard.store.audit(10)
    assert [line.action for line in lines[:2]] == ["bulk_refund_done", "bulk_refund"]
    assert json.loads(lines[1].detail) == {"after": {"jobs": [paid.id, open_.id], "expected": "exact 2"}}


async def test_all_that_match_are_cancelled_and_one_form_acts_once(dashboard: DashboardWorld) -> None:
    ann, bob = await user(dashboard, "Ann"), await user(dashboard, "Bob")
    mine, other = await running_job(dashboard, ann), await running_job(dashboard, bob)
    client = await dashboard.log_in()

    confirmation, _ = await confirmed(client, action="cancel", scope="all", query="user=ann&state=open")

    assert "All matching: 1 order." in confirmation
    form = {"action": "cancel", "scope": "all", "query": "user=ann", "request_key": "twice"}
    answers = await asyncio.gather(client.post("/jobs/bulk", form), client.post("/jobs/bulk", form))
    assert len({answer.headers["Location"] for answer in answers}) == 1
    await work_to_the_end(dashboard)
    for job, state, hold in ((mine, State.CANCELLED, HoldState.RELEASED), (other, State.RUNNING, HoldState.HELD)):
        found = await dashboard.store.job(job.id)
        assert found
        assert (found.state, found.hold_state) == (state, hold)


async def test_nothing_is_done_where_a_filter_has_no_effect_or_nothing_is_chosen(dashboard: DashboardWorld) -> None:
    ann = await user(dashboard, "Ann")
    await running_job(dashboard, ann)
    client = await dashboard.log_in()
    for fields, text in (
        ({"action": "cancel", "scope": "all", "query": "state=opne"}, "a filter in the address has no effect"),
        ({"action": "cancel", "scope": "all", "query": "user=zoe"}, "a filter in the address has no effect"),
        ({"action": "cancel", "scope": "all", "query": "&".join(["a=b"] * 100)}, "a filter in the address"),
        ({"action": "cancel", "scope": "chosen"}, "select orders first"),
        ({"action": "cancel", "scope": "chosen", "job": "junk"}, "select orders first"),
        ({"action": "erase", "scope": "chosen", "job": "1"}, "choose one of the actions"),
        ({}, "choose one of the actions"),
    ):
        for path in ("/jobs/confirm", "/jobs/bulk"):
            assert text in (await client.follow(path, fields)).text, (path, fields)
    assert await dashboard.store.bulk_actions(10) == []


async def test_support_may_refund_chosen_orders_but_not_all_that_match(dashboard: DashboardWorld) -> None:
    job = await ended_job(dashboard, await user(dashboard, "Ann"))
    support = await dashboard.log_in(OperatorRole.SUPPORT)
    for path in ("/jobs/confirm", "/jobs/bulk"):
        refused = await support.follow(path, {"action": "refund", "scope": "all", "query": ""})
        assert "not all matching ones" in refused.text
    assert await dashboard.store.bulk_actions(10) == []
    await confirmed(support, action="refund", scope="chosen", job=[job.id])
    await confirmed(support, action="resend", scope="all", query="")
    assert len(await dashboard.store.bulk_actions(10)) == 2


async def test_a_second_operator_sees_that_it_was_stopped_already(dashboard: DashboardWorld) -> None:
    await running_job(dashboard, await user(dashboard, "Ann"))
    first, second = await dashboard.log_in(), await dashboard.log_in(OperatorRole.SUPPORT)
    await confirmed(first, action="retry", scope="all", query="")
    [action] = await dashboard.store.bulk_actions(10)

    assert "Stopped." in (await first.follow(f"/jobs/bulk/{action.id}/stop")).text
    assert "Nothing was changed" in (await second.follow(f"/jobs/bulk/{action.id}/stop")).text
    await work_to_the_end(dashboard)
    part = await second.get(f"/jobs/bulk/{action.id}", **{"HX-Request": "true"})
    assert "stopped" in part.text
    assert "<html" not in part.text
    assert "hx-get" not in part.text  # it has ended, so the page does not ask again
    lines = await dashboard.store.audit(10)
    assert {line.action for line in lines if line.subject == f"bulk {action.id}"} == {
        "bulk_retry", "bulk_stop", "bulk_retry_stopped",
    }  # fmt: skip


# CSV


async def test_orders_are_exported_as_csv(dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.dashboard.job_export.PAGE", 2)
    monkeypatch.setattr("genlock.dashboard.job_export.PAUSE_SECONDS", 0.0)
    ann = await user(dashboard, "=Ann")
    jobs = [await ended_job(dashboard, ann, State.FAILED, prompt='=HYPERLINK("x"), лиса') for _ in range(5)]
    client = await dashboard.log_in()

    answer = await client.get("/jobs/export.csv?state=failed")

    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["Content-Disposition"]
    assert answer.text.startswith("\ufeff")
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert [int(row["order"]) for row in rows] == [job.id for job in reversed(jobs)]
    assert rows[0]["prompt"] == '\'=HYPERLINK("x"), лиса'
    assert (rows[0]["user"], rows[0]["error"], rows[0]["price_credits"]) == ("'=Ann", "'=nsfw", "12.5")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", rows[0]["created_at"])
    chosen = await client.post("/jobs/export", {"scope": "chosen", "job": [jobs[1].id, jobs[3].id]})
    assert [line.split(",")[0] for line in chosen.text.splitlines()[1:]] == [str(jobs[3].id), str(jobs[1].id)]
    everything = await client.post("/jobs/export", {"scope": "all", "query": "state=failed"})
    assert everything.text == answer.text
    assert "select orders first" in (await client.follow("/jobs/export", {"scope": "chosen"})).text
    assert [line.action for line in await dashboard.store.audit(3)] == ["export_jobs"] * 3


# in a browser


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
