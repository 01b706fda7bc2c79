"""Operators, their roles and their sessions, managed from the dashboard."""

import asyncio
import json

from genlock.domain.operator import Operator, OperatorRole
from tests.dashboard.world import DashboardWorld

PATH = "/system/operators"
ANN = {"id": "101", "name": "Ann", "role": "support", "expected": "", "request_key": "k1"}


async def test_an_operator_is_added_changed_and_removed(dashboard: DashboardWorld) -> None:
    owner = await dashboard.log_in()
    added = await owner.follow(PATH, ANN)
    assert "101 is now support." in added.text
    assert await dashboard.store.operator("101") == Operator(id="101", role=OperatorRole.SUPPORT, name="Ann")

    changed = await owner.follow(PATH, {**ANN, "role": "viewer", "expected": "support", "request_key": "k2"})
    assert "101 is now viewer." in changed.text
    removed = await owner.follow(f"{PATH}/remove", {"id": "101", "expected": "viewer", "request_key": "k3"})
    assert "101 no longer has access." in removed.text
    assert await dashboard.store.operator("101") is None

    lines = [line for line in await dashboard.store.audit(10) if line.subject == "101"]
    assert [(line.actor, line.action) for line in reversed(lines)] == [
        ("7", "set_operator"), ("7", "set_operator"), ("7", "remove_operator"),
    ]  # fmt: skip
    support, viewer = {"role": "support", "name": "Ann"}, {"role": "viewer", "name": "Ann"}
    assert [json.loads(line.detail) for line in reversed(lines)] == [
        {"after": support}, {"before": support, "after": viewer}, {"before": viewer},
    ]  # fmt: skip


async def test_the_same_form_twice_acts_once(dashboard: DashboardWorld) -> None:
    owner = await dashboard.log_in()
    await asyncio.gather(*(owner.post(PATH, ANN) for _ in range(5)))
    assert len([line for line in await dashboard.store.audit(10) if line.action == "set_operator"]) == 1
    assert "already has this name and role" in (await owner.follow(PATH, ANN)).text


async def test_a_stale_form_says_what_changed_and_does_nothing(dashboard: DashboardWorld) -> None:
    owner = await dashboard.log_in()
    await dashboard.store.set_operator(Operator(id="101", role=OperatorRole.OWNER), "8")
    stale = {**ANN, "role": "viewer", "expected": "support"}
    assert "the role of 101 has become owner" in (await owner.follow(PATH, stale)).text
    gone = await owner.follow(f"{PATH}/remove", {"id": "101", "expected": "support"})
    assert "the role of 101 has become owner" in gone.text
    assert (await dashboard.store.operator("101")) == Operator(id="101", role=OperatorRole.OWNER)

    await dashboard.store.remove_operator("101")
    assert "101 is no longer an operator" in (await owner.follow(PATH, stale)).text
    assert await dashboard.store.operator("101") is None


async def test_wrong_input_is_named_and_kept_in_the_form(dashboard: DashboardWorld) -> None:
    owner = await dashboard.log_in()
    problems = {
        "a Telegram ID is a number": {"id": "ann"},
        "up to 20 digits": {"id": "9" * 21},
        "an owner by GENLOCK_ADMIN_IDS": {"id": "7"},
        "choose one of the roles": {"role": "king"},
        "up to 60 ordinary characters": {"name": "x" * 61},
    }
    for problem, wrong in problems.items():
        answer = await owner.post(PATH, {**ANN, **wrong})
        assert (answer.status, problem in answer.text) == (422, True), problem
    assert 'value="Ann"' in (await owner.post(PATH, {**ANN, "id": "x"})).text
    assert await dashboard.store.operators() == []


async def test_an_owner_cannot_change_or_remove_themselves(dashboard: DashboardWorld) -> None:
    await dashboard.store.set_operator(Operator(id="55", role=OperatorRole.OWNER, name="Bea"), "7")
    path = await dashboard.logins.make_link("55")
    assert path is not None
    client = dashboard.client()
    await client.post(path.removeprefix("/dashboard"))
    for target, fields in (
        (PATH, {**ANN, "id": "55", "role": "viewer", "expected": "owner"}),
        (f"{PATH}/remove", {"id": "55", "expected": "owner"}),
    ):
        answer = await client.post(target, fields)
        assert (answer.status, "change your own role. Ask another owner" in answer.text) == (422, True)


async def test_sessions_are_listed_and_ended(dashboard: DashboardWorld) -> None:
    owner, support = await dashboard.log_in(), await dashboard.log_in(OperatorRole.SUPPORT)
    [session] = [listed for listed in await dashboard.store.sessions(10) if listed.operator == "id-of-support"]
    assert "the support" in (await owner.get(PATH)).text

    ended = await owner.follow(f"{PATH}/sessions/{session.id}/end")
    assert "The session has ended." in ended.text
    assert (await support.get("")).status == 303
    again = await owner.follow(f"{PATH}/sessions/{session.id}/end")
    assert "this session has already ended" in again.text
    assert [line.subject for line in await dashboard.store.audit(10) if line.action == "end_session"] == [
        "id-of-support"
    ]


async def test_others_than_owners_see_and_end_their_own_sessions_only(dashboard: DashboardWorld) -> None:
    await dashboard.log_in()
    viewer = await dashboard.log_in(OperatorRole.VIEWER)
    other_browser = await dashboard.log_in(OperatorRole.VIEWER)
    sessions = {session.operator: session.id for session in await dashboard.store.sessions(10)}
    text = (await viewer.get(PATH)).text
    assert "Your open sessions" in text
    assert text.count("/end") == 2
    assert "Add an operator" not in text

    refused = await viewer.follow(f"{PATH}/sessions/{sessions['7']}/end")
    assert "this session has already ended" in refused.text
    assert sessions["7"] in [session.id for session in await dashboard.store.sessions(10)]
    own = [session.id for session in await dashboard.store.sessions(10) if session.operator == "id-of-viewer"]
    await viewer.follow(f"{PATH}/sessions/{max(own)}/end")
    assert (await other_browser.get("")).status == 303
