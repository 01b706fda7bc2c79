"""Any request to the callback endpoint gets a correct status, never 500; acknowledged bodies are stored unchanged."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from time import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genlock.domain.events import Event
from genlock.engine import unauthenticated
from genlock.providers.kie.signature import SIGNATURE, TIMESTAMP, sign
from tests.engine.world import idle
from tests.providers.mutated_answers import mutated_answers
from tests.providers.strategies import BODIES
from tests.web.asgi import request
from tests.web.conftest import KEY, TASK, Instance, make_instance

TOKENS = st.sampled_from(
    ["", "/", "/1.guessed", "/1.", "/.", "/9999999999999999999.x", "/0.x", "/-1.x", "/٣.x", "/a/b"]
)
PATHS = (
    st.just("own") | TOKENS | st.text(st.characters(exclude_characters="\n"), max_size=12).map(lambda text: f"/{text}")
)
HEADERS = st.sampled_from([{}, {"Content-Length": "x"}, {"Content-Type": "text/plain"}, {"Content-Length": "3"}])


class Fuzzed:
    """An instance and an event loop for the synchronous functions of hypothesis."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.instance: Instance = self.runner.run(make_instance())
        self.stored = 0

    def post(self, path: str, body: bytes, headers: dict[str, str], *, signed: bool) -> int:
        return self.runner.run(self._post(path, body, headers, signed=signed))

    async def _post(self, path: str, body: bytes, headers: dict[str, str], *, signed: bool) -> int:
        instance = self.instance
        web = instance.signed if signed else instance.web
        status, _ = await request(web, instance.path if path == "own" else f"/callbacks/kie{path}", body, headers)
        await idle(instance.engine)
        return status

    def check(self, path: str, body: bytes, headers: dict[str, str], *, signed: bool = False) -> int:
        status = self.post(path, body, headers, signed=signed)
        assert status in (200, 401)
        rows = self.instance.store.session.connection.execute(
            "SELECT body, state, note FROM inbox ORDER BY id DESC LIMIT 1"
        ).fetchall()
        [count] = self.instance.store.session.connection.execute("SELECT count(*) FROM inbox").fetchone()
        self.stored += status == 200
        assert count == self.stored, "acknowledged callbacks are stored once, refused ones are not"
        if status == 200:
            unauthenticated = b"" if rows[0][2] == "repeated" else body[:2000]
            assert rows[0][0] == (body if path == "own" else unauthenticated)
            assert rows[0][1] != "new", "and it was processed"
        return status


@pytest.fixture
def fuzzed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fuzzed]:
    monkeypatch.setattr(unauthenticated, "UNAUTHENTICATED_MAX", 10**9)
    fuzzed = Fuzzed()
    yield fuzzed
    seen = fuzzed.instance.recorder
    assert seen.of(Event.STAGE_ERROR) == []
    fuzzed.runner.run(fuzzed.instance.store.close())
    fuzzed.runner.close()


def test_any_body_on_any_path_is_stored_and_acknowledged(fuzzed: Fuzzed, fuzz_cases: int) -> None:
    @settings(max_examples=fuzz_cases // 80, suppress_health_check=list(HealthCheck))
    @given(PATHS, BODIES, HEADERS)
    def every(path: str, body: bytes, headers: dict[str, str]) -> None:
        assert fuzzed.check(path, body, headers) == 200

    every()


def test_mutated_callbacks_to_the_callback_url_of_a_job_are_stored(
    fuzzed: Fuzzed, fuzz_cases: int, first_seed: int
) -> None:
    for body in mutated_answers(first_seed + 99, fuzz_cases // 10):
        assert fuzzed.check("own", body, {}) == 200


def test_signed_and_unsigned_bodies_are_stored_or_refused(fuzzed: Fuzzed, fuzz_cases: int, first_seed: int) -> None:
    then = int(time())
    given_headers = [
        {},
        {TIMESTAMP: str(then), SIGNATURE: sign(TASK, then, KEY)},
        {TIMESTAMP: str(then), SIGNATURE: sign("ab" * 16, then, KEY)},
        {TIMESTAMP: str(then), SIGNATURE: "é"},
        {TIMESTAMP: "²", SIGNATURE: "x"},
    ]
    statuses = [
        fuzzed.check("own", body, given_headers[number % len(given_headers)], signed=True)
        for number, body in enumerate(islice(mutated_answers(first_seed + 7, fuzz_cases), fuzz_cases // 40))
    ]
    assert {200, 401} == set(statuses)
