"""Addresses and headers that a hostile link or client may have: answered at once, in words, without a traceback."""

from html import unescape

import pytest

from genlock.dashboard.dashboard import PARAMETERS_MAX
from genlock.dashboard.job_requests import JobRequest
from genlock.dashboard.login import COOKIE
from genlock.domain.errors import StoreUnavailable
from tests.dashboard.world import OWNER_ID, DashboardWorld

DIGITS = "9" * 5_000
ADDRESSES = {
    f"/jobs/{DIGITS}": 404,
    f"/users/{DIGITS}/ledger": 404,
    f"/jobs/bulk/{DIGITS}": 404,
    f"/jobs/bulk/{'9' * 30}": 404,
    f"/campaigns/broadcasts?before={DIGITS}": 200,
    "/campaigns?before=%00": 200,
    "/jobs?since=0001-01-01T00:00&until=9999-12-31T23:59": 200,
    "/jobs?text=%00&model=%00&user=%00": 200,
    f"/jobs/find?number={DIGITS}": 303,
}


async def test_numbers_and_times_that_cannot_be_are_answered_in_words(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    client.cookies["genlock_zone"] = "Pacific/Kiritimati"
    answers = {path: (await client.get(path)).status for path in ADDRESSES}
    assert answers == ADDRESSES


async def test_an_address_with_thousands_of_filters_costs_nothing(
    dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each filter is shown with the address without it: a link with thousands of them would stop the instance."""
    made, address = 0, JobRequest.without

    def counted(self: JobRequest, name: str) -> str:
        nonlocal made
        made += 1
        return address(self, name)

    monkeypatch.setattr(JobRequest, "without", counted)
    client = await dashboard.log_in()
    many = "&".join(f"a{number}=1" for number in range(1_000))
    for path in ("/jobs", "/jobs/export.csv", "/money", "/audit"):
        answer = await client.get(f"{path}?{many}")
        assert (answer.status, "too many parameters" in answer.text) == (400, True), path
    assert made <= PARAMETERS_MAX
    few = await client.get("/jobs?colour=red&shape=round")
    assert "There&#39;s no filter" in few.text


async def test_broken_headers_are_refused_without_a_traceback(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    assert (await client.post("/jobs/confirm", Origin="http://[")).status == 403
    assert (await dashboard.client().post("/login", {"token": "x"}, Origin="http://[")).status == 400
    secret = client.cookies[COOKIE]
    assert (await client.post("/logout", {"csrf": "é"})).status == 303
    client.cookies[COOKIE] = secret
    assert (await client.get("")).status == 200


async def test_another_site_cannot_log_a_browser_in_with_its_own_link(dashboard: DashboardWorld) -> None:
    path = await dashboard.logins.make_link(str(OWNER_ID))
    assert path is not None
    victim = dashboard.client()
    answer = await victim.post(path.removeprefix("/dashboard"), Origin="https://evil.example")
    assert (answer.status, COOKIE in victim.cookies) == (400, False)
    assert (await victim.post(path.removeprefix("/dashboard"))).status == 303, "the link was not used up"


async def test_a_login_page_says_that_the_database_does_not_answer(
    dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(secret_hash: str) -> str:
        raise StoreUnavailable(secret_hash)

    monkeypatch.setattr(dashboard.store, "login_link", fail)
    answer = await dashboard.client().get("/login/some-secret")
    assert (answer.status, "The database isn't responding" in unescape(answer.text)) == (503, True)
