"""Every page and every action, as every role, without a session and with forged forms."""

import re

import pytest

from genlock.dashboard.headers import CONTENT_SECURITY_POLICY
from genlock.dashboard.page import PageRoute
from genlock.dashboard.roles import Permission, permissions
from genlock.domain.operator import OperatorRole
from tests.dashboard.world import DashboardWorld

#: what every operator may do with their own logins
OWN_LOGINS = {"/system/operators/sessions/{session_id:int}/end"}


def address(route: PageRoute) -> str:
    """Return an address that the route matches."""
    return re.sub(r"\{\w+(:\w+)?\}", lambda match: "1" if match[1] == ":int" else "x", route.path)


@pytest.mark.slow
async def test_every_action_of_every_page_is_tried_as_every_role(dashboard: DashboardWorld) -> None:
    problems = []
    for role in OperatorRole:
        client = await dashboard.log_in(role)
        allowed = permissions(role, viewers_see_prompts=True)
        for route in dashboard.routes:
            answer = await (client.get(address(route)) if route.method == "GET" else client.post(address(route)))
            may = route.permission in allowed
            if (answer.status == 403) == may or answer.status >= 500:
                problems.append(f"{role} {route.method} {route.path}: {answer.status}, may: {may}")
    assert problems == []


async def test_a_viewer_has_no_action_at_all(dashboard: DashboardWorld) -> None:
    allowed = permissions(OperatorRole.VIEWER, viewers_see_prompts=True)
    actions = {route.path for route in dashboard.routes if route.method == "POST" and route.permission in allowed}
    assert actions - OWN_LOGINS == set()
    assert permissions(OperatorRole.VIEWER, viewers_see_prompts=False) == {Permission.VIEW}


async def test_without_a_session_nothing_is_shown_and_nothing_is_done(dashboard: DashboardWorld) -> None:
    problems = []
    for route in dashboard.routes:
        client = dashboard.client()
        answer = await (client.get(address(route)) if route.method == "GET" else client.post(address(route)))
        if answer.status != (303 if route.method == "GET" else 401) or "nav" in answer.text:
            problems.append(f"{route.method} {route.path}: {answer.status}")
    assert problems == []


async def test_a_form_without_the_session_s_token_is_refused(dashboard: DashboardWorld) -> None:
    client, problems = await dashboard.log_in(), []
    for route in dashboard.routes:
        if route.method == "POST":
            forged = await client.post(address(route), {"csrf": "forged"})
            foreign = await client.post(address(route), Origin="https://evil.example")
            if (forged.status, foreign.status) != (403, 403):
                problems.append(f"{route.path}: {forged.status} {foreign.status}")
    assert problems == []


async def test_every_answer_carries_the_security_headers(dashboard: DashboardWorld) -> None:
    client, visitor = await dashboard.log_in(), dashboard.client()
    for answer in (await client.get(""), await client.get("/no-such-page"), await visitor.get("/login")):
        assert answer.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "script>" not in answer.text.replace("></script>", "")
        assert " style=" not in answer.text
        assert " onclick=" not in answer.text


async def test_a_form_that_is_too_large_or_broken_is_refused_in_words(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    posts = [route for route in dashboard.routes if route.method == "POST"]
    for route in posts[:1]:
        large = await client.post(address(route), {"text": "x" * 300_000})
        assert (large.status, "too large" in large.text) == (413, True)


async def test_a_page_that_does_not_exist_says_so(dashboard: DashboardWorld) -> None:
    answer = await (await dashboard.log_in()).get("/no-such-page")
    assert (answer.status, "Page not found" in answer.text) == (404, True)
