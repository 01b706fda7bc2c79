"""Logging in: one-time links, the token, sessions, and what protects them."""

import asyncio
from typing import Any, cast

import pytest
from starlette.requests import Request

from genlock.dashboard.login import COOKIE, DEVICE_COOKIE, _remote
from genlock.domain.job import hash_secret
from genlock.domain.operator import LoginMethod, Operator, OperatorRole
from genlock.engine.logins import TOKEN_OPERATOR, Browser, Logins
from genlock.engine.token_attempts import SOURCE_BURST, UNKNOWN_BURST, TokenAttempts
from tests.dashboard.world import OWNER_ID, TOKEN, DashboardWorld


async def link(dashboard: DashboardWorld, operator: str = str(OWNER_ID)) -> str:
    path = await dashboard.logins.make_link(operator)
    assert path is not None
    return path.removeprefix("/dashboard")


async def test_without_a_session_every_page_leads_to_the_login(dashboard: DashboardWorld) -> None:
    answer = await dashboard.client().get("/jobs?state=failed")
    assert answer.status == 303
    assert answer.headers["Location"] == "/dashboard/login?next=%2Fdashboard%2Fjobs%3Fstate%3Dfailed"
    assert (await dashboard.client().get("/jobs", **{"HX-Request": "true"})).status == 401


async def test_a_link_logs_in_once(dashboard: DashboardWorld) -> None:
    path, client = await link(dashboard), dashboard.client()
    assert (await client.post(path)).status == 303
    assert (await client.get("")).status == 200

    second = dashboard.client()
    answer = await second.post(path)
    assert answer.status == 410
    assert "it has expired, was already used" in answer.text
    assert (await second.get("")).status == 303


async def test_two_presses_of_one_link_open_one_session(dashboard: DashboardWorld) -> None:
    path = await link(dashboard)
    answers = await asyncio.gather(*(dashboard.client().post(path) for _ in range(6)))
    assert sorted(answer.status for answer in answers) == [303, 410, 410, 410, 410, 410]


async def test_looking_at_a_link_does_not_use_it(dashboard: DashboardWorld) -> None:
    """Scanners of chats open every address they see."""
    path, client = await link(dashboard), dashboard.client()
    for _ in range(3):
        answer = await client.get(path)
        assert (answer.status, COOKIE in client.cookies) == (200, False)
    assert (await client.post(path)).status == 303


async def test_a_link_of_an_operator_who_lost_access_opens_nothing(dashboard: DashboardWorld) -> None:
    await dashboard.store.set_operator(Operator(id="9", role=OperatorRole.SUPPORT), "7")
    path = await link(dashboard, "9")
    client = dashboard.client()
    await client.post(await link(dashboard, "9"))
    assert (await client.get("")).status == 200

    await dashboard.store.remove_operator("9")

    assert (await dashboard.client().post(path)).status == 410
    assert (await client.get("")).status == 303
    assert await dashboard.logins.make_link("9") is None


async def test_the_token_logs_in_and_attempts_are_limited(dashboard: DashboardWorld) -> None:
    client = dashboard.client()
    wrong = await client.post("/login", {"token": "guess"})
    assert (wrong.status, "Wrong token" in wrong.text) == (401, True)
    assert (await client.post("/login", {"token": TOKEN})).status == 303
    assert (await client.get("")).status == 200

    attacker = dashboard.client()
    answers = [await attacker.post("/login", {"token": f"guess {n}"}) for n in range(SOURCE_BURST + 2)]
    assert answers[-1].status == 429
    assert int(answers[-1].headers["Retry-After"]) >= 1
    assert "use a link from the chat" in answers[-1].text
    assert (await dashboard.client().post(await link(dashboard))).status == 303, "a link still works"


async def enter(dashboard: DashboardWorld, remote: str, entered: str = "a guess", device: str | None = None) -> int:
    """Enter a token, as a browser behind a proxy; return the status of the answer."""
    headers = {"X-Forwarded-For": remote} | ({} if device is None else {"Cookie": f"{DEVICE_COOKIE}={device}"})
    return (await dashboard.client().post("/login", {"token": entered}, **headers)).status


async def test_an_attacker_who_guesses_does_not_keep_operators_out(dashboard: DashboardWorld) -> None:
    statuses = [await enter(dashboard, "203.0.113.9") for _ in range(UNKNOWN_BURST + 5)]
    assert statuses == [401] * SOURCE_BURST + [429] * (len(statuses) - SOURCE_BURST)

    assert await enter(dashboard, "203.0.113.9", TOKEN) == 429
    assert await enter(dashboard, "203.0.113.10", TOKEN) == 303


