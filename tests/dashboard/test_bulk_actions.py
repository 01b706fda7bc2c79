"""Bulk actions on orders: what the confirmation says, what is done, and by whom."""

import asyncio
import json
import re
from html import unescape
from typing import Any

from genlock.domain.bulk import BulkState
from genlock.domain.job import State
from genlock.domain.money import HoldState
from genlock.domain.operator import OperatorRole
from tests.dashboard.job_list import ended_job, running_job, user, work_to_the_end
from tests.dashboard.world import Client, DashboardWorld


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
