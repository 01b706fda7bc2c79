"""Operators of the dashboard, one-time links and sessions."""

import asyncio
from datetime import timedelta
from typing import Any

from genlock.domain.operator import LoginMethod, Operator, OperatorRole
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock
from tests.stores.conftest import Raw

ANN = Operator(id="101", role=OperatorRole.SUPPORT, name="Ann")
BROWSER: Any = {"remote": "203.0.113.9", "agent": "Firefox", "seconds": 3600.0}


async def test_the_role_of_an_operator_is_set_changed_and_removed(store: SqlDatabase) -> None:
    assert await store.set_operator(ANN, "7") is None
    owner = Operator(id="101", role=OperatorRole.OWNER, name="Ann")
    assert await store.set_operator(owner, "7") == ANN
    assert await store.operator("101") == owner
    assert await store.operators() == [owner]

    assert await store.remove_operator("101") == owner
    assert await store.remove_operator("101") is None
    assert await store.operator("101") is None


async def test_a_link_opens_one_session_only(store: SqlDatabase) -> None:
    await store.add_login_link("link", "101", LoginMethod.LINK, 60)
    assert await store.login_link("link") == "101"

    opened = await asyncio.gather(*(store.use_login_link("link", f"session-{n}", **BROWSER) for n in range(8)))

    [session] = [opened_session for opened_session in opened if opened_session is not None]
    assert (session.operator, session.method, session.remote, session.agent) == (
        "101", LoginMethod.LINK, "203.0.113.9", "Firefox",
    )  # fmt: skip
    assert await store.login_link("link") is None
    assert len(await store.sessions(10)) == 1


async def test_a_link_expires(store: SqlDatabase, clock: ManualClock) -> None:
    await store.add_login_link("link", "101", LoginMethod.LINK, 60)
    clock.advance(61)

    assert await store.login_link("link") is None
    assert await store.use_login_link("link", "session", **BROWSER) is None
    assert await store.use_login_link("never made", "session", **BROWSER) is None
    assert await store.sessions(10) == []


async def test_a_session_is_found_by_its_secret_until_it_expires(store: SqlDatabase, clock: ManualClock) -> None:
    begun = await store.begin_session("hash", "token", LoginMethod.TOKEN, **BROWSER)
    assert begun.expires_at - begun.created_at == timedelta(hours=1)
    assert await store.session_by_secret("hash") == begun
    assert await store.session_by_secret("other") is None

    clock.advance(120)
    await store.session_by_secret("hash")
    [seen] = await store.sessions(10)
    assert seen.seen_at - begun.seen_at == timedelta(seconds=120)

    clock.advance(3600)
    assert await store.session_by_secret("hash") is None
    assert await store.sessions(10) == []


async def test_sessions_that_ended_long_ago_are_deleted_also_if_every_login_is_by_a_link(
    store: SqlDatabase, clock: ManualClock, raw: Raw
) -> None:
    """They name the address and the browser of the operator."""
    await store.begin_session("hash", "101", LoginMethod.LINK, **BROWSER)
    for days, left in ((29, 1), (2, 0)):
        clock.advance(days * 86_400.0)
        await store.add_login_link(f"link {days}", "101", LoginMethod.LINK, 60)
        assert await raw("SELECT count(*) FROM dashboard_sessions") == [(left,)]


async def test_a_session_is_ended_once(store: SqlDatabase) -> None:
    session = await store.begin_session("hash", "101", LoginMethod.COMMAND, **BROWSER)

    assert await store.end_session(session.id)
    assert not await store.end_session(session.id)
    assert await store.session_by_secret("hash") is None


async def test_an_operator_who_is_removed_has_no_session_and_no_link(store: SqlDatabase) -> None:
    await store.set_operator(ANN, "7")
    await store.begin_session("hash", "101", LoginMethod.LINK, **BROWSER)
    await store.begin_session("another", "202", LoginMethod.LINK, **BROWSER)
    await store.add_login_link("link", "101", LoginMethod.LINK, 60)

    await store.remove_operator("101")

    assert await store.session_by_secret("hash") is None
    assert await store.session_by_secret("another") is not None
    assert await store.use_login_link("link", "session", **BROWSER) is None