async def test_what_a_client_writes_before_its_proxy_does_is_not_believed(dashboard: DashboardWorld) -> None:
    statuses = [await enter(dashboard, f"198.51.100.{n}, 203.0.113.9") for n in range(SOURCE_BURST + 1)]
    assert statuses[-2:] == [401, 429]
    two_lines = [("X-Forwarded-For", "198.51.100.77"), ("X-Forwarded-For", "203.0.113.9")]
    assert _remote(_request("127.0.0.1", *two_lines)) == "203.0.113.9"


@pytest.mark.parametrize(
    ("direct", "remote"),
    [
        ("8.8.8.8", "8.8.8.8"),
        ("2a00:1450::1", "2a00:1450::1"),
        ("127.0.0.1", "1.1.1.1"),
        ("10.0.0.2", "1.1.1.1"),
        ("fd00::2", "1.1.1.1"),
        ("", "1.1.1.1"),
    ],
)
def test_only_a_proxy_is_believed(direct: str, remote: str) -> None:
    """Who connects from the internet without one could name another address with each attempt."""
    assert _remote(_request(direct, ("X-Forwarded-For", "1.1.1.1"))) == remote
    assert _remote(_request(direct)) == direct


def _request(direct: str, *headers: tuple[str, str]) -> Request:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    return Request({"type": "http", "client": (direct, 1), "headers": raw})


async def test_the_addresses_of_one_customer_count_together(dashboard: DashboardWorld) -> None:
    statuses = [await enter(dashboard, f"2001:db8:1:1::{number}") for number in range(SOURCE_BURST + 1)]
    assert statuses[-2:] == [401, 429]
    assert await enter(dashboard, "2001:db8:1:1:ffff::1") == 429
    assert await enter(dashboard, "2001:db8:1:2::1") == 401
    assert {await enter(dashboard, "192.0.2.1") for _ in range(SOURCE_BURST)} == {401}
    assert await enter(dashboard, "::ffff:192.0.2.1") == 429


async def test_a_browser_in_which_the_token_was_entered_has_attempts_of_its_own(dashboard: DashboardWorld) -> None:
    """However many addresses an attacker has."""
    client = dashboard.client()
    assert (await client.post("/login", {"token": TOKEN})).status == 303
    device = client.cookies[DEVICE_COOKIE]
    for number in range(UNKNOWN_BURST):
        await enter(dashboard, f"203.0.113.{number}")
    assert await enter(dashboard, "198.51.100.1", TOKEN) == 429

    forged = f"{device[:-1]}{'0' if device[-1] != '0' else '1'}"
    for cookie in ("", ".", forged, "é.é", device.partition(".")[0]):
        assert await enter(dashboard, "198.51.100.2", TOKEN, cookie) == 429
    assert await enter(dashboard, "198.51.100.3", TOKEN, device) == 303
    statuses = [await enter(dashboard, "198.51.100.3", device=device) for _ in range(SOURCE_BURST)]
    assert statuses[-2:] == [401, 429], "a stolen one is no free pass"


async def test_the_cookie_of_a_known_browser_is_out_of_reach_and_ends_with_the_token(dashboard: DashboardWorld) -> None:
    answer = await dashboard.client().post("/login", {"token": TOKEN}, Host="bot.example")
    [cookie] = [line for line in cast(Any, answer.headers).getall("Set-Cookie") if line.startswith(DEVICE_COOKIE)]
    for word in ("HttpOnly", "SameSite=lax", "Secure", "Path=/dashboard/login"):
        assert word in cookie
    device = cookie.partition("=")[2].partition(";")[0]
    assert TokenAttempts(dashboard.store, TOKEN).device(device) == device
    assert TokenAttempts(dashboard.store, "changed").device(device) != device


