"""Limits that four instances on one PostgreSQL keep together: open orders of a key, tasks at a provider."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from genlock.domain.errors import TooManyOpenJobs
from genlock.domain.job import State, Verdict, hash_secret
from tests.stores.builders import (
    SECRET,
    end,
    new_key,
    order,
)
from tests.stores.conftest import RecordingObserver
from tests.stores.fleet import ACCOUNT_COUNT, Fleet, open_fleet

pytestmark = pytest.mark.timeout(60, func_only=True)  # without a limit, a lost job would block the test


@pytest_asyncio.fixture(loop_scope="session")
async def fleet(postgres_url: str, observer: RecordingObserver) -> AsyncIterator[Fleet]:
    async with open_fleet(postgres_url, observer) as fleet:
        yield fleet


async def test_all_instances_together_keep_the_number_of_open_api_jobs(fleet: Fleet) -> None:
    """Orders and ends at once: no commit ever exceeds the limit, and the room that ends make is used."""
    most, store = 5, fleet.instances[0].store
    seen: list[int] = []
    keys = {account: (await store.add_api_key(new_key(account, account)))[0].id for account in fleet.accounts[:3]}

    async def buy_and_end(account_id: int) -> int:
        done = 0
        for _ in range(6):
            instance = fleet.any()
            try:
                wanted = order(account_id, api_key_id=keys[account_id], open_max=most)
                job = (await instance.store.accept_job(wanted, instance.lease)).job
            except TooManyOpenJobs:
                continue
            done += 1
            seen.append((await fleet.any().store.order_state(account_id, "none")).open_api_jobs)
            await end(fleet.any().store, job, fleet.rng.choice([State.FAILED, State.SUCCEEDED]))
        return done

    done = await asyncio.gather(*(buy_and_end(account) for account in keys for _ in range(20)))

    assert sum(done) > 3 * most
    assert max(seen) == most
    assert [(await store.order_state(account_id, "none")).open_api_jobs for account_id in keys] == [0, 0, 0]
    assert await store.violations(settled=False) == []
    assert fleet.observer.total("store_retries") == 0, "no deadlock"


async def test_the_instances_together_never_begin_more_tasks_than_a_provider_may_work_on(fleet: Fleet) -> None:
    most, working, seen = 3, set[int](), list[int]()

    async def run(number: int) -> int:
        """Begin a submit as often as needed, and end it. Returns the job's id."""
        instance = fleet.any()
        wanted = order(fleet.accounts[number % ACCOUNT_COUNT], deadline_seconds=3600.0)
        job = (await instance.store.accept_job(wanted, instance.lease)).job
        begun: bool | None = None
        while not begun:
            await asyncio.sleep(fleet.rng.random() * 0.005)
            begun = await instance.store.begin_limited_submit(
                job.id, job.lease_token, hash_secret(SECRET), None, provider="kie", offer="m", most=most
            )
        working.add(job.id)
        seen.append(len(working))
        await asyncio.sleep(fleet.rng.random() * 0.002)
        working.discard(job.id)
        assert (await end(fleet.any().store, job, State.FAILED, None)).verdict is Verdict.WON
        return job.id

    jobs = await fleet.at_once(run(number) for number in range(120))
    assert len(set(jobs)) == 120
    assert max(seen) == most
    assert await fleet.instances[0].store.slots_used("kie") == 0
