"""How many statements a request costs: each is a round trip to the database."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from genlock.api import order_acceptance
from genlock.sandbox.postgres import Postgres
from genlock.stores.queries import load
from tests.api.world import ApiWorld, Client, running_api
from tests.changes import PATIENCE_SECONDS
from tests.channels.telegram.harness import AdjustableClock
from tests.databases import new_sqlite

pytestmark = pytest.mark.asyncio(loop_scope="module")
#: The work on jobs and the limits per key run others, at any time.
REQUESTED = {
    "api_keys_by_secret",
    "api_keys_with_jobs",
    "api_keys_with_orders",
    "api_jobs_by_id",
    "accept_lookup",
    "accept_job",
}


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["sqlite", "postgres"])
async def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres_server: Postgres
) -> AsyncIterator[ApiWorld]:
    folder: Path = tmp_path_factory.mktemp("api")
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{new_sqlite(folder)}" if is_sqlite else postgres_server.create_database()
    async with running_api(url, folder / "media") as running:
        yield running
    if not is_sqlite:
        postgres_server.drop_database(url)


def statements(world: ApiWorld) -> dict[str, int]:
    """The statements that requests have run so far."""
    found = {name: world.recorder.total("store_statements", operation=name) for name in REQUESTED}
    return {name: count for name, count in found.items() if count}


def added(world: ApiWorld, before: dict[str, int]) -> dict[str, int]:
    return {name: more for name, count in statements(world).items() if (more := count - before.get(name, 0))}


@pytest_asyncio.fixture(loop_scope="module")
async def client(world: ApiWorld) -> Client:
    made = await world.client()
    await made.get("/v1/balance")  # records the first use of the key, and takes permits
    return made


async def test_the_statements_that_are_counted_exist() -> None:
    assert load("sqlite").keys() >= REQUESTED


async def test_a_read_of_a_job_costs_one_statement(world: ApiWorld, client: Client) -> None:
    job = (await client.order(wait=60)).json
    for path in (f"/v1/jobs/{job['id']}", f"/v1/jobs/{job['id']}/results/0", "/v1/jobs/job_ZZZZZZ"):
        before = statements(world)
        await client.get(path)
        assert added(world, before) in ({"api_keys_with_jobs": 1}, {"api_keys_by_secret": 1}), path


async def test_an_order_and_its_repetition_cost_one_read_and_the_order_one_write(
    world: ApiWorld, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order_acceptance, "STATE_SECONDS", PATIENCE_SECONDS)
    before = statements(world)
    first = await client.order("key")
    assert (first.status, added(world, before)) == (202, {"api_keys_with_orders": 1, "accept_job": 1})

    before = statements(world)
    again = await client.order("key")
    assert (again.json["id"], added(world, before)) == (first.json["id"], {"api_keys_with_orders": 1})


async def test_an_order_whose_body_took_long_is_decided_by_what_is_true_then(
    world: ApiWorld, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order_acceptance, "STATE_SECONDS", 0.0)
    before = statements(world)

    assert (await client.order("slow")).status == 202

    assert added(world, before) == {"api_keys_with_orders": 1, "accept_lookup": 1, "accept_job": 1}


@contextmanager
def time_stands_still(world: ApiWorld, clock: AdjustableClock) -> Iterator[None]:
    """Let no permit become free during the block, however long it takes."""
    limits = world.api._parts.limits
    by_the_loop, now = limits._clock, limits._clock()
    limits._clock = lambda: now
    with clock.stopped(clock.now()):
        yield
    limits._clock = by_the_loop


async def test_requests_above_the_limit_are_refused_without_reading_their_key(tmp_path: Path) -> None:
    url, clock = f"sqlite:///{new_sqlite(tmp_path)}", AdjustableClock()
    async with running_api(url, tmp_path / "media", clock=clock, api_requests_per_second=1) as world:
        client, other = await world.client(), await world.client()
        with time_stands_still(world, clock):
            assert [(await client.order()).status for _ in range(3)] == [202, 202, 429]
            before = statements(world)

            refusals = await asyncio.gather(*(client.order() for _ in range(20)), client.get("/v1/balance"))

            assert {(refusal.status, refusal.code) for refusal in refusals} == {(429, "too_many_requests")}
            assert all("RateLimit" in refusal.headers and "Retry-After" in refusal.headers for refusal in refusals)
            assert added(world, before) == {}
            assert (await other.get("/v1/balance")).status == 200, "of this key only"
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await client.get("/v1/balance")).status == 429:
                pass
        await world.store.revoke_api_key(client.key.id)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (answer := await client.get("/v1/balance")).status == 429:
                pass
        assert answer.status == 401, "a permit is free again, and the key is read"


async def test_reads_at_the_same_time_share_statements_and_each_gets_its_own_job(
    world: ApiWorld, client: Client
) -> None:
    jobs = [(await client.order()).json["id"] for _ in range(3)]
    other = await world.client()
    before = statements(world)

    answers = await asyncio.gather(*(caller.get(f"/v1/jobs/{job}") for job in jobs * 5 for caller in (client, other)))

    assert [answer.status for answer in answers] == [200, 404] * 15
    assert [answer.json["id"] for answer in answers[::2]] == jobs * 5
    assert added(world, before)["api_keys_with_jobs"] <= 30


async def test_a_revoked_key_is_refused_by_the_next_request(world: ApiWorld, client: Client) -> None:
    job = (await client.order()).json["id"]
    assert (await client.get(f"/v1/jobs/{job}")).status == 200

    await world.store.revoke_api_key(client.key.id)

    assert (await client.get(f"/v1/jobs/{job}")).status == 401
    assert (await client.order("after")).status == 401