async def test_sources_without_number_take_a_bounded_number_of_rows(
    dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.engine.token_attempts.SOURCES_MAX", 4)
    for number in range(20):
        await enter(dashboard, f"203.0.113.{number}")
    rows = await cast(Any, dashboard.store.session).call(
        lambda connection: connection.execute("SELECT key FROM limits WHERE key LIKE 'dashboard:token%'").fetchall()
    )
    assert 2 < len(rows) <= 5


async def test_a_session_that_was_opened_with_the_token_ends_when_the_token_changes(dashboard: DashboardWorld) -> None:
    store, browser = dashboard.store, Browser(remote="", agent="")
    logins, changed = (Logins(store, owners=frozenset({OWNER_ID}), token=token) for token in ("leaked", "new"))
    secret = await logins.use_token("leaked", browser)
    path = await logins.make_link(str(OWNER_ID))
    assert secret is not None
    assert path is not None
    by_link = await logins.use_link(path.rpartition("/")[2], browser)
    assert by_link is not None
    assert await logins.find(secret) is not None

    assert await changed.find(secret) is None
    assert await Logins(store, owners=frozenset({OWNER_ID})).find(secret) is None
    assert await changed.find(by_link) is not None
    # as an earlier version stored it
    before = hash_secret("of an earlier version")
    await store.begin_session(before, TOKEN_OPERATOR, LoginMethod.TOKEN, remote="", agent="", seconds=60.0)
    assert await changed.find("of an earlier version") is None


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(dashboard: DashboardWorld) -> None:
    answer = await dashboard.client().post(await link(dashboard))
    assert "HttpOnly" in answer.headers["Set-Cookie"]
    assert "SameSite=lax" in answer.headers["Set-Cookie"]
    assert "Secure" not in answer.headers["Set-Cookie"], "this machine has no https"
    public = await dashboard.client().post(await link(dashboard), Host="bot.example")
    assert "Secure" in public.headers["Set-Cookie"]


async def test_after_the_login_the_operator_gets_the_page_they_wanted_and_never_another_host(
    dashboard: DashboardWorld,
) -> None:
    wanted = {
        "/dashboard/jobs?state=failed": "/dashboard/jobs?state=failed",
        "https://evil.example/dashboard": "/dashboard",
        "//evil.example/dashboard": "/dashboard",
        "/dashboard\\@evil.example": "/dashboard",
        "/dashboardx": "/dashboard",
        "javascript:alert(1)": "/dashboard",
        "//[": "/dashboard",
        "": "/dashboard",
    }
    for path, goes_to in wanted.items():
        answer = await dashboard.client().post("/login", {"token": TOKEN, "next": path})
        assert answer.headers.get("Location") == goes_to, path


async def test_logging_out_ends_the_session_on_the_server(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    secret = client.cookies[COOKIE]
    await client.post("/logout")
    client.cookies[COOKIE] = secret
    assert (await client.get("")).status == 303


async def test_what_was_written_into_a_form_that_came_too_late_is_shown(dashboard: DashboardWorld) -> None:
    client, other = await dashboard.log_in(), await dashboard.log_in()
    form = {"reason": "a long <b>apology</b>", "amount": "7", "request_key": "secret-key"}
    referer = {"Referer": f"{dashboard.url}/dashboard/users/1"}

    forged = await client.post("/users/1/credits", {**form, "csrf": "of another session"})
    other.cookies.clear()
    ended = await other.post("/users/1/credits", form, **referer)
    foreign = await other.post("/users/1/credits", form, Origin="https://evil.example")

    assert (forged.status, ended.status, foreign.status) == (403, 401, 401)
    for answer in (forged, ended):
        assert "a long &lt;b&gt;apology&lt;/b&gt;</textarea>" in answer.text
        assert "secret-key" not in answer.text
    assert 'name="next" value="/dashboard/users/1"' in ended.text
    assert "apology" not in foreign.text
    large = await other.post("/users/1/credits", {"text": '"' * 60_000, "reason": "lost"}, Referer="http://[")
    assert (large.status, large.text.count("&#34;"), "lost" in large.text) == (401, 25_000, False)
    assert 'name="next" value="/dashboard"' in large.text


async def test_a_form_of_another_site_ends_no_session(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    for fields, origin in (({"csrf": "forged"}, None), ({}, "https://evil.example")):
        secret = client.cookies[COOKIE]
        await client.post("/logout", fields, **({"Origin": origin} if origin else {}))
        client.cookies[COOKIE] = secret
        assert (await client.get("")).status == 200


async def test_a_login_is_in_the_audit_log(dashboard: DashboardWorld) -> None:
    await dashboard.log_in()
    [line] = await dashboard.store.audit(10)
    assert (line.actor, line.action, line.subject) == ("7", "login", LoginMethod.LINK.value)


async def test_a_login_is_in_the_audit_log_also_if_its_session_has_the_number_of_a_deleted_one(
    dashboard: DashboardWorld,
) -> None:
    await dashboard.log_in(OperatorRole.SUPPORT)
    await dashboard.store.remove_operator("id-of-support")  # with the sessions

    await dashboard.log_in()

    assert [line.actor for line in await dashboard.store.audit(10)] == ["7", "id-of-support"]


async def test_secrets_of_links_and_sessions_are_not_in_the_store(dashboard: DashboardWorld) -> None:
    path = await link(dashboard)
    client = dashboard.client()
    await client.post(path)
    session: object = dashboard.store.session
    rows = [
        str(tuple(row))
        for table in ("login_links", "dashboard_sessions", "audit")
        for row in session.connection.execute(f"SELECT * FROM {table}")  # type: ignore[attr-defined]  # noqa: S608
    ]
    assert rows
    for secret in (path.rpartition("/")[2], client.cookies[COOKIE]):
        assert not [row for row in rows if secret in row]
