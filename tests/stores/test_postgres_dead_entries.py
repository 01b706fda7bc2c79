"""While a transaction holds an old snapshot, PostgreSQL keeps what ended: claims pass it by, and miss nothing."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import asyncpg
import pytest

from genlock.domain.errors import StoreUnavailable
from genlock.domain.job import Job
from genlock.ports import Lease
from genlock.stores.due_scan import FULL_SCAN_SECONDS
from genlock.stores.postgres import PostgresStore
from tests.stores.builders import ME, OTHER, ManualClock, queued, running
from tests.stores.conftest import RecordingObserver
from tests.stores.every_method.everything import use_everything
from tests.stores.open_postgres import opened

#: due some time in the last three hours, and settled meanwhile; {now} is the clock of the tests
ENDED = [
    """
    INSERT INTO jobs (
        account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, model, input, price,
        hold_state, state, task_id, notice, deadline_at, lease_token, created_at, due_at)
    SELECT n, 'old-' || n, '', 'old', 'kie', 'chat', 'bot', '', 'model', '{{}}', 0, 'free', 'running', 'old-' || n,
        'none', {now}, 1, {now}, {now} - n * interval '10800 s' / {rows} - interval '61 s'
    FROM generate_series(1, {rows}) AS n""",
    """
    UPDATE jobs SET due_at = NULL, state = 'succeeded', delivery = 'delivered', ended_at = {now}, delivered_at = {now}
    WHERE state = 'running'""",
    """
    INSERT INTO inbox (provider, body, state, received_at, due_at)
    SELECT 'kie', '{{}}', 'new', {now}, {now} - n * interval '10800 s' / {rows} - interval '61 s'
    FROM generate_series(1, {rows}) AS n""",
    "UPDATE inbox SET due_at = NULL, state = 'done' WHERE state = 'new'",
    """
    INSERT INTO update_queues (bot, name, urgent, waiting, due_at)
    SELECT 'bot', n, true, 1, {now} - n * interval '10800 s' / {rows} - interval '61 s'
    FROM generate_series(1, {rows}) AS n""",
    "UPDATE update_queues SET due_at = NULL, waiting = 0 WHERE waiting = 1",
    """
    INSERT INTO webhook_deliveries (public_id, webhook_id, job_id, event, event_at, due_at)
    SELECT 'old-' || n, n % 3 + 1, n, 'job.succeeded', {now}, {now} - n * interval '10800 s' / {rows} - interval '121 s'
    FROM generate_series(1, {rows}) AS n""",
    "UPDATE webhook_deliveries SET due_at = NULL, state = 'delivered' WHERE due_at IS NOT NULL",
]
Work = Callable[[PostgresStore], Awaitable[Any]]
CLAIMS: dict[str, Work] = {
    "claim_jobs": lambda store: store.claim_jobs(10, ME),
    "claim_callbacks": lambda store: store.claim_callbacks(10, 5.0),
    "claim_update_queues": lambda store: store.claim_update_queues(10, ME, bots=["bot"], urgent=True),
}
RELEASES: dict[str, Work] = {
    "release_leases": lambda store: store.release_leases("me", [0], crashed=True),
    "release_update_queues": lambda store: store.release_update_queues("me", [0], crashed=True),
}


@asynccontextmanager
async def snapshot(url: str) -> AsyncIterator[None]:
    """Hold a snapshot as a backup does."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetchval("SELECT count(*) FROM jobs")
            yield
    finally:
        await connection.close()


