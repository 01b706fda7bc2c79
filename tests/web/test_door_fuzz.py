"""Whatever is posted to a door: a right status, never a 500; and what was acknowledged is in the inbox, as it came."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from time import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genlock.domain.events import Event
from genlock.engine import collect
from genlock.providers.kie.signature import SIGNATURE, TIMESTAMP, sign
from tests.engine.world import idle
from tests.providers.mutants import mutants
from tests.providers.shapes import BODIES
from tests.web.asgi import request
from tests.web.conftest import KEY, TASK, House, make_house

TOKENS = st.sampled_from(
    ["", "/", "/1.guessed", "/1.", "/.", "/9999999999999999999.x", "/0.x", "/-1.x", "/٣.x", "/a/b"]
)
PATHS = (
    st.just("own") | TOKENS | st.text(st.characters(exclude_characters="\n"), max_size=12).map(lambda text: f"/{text}")
)
HEADERS = st.sampled_from([{}, {"Content-Length": "x"}, {"Content-Type": "text/plain"}, {"Content-Length": "3"}])


class Neighbourhood:
    """A house and a loop that hypothesis' plain functions can use."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.house: House = self.runner.run(make_house())
        self.stored = 0

    def post(self, path: str, body: bytes, headers: dict[str, str], *, signed: bool) -> int:
        return self.runner.run(self._post(path, body, headers, signed=signed))

    async def _post(self, path: str, body: bytes, headers: dict[str, str], *, signed: bool) -> int:
        house = self.house
        web = house.signed if signed else house.web
        status, _ = await request(web, house.path if path == "own" else f"/callbacks/kie{path}", body, headers)
        await idle(house.engine)
        return status

    def check(self, path: str, body: bytes, headers: dict[str, str], *, signed: bool = False) -> int:
        status = self.post(path, body, headers, signed=signed)
        assert status in (200, 401)
        rows = self.house.store.session.connection.execute(
            "SELECT body, state FROM inbox ORDER BY id DESC LIMIT 1"
        ).fetchall()
        [count] = self.house.store.session.connection.execute("SELECT count(*) FROM inbox").fetchone()
        self.stored += status == 200
        assert count == self.stored, "what was acknowledged is there, once; what was refused is not"
        if status == 200:
            assert rows[0][0] == (body if path == "own" else body[:2000])
            assert rows[0][1] != "new", "and somebody has looked at it"
        return status


@pytest.fixture
def neighbourhood(monkeypatch: pytest.MonkeyPatch) -> Iterator[Neighbourhood]:
    monkeypatch.setattr(collect, "UNAUTHENTICATED_MAX", 10**9)
    neighbourhood = Neighbourhood()
    yield neighbourhood
    seen = neighbourhood.house.recorder
    assert seen.of(Event.STAGE_ERROR) == []
    neighbourhood.runner.run(neighbourhood.house.store.close())
    neighbourhood.runner.close()


def test_anything_at_any_door(neighbourhood: Neighbourhood, fuzz_cases: int) -> None:
    @settings(max_examples=fuzz_cases // 80, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(PATHS, BODIES, HEADERS)
    def every(path: str, body: bytes, headers: dict[str, str]) -> None:
        assert neighbourhood.check(path, body, headers) == 200

    every()


def test_bent_callbacks_at_the_jobs_own_door(neighbourhood: Neighbourhood, fuzz_cases: int) -> None:
    for body in mutants(99, fuzz_cases // 10):
        assert neighbourhood.check("own", body, {}) == 200


def test_anything_signed_or_not(neighbourhood: Neighbourhood, fuzz_cases: int) -> None:
    then = int(time())
    given_headers = [
        {},
        {TIMESTAMP: str(then), SIGNATURE: sign(TASK, then, KEY)},
        {TIMESTAMP: str(then), SIGNATURE: sign("ab" * 16, then, KEY)},
        {TIMESTAMP: str(then), SIGNATURE: "é"},
        {TIMESTAMP: "²", SIGNATURE: "x"},
    ]
    statuses = [
        neighbourhood.check("own", body, given_headers[number % len(given_headers)], signed=True)
        for number, body in enumerate(islice(mutants(7, fuzz_cases), fuzz_cases // 40))
    ]
    assert {200, 401} == set(statuses)