async def pages(store: PostgresStore, work: Work, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many pages the statement of some work reads. It changes nothing."""
    read = 0

    async def explained(text: str, values: Sequence[Any]) -> Any:
        nonlocal read
        async with store.session.pool.acquire() as connection:
            transaction = connection.transaction()
            await transaction.start()
            options = "ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON"
            plan = json.loads(await connection.fetchval(f"EXPLAIN ({options}) {text}", *values))[0]["Plan"]
            rows = await connection.fetch(text, *values)
            await transaction.rollback()
        read += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(store.session, "_try", explained)
        await work(store)
    return read


async def end_rows(store: PostgresStore, clock: ManualClock, rows: int) -> None:
    for statement in ENDED:
        await store.session.pool.execute(statement.format(now=f"timestamptz '{clock.now().isoformat()}'", rows=rows))


@pytest.mark.parametrize("name", CLAIMS)
async def test_a_claim_does_not_pass_over_what_ended_while_another_transaction_was_open(
    postgres: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with snapshot(postgres.session._url):
        await end_rows(postgres, clock, 5000)
        from_start = await pages(postgres, CLAIMS[name], monkeypatch)
        clock.advance(1.0)
        after = await pages(postgres, CLAIMS[name], monkeypatch)

    assert from_start > 50, "nothing was in the way: the test proves nothing"
    assert after < 10


@pytest.mark.parametrize("name", RELEASES)
async def test_a_crashed_instance_is_released_without_passing_over_what_ended_during_another_transaction(
    postgres: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with snapshot(postgres.session._url):
        await end_rows(postgres, clock, 5000)
        of_unknown_instance = await pages(postgres, RELEASES[name], monkeypatch)
        await postgres.heartbeat("me", 3.0)
        after = await pages(postgres, RELEASES[name], monkeypatch)

    assert of_unknown_instance > 50, "nothing was in the way: the test proves nothing"
    assert after < 20


async def test_the_leases_of_an_instance_that_crashed_long_ago_are_released(
    postgres: PostgresStore, clock: ManualClock
) -> None:
    """All instances were down for an hour."""
    await postgres.heartbeat("me", 3.0)
    job = await queued(postgres)
    clock.advance(3600.0)

    assert await postgres.release_leases("me", crashed=True) == 1
    found = await postgres.job(job.id)
    assert found is not None
    assert (found.lease_owner, found.crash_count) == (None, 1)


async def add_endpoints(store: PostgresStore, clock: ManualClock, number: int) -> None:
    await store.session.pool.execute(
        "INSERT INTO webhooks (id, account_id, public_id, url, events, description, held_until, created_at)"
        " OVERRIDING SYSTEM VALUE SELECT n, 1, n, '', ' ', '', $1, $1 FROM generate_series(1, $2::int) AS n",
        clock.now(), number,
    )  # fmt: skip


async def add_event(store: PostgresStore, clock: ManualClock, name: str, ago: float, webhook_id: int = 1) -> None:
    await store.session.pool.execute(
        "INSERT INTO webhook_deliveries (public_id, webhook_id, event, event_at, due_at)"
        " VALUES ($1, $2, 'job.succeeded', $3, $3)",
        name, webhook_id, clock.after(-ago),
    )  # fmt: skip


async def claimed_endpoints(store: PostgresStore) -> list[int]:
    found = await store.claim_webhooks("me", limit=10, degraded=10, hold_seconds=60.0)
    for webhook in found:
        await store.release_webhook(webhook.id, "me", 0.0, failed=None)
    return sorted(webhook.id for webhook in found)


@pytest.fixture
def every_search_is_slow(postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.stores.webhooks.SLOW_SCAN_SECONDS", 0.0)
    monkeypatch.setattr(postgres.session, "has_own_clock", False)


@pytest.mark.usefixtures("every_search_is_slow")
async def test_after_a_slow_search_for_events_the_next_ones_do_not_pass_over_what_was_delivered(
    postgres: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_endpoints(postgres, clock, 3)
    works: list[Work] = [
        lambda store: store.claim_webhooks("me", limit=10, degraded=10, hold_seconds=60.0),
        lambda store: store.due_webhook_deliveries(1, 20),
    ]
    async with snapshot(postgres.session._url):
        await end_rows(postgres, clock, 5000)
        await add_event(postgres, clock, "new", ago=0.0)
        for work in works:
            from_start, after = [await pages(postgres, work, monkeypatch) for _ in range(2)]
            assert from_start > 50, "nothing was in the way: the test proves nothing"
            assert after < 48


@pytest.mark.usefixtures("every_search_is_slow")
async def test_after_a_slow_search_new_events_are_found_at_once_and_old_ones_with_the_next_full_search(
    postgres: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_endpoints(postgres, clock, 3)
    time = 1000.0
    monkeypatch.setattr("genlock.stores.webhooks.monotonic", lambda: time)
    monkeypatch.setattr("genlock.stores.webhooks.SLOW_SCAN_SECONDS", -1.0)
    assert await claimed_endpoints(postgres) == []
    await add_event(postgres, clock, "old", ago=3600.0, webhook_id=2)
    await add_event(postgres, clock, "new", ago=0.0)
    assert await claimed_endpoints(postgres) == [1]
    assert [found.public_id for found in await postgres.due_webhook_deliveries(1, 20)] == ["new"]
    await add_event(postgres, clock, "newer", ago=0.0)
    await add_event(postgres, clock, "older", ago=3600.0)
    assert [found.public_id for found in await postgres.due_webhook_deliveries(1, 20)] == ["new", "newer"]

    time += FULL_SCAN_SECONDS
    assert await claimed_endpoints(postgres) == [1, 2]
    assert [found.public_id for found in await postgres.due_webhook_deliveries(1, 20)] == ["older", "new", "newer"]


async def test_after_a_full_search_for_endpoints_that_was_cut_by_its_time_out_new_events_are_found(
    postgres: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_endpoints(postgres, clock, 1)
    await add_event(postgres, clock, "new", ago=0.0)
    monkeypatch.setattr("genlock.stores.webhooks.SLOW_SCAN_SECONDS", -1.0)
    monkeypatch.setattr(postgres.session, "has_own_clock", False)
    one = postgres.session.one

    async def cut(name: str, /, **params: Any) -> Any:
        if params.get("full"):
            raise StoreUnavailable("cut")
        return await one(name, **params)

    monkeypatch.setattr(postgres.session, "one", cut)
    with pytest.raises(StoreUnavailable):
        await claimed_endpoints(postgres)
    assert await claimed_endpoints(postgres) == [1]


async def claimed(store: PostgresStore, limit: int = 10, lease: Lease = OTHER) -> list[int]:
    return sorted(job.id for job in await store.claim_jobs(limit, lease))


async def make_due(store: PostgresStore, job: Job, clock: ManualClock, ago: float) -> None:
    """By hand, as no statement of ours does."""
    await store.session.pool.execute("UPDATE jobs SET due_at = $2 WHERE id = $1", job.id, clock.after(-ago))


async def test_a_job_that_became_due_behind_the_scan_is_claimed_with_the_next_full_one(
    postgres: PostgresStore, clock: ManualClock
) -> None:
    job = await running(postgres, poll_after=500.0)
    assert not await claimed(postgres)
    await make_due(postgres, job, clock, 3600.0)

    clock.advance(FULL_SCAN_SECONDS)
    assert not await claimed(postgres)  # this one notices that it is time for a full scan
    assert await claimed(postgres) == [job.id]


async def test_full_scans_come_again_and_again(postgres: PostgresStore, clock: ManualClock) -> None:
    job = await running(postgres, poll_after=5000.0)
    for _ in range(3):
        await claimed(postgres)
        await make_due(postgres, job, clock, 3600.0)
        clock.advance(FULL_SCAN_SECONDS)
        assert await claimed(postgres) + await claimed(postgres) == [job.id]


async def test_a_job_that_is_due_now_is_claimed_at_once(postgres: PostgresStore, clock: ManualClock) -> None:
    for _ in range(5):
        assert not await claimed(postgres)
        job = await queued(postgres, None)
        assert await claimed(postgres) == [job.id]
        waiting = await running(postgres, poll_after=500.0)
        assert await postgres.retry_job(waiting.id)
        assert await claimed(postgres) == [waiting.id]
        clock.advance(0.5)


async def test_jobs_that_became_due_between_two_claims_far_apart_are_claimed(
    postgres: PostgresStore, clock: ManualClock
) -> None:
    """An instance without free capacity does not claim."""
    assert not await claimed(postgres)
    job = await running(postgres, poll_after=5.0)
    clock.advance(1800.0)

    assert await claimed(postgres) == [job.id]


async def test_a_backlog_is_claimed_without_waiting_for_a_full_scan(
    postgres: PostgresStore, clock: ManualClock
) -> None:
    """Every claim takes as many as it may: later ones go on from there."""
    jobs = [await running(postgres, poll_after=5000.0) for _ in range(10)]
    for number, job in enumerate(jobs):
        await make_due(postgres, job, clock, 36_000.0 - 3000.0 * number)

    found = [await claimed(postgres, 3) for _ in range(4)]
    assert [len(ids) for ids in found] == [3, 3, 3, 1]
    assert sorted(id_ for ids in found for id_ in ids) == [job.id for job in jobs]


async def test_a_job_whose_statement_ends_late_is_claimed_then(postgres: PostgresStore, clock: ManualClock) -> None:
    """What it made due was due before the claims that could not see it."""
    job = await running(postgres, poll_after=500.0)
    async with postgres.session.pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("UPDATE jobs SET due_at = $2 WHERE id = $1", job.id, clock.now())
        for _ in range(10):  # as long as a statement may take
            clock.advance(1.0)
            assert not await claimed(postgres)
        await transaction.commit()

    assert await claimed(postgres) == [job.id]


async def test_a_clock_that_was_set_back_does_not_delay_what_is_due_now(
    postgres: PostgresStore, clock: ManualClock
) -> None:
    assert not await claimed(postgres)
    clock.advance(-3600.0)
    job = await queued(postgres, None)

    assert await claimed(postgres) == [job.id]


async def test_after_a_clock_was_set_back_there_are_full_scans(postgres: PostgresStore, clock: ManualClock) -> None:
    job = await running(postgres, poll_after=500.0)
    assert not await claimed(postgres)
    clock.advance(-3600.0)
    assert not await claimed(postgres)
    await make_due(postgres, job, clock, 3600.0)

    clock.advance(FULL_SCAN_SECONDS)
    assert await claimed(postgres) + await claimed(postgres) == [job.id]


async def test_between_full_scans_that_are_cut_by_their_time_out_jobs_that_are_due_now_are_claimed(
    postgres: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not await claimed(postgres)
    clock.advance(FULL_SCAN_SECONDS)
    assert not await claimed(postgres)  # this one notices that it is time for a full scan
    jobs = [await queued(postgres, None) for _ in range(2)]
    one = postgres.session.one

    async def cut(name: str, /, **params: Any) -> Any:
        if params["due_since"] is None:
            raise StoreUnavailable("cut")
        return await one(name, **params)

    monkeypatch.setattr(postgres.session, "one", cut)
    found = []
    for _ in range(4):
        with suppress(StoreUnavailable):
            found += await claimed(postgres, 1)
    assert found == [job.id for job in jobs]

    monkeypatch.undo()
    waiting = await running(postgres, poll_after=500.0)
    await make_due(postgres, waiting, clock, 3600.0)
    assert await claimed(postgres) + await claimed(postgres) == [waiting.id], "a full scan comes as soon as it can"


async def test_claims_of_urgent_and_other_updates_do_not_share_how_far_they_came(
    postgres: PostgresStore, clock: ManualClock
) -> None:
    await postgres.session.pool.execute(
        "INSERT INTO update_queues (bot, name, urgent, waiting, due_at) SELECT bot, 'x', false, 1, $1"
        " FROM unnest(ARRAY['a', 'b']) AS bots (bot)",
        clock.after(-3600.0),
    )
    for bots, urgent, number in ((["a"], True, 0), (["a"], False, 1), (["b"], False, 1), (["a", "b"], False, 0)):
        assert len(await postgres.claim_update_queues(10, ME, bots=bots, urgent=urgent)) == number


FORBID_THE_PAST = """
CREATE FUNCTION forbid_the_past() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    IF NEW.due_at < current_setting('test.now')::timestamptz AND (TG_OP = 'INSERT' OR NEW.due_at <> OLD.due_at) THEN
        RAISE EXCEPTION '% of % made a row due in the past', TG_OP, TG_TABLE_NAME;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER no_past BEFORE INSERT OR UPDATE OF due_at ON jobs FOR EACH ROW EXECUTE FUNCTION forbid_the_past();
CREATE TRIGGER no_past BEFORE INSERT OR UPDATE OF due_at ON inbox FOR EACH ROW EXECUTE FUNCTION forbid_the_past();
CREATE TRIGGER no_past BEFORE INSERT OR UPDATE OF due_at ON update_queues FOR EACH ROW
EXECUTE FUNCTION forbid_the_past();
"""


async def test_no_statement_makes_a_row_due_in_the_past(
    migrated_postgres_url: str, clock: ManualClock, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would wait for a full scan."""
    async with opened(migrated_postgres_url, observer, clock=clock) as store:
        await store.session.pool.execute(FORBID_THE_PAST)
        monkeypatch.setattr(store.session, "_try", partial(run_at, clock, store.session.pool))
        await use_everything(store, clock)
        overdue = await queued(store, deadline_seconds=1.0)
        await store.begin_submit(overdue.id, overdue.lease_token, "hash", None)
        clock.advance(600.0)
        assert await store.mark_submitted(overdue.id, overdue.lease_token, "overdue", 5.0)


async def run_at(clock: ManualClock, pool: Any, text: str, values: Sequence[Any]) -> Any:
    """Run a statement whose triggers know what time it is."""
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('test.now', $1, true)", clock.now().isoformat())
        return await connection.fetch(text, *values)
