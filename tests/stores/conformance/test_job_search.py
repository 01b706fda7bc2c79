"""Searching jobs: every combination of filters finds what a plain comparison of all jobs finds."""

import json
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from genlock.domain.job import AttentionCode, Delivery, Job, State
from genlock.domain.job_search import CountKind, JobFilter
from genlock.domain.money import EntryKind, HoldState
from genlock.ports import Reschedule
from genlock.stores.database import SqlDatabase
from tests.stores.builders import (
    PRICE,
    ManualClock,
    account_with,
    end,
    ended,
    ensure_profile,
    finish,
    queued,
    running,
    submitting,
)
from tests.stores.history import HEAVY, fill

TEXTS = ("a cat", "Рыжий ЛИС", 'said "no"', "100% \\ back_slash", "line\nbreak", "🦊 fox", "[x] (y)")
MODELS = ("z-image", "veo", "suno")


async def one_job(store: SqlDatabase, rng: Random, account_id: int) -> None:
    """A job in one of the states that a job can be in."""
    order: dict[str, Any] = {
        "account_id": account_id,
        "model": rng.choice(MODELS),
        "provider": rng.choice(("kie", "other")),
        "price": rng.choice((0, PRICE)),
        "input": json.dumps({"prompt": rng.choice(TEXTS), "n": rng.randrange(10)}, ensure_ascii=False),
    }
    match rng.randrange(8):
        case 0:
            await queued(store, **order)
        case 1:
            job = await submitting(store, **order)
            wait = Reschedule(
                job_id=job.id, token=job.lease_token, after=None, attention_reason="submit_unknown",
                attention_code=AttentionCode.PARKED,
            )  # fmt: skip
            assert await store.reschedule(wait)
        case 2:
            await running(store, **order)
        case 3:
            await end(store, await running(store, **order), State.FAILED, error_code=rng.choice(("nsfw", "timeout")))
        case 4:
            await end(store, await running(store, **order), State.CANCELLED, error_code="cancelled")
        case 5:
            job = await ended(store, **order)
            wait = Reschedule(
                job_id=job.id, token=job.lease_token, after=None, delivery=Delivery.PENDING,
                attention_reason="attempts", attention_code=AttentionCode.RETRIES_EXHAUSTED,
            )  # fmt: skip
            assert await store.reschedule(wait)
        case number:
            outcome = Delivery.DELIVERED if number == 6 else rng.choice((Delivery.UNDELIVERABLE, Delivery.UNKNOWN))
            reason = None if outcome is Delivery.DELIVERED else "blocked"
            assert await finish(store, await ended(store, **order), outcome, attention_reason=reason)


async def history(store: SqlDatabase, clock: ManualClock, jobs: int = 60, seed: int = 7) -> list[Job]:
    """All jobs, newest first."""
    rng = Random(seed)
    accounts = [await account_with(store, 100_000) for _ in range(3)]
    for _ in range(jobs):
        clock.advance(rng.randrange(600))
        await one_job(store, rng, rng.choice(accounts))
    return await store.jobs(limit=1000)


def random_filter(rng: Random, jobs: list[Job]) -> JobFilter:
    """Filters of which each is set in a third of the cases, mostly to a value that some job has."""
    job = rng.choice(jobs)
    prompt = json.loads(job.input)["prompt"]
    values: dict[str, Any] = {
        "states": tuple({job.state, *rng.sample(list(State), rng.randrange(3))}),
        "deliveries": tuple({job.delivery, *rng.sample(list(Delivery), rng.randrange(2))}),
        "holds": rng.choice(((job.hold_state,), (HoldState.HELD,), (HoldState.CAPTURED, HoldState.FREE))),
        "model": job.model,
        "provider": job.provider,
        "account_id": rng.choice((job.account_id, 10**9)),
        "since": job.created_at - timedelta(seconds=rng.randrange(3000)),
        "until": job.created_at + timedelta(seconds=rng.randrange(3000)),
        "error_code": rng.choice(("nsfw", "cancelled")),
        "task_id": rng.choice((job.task_id or "none", "none")),
        "text": rng.choice((prompt, prompt[2:5], prompt.lower(), "%", "_", "\\")),
        "attention": True,
    }
    share = rng.choice((0.1, 0.25))
    return JobFilter(**{name: value for name, value in values.items() if rng.random() < share})


async def all_pages(store: SqlDatabase, filters: JobFilter, **how: Any) -> list[int]:
    found: list[int] = []
    page = await store.search_jobs(filters, **how)
    found += [job.id for job in page.jobs]
    while page.before is not None:
        page = await store.search_jobs(filters, before=page.before, **how)
        found += [job.id for job in page.jobs]
    return found


async def test_every_combination_finds_what_a_plain_comparison_finds(
    store: SqlDatabase, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, first_seed: int
) -> None:
    jobs = await history(store, clock, seed=first_seed + 7)
    rng, wrong, found_any = Random(first_seed + 11), [], 0
    cases = [JobFilter(), *(random_filter(rng, jobs) for _ in range(100))]
    exact = {number: await store.count_jobs(filters) for number, filters in enumerate(cases)}
    for name, size in (("STEP", 16), ("FIRST_STEP", 3), ("WINDOW", 7)):
        monkeypatch.setattr(f"genlock.stores.job_search.{name}", size)
    for number, filters in enumerate(cases):
        expected = [job.id for job in jobs if filters.matches(job)]
        found_any += bool(expected)
        found = await all_pages(store, filters, limit=rng.choice((1, 5, 50)), seconds=rng.choice((0.0, 10.0)))
        if found != expected:
            wrong.append(f"{filters.dump()}: {found} instead of {expected}")
        if (exact[number].number, exact[number].kind) != (len(expected), CountKind.EXACT):
            wrong.append(f"{filters.dump()}: counted {exact[number]} instead of {len(expected)}")
    assert not wrong, "\n".join(wrong)
    assert found_any > 30


async def test_a_search_stops_when_its_time_is_over_and_says_how_far_it_looked(
    store: SqlDatabase, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = await history(store, clock, 12)
    monkeypatch.setattr("genlock.stores.job_search.FIRST_STEP", 5)

    page = await store.search_jobs(JobFilter(text="nowhere"), seconds=0.0)

    assert page.jobs == ()
    assert page.before == jobs[4].id
    assert page.looked_back_to == jobs[4].created_at
    rest = await store.search_jobs(JobFilter(text="nowhere"), before=page.before, seconds=10.0)
    assert (rest.before, rest.looked_back_to) == (None, None)


async def test_a_large_count_is_an_estimate_and_says_so(store: SqlDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(store, 300)  # 1,200 jobs: a third is cancelled, half belong to one account
    for name, size in (("STEP", 100), ("SAMPLE_BLOCKS", 30), ("SAMPLE_BLOCK_IDS", 5), ("COUNTED_MAX", 100)):
        monkeypatch.setattr(f"genlock.stores.job_search.{name}", size)

    everything = await store.count_jobs(JobFilter())
    cancelled = await store.count_jobs(JobFilter(states=(State.CANCELLED,)))
    none = await store.count_jobs(JobFilter(error_code="nsfw"))
    heavy = await store.count_jobs(JobFilter(account_id=HEAVY))

    assert (everything.number, everything.kind) == (1200, CountKind.ABOUT)
    assert cancelled.kind is CountKind.ABOUT
    assert 350 <= cancelled.number <= 450
    assert (none.number, none.kind) == (24, CountKind.AT_MOST)
    assert (heavy.number, heavy.kind) == (100, CountKind.AT_LEAST)


async def test_an_empty_database_has_no_jobs_to_find(store: SqlDatabase, clock: ManualClock) -> None:
    for filters in (JobFilter(), JobFilter(since=clock.now(), until=clock.now()), JobFilter(task_id="x")):
        assert (await store.search_jobs(filters)).jobs == ()
        assert (await store.count_jobs(filters)).number == 0
    assert await store.job_providers() == []
    assert await store.jobs_by_id([]) == []
    assert await store.refunded_jobs([]) == frozenset()
    assert await store.attempt_costs([]) == []
    assert await store.account_names([]) == {}


async def test_jobs_are_found_between_the_first_and_the_last_time_there_is(store: SqlDatabase) -> None:
    job = await queued(store, account_id=await account_with(store))
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    found = [
        [found_job.id for found_job in (await store.search_jobs(filters)).jobs]
        for filters in (JobFilter(since=first, until=last), JobFilter(since=last), JobFilter(until=first))
    ]
    assert found == [[job.id], [], []]


async def test_what_a_list_of_jobs_shows_besides_the_jobs(store: SqlDatabase) -> None:
    account_id = await account_with(store)
    job, other = await ended(store, account_id=account_id), await queued(store, account_id=account_id, provider="b")
    await finish(store, job)
    await store.transfer(account_id, EntryKind.REFUND, PRICE, f"refund:{job.id}")
    nameless = (await store.account(account_id)).external_id

    assert await store.refunded_jobs([job.id, other.id, 404]) == {job.id}
    assert await store.account_names([account_id, 404]) == {account_id: nameless}
    await ensure_profile(store, account_id, language="en", name="Ann", username="", referred_by=None)
    assert await store.account_names([account_id]) == {account_id: "Ann"}
    assert await store.job_providers() == ["kie"]
    assert [found.id for found in await store.jobs_by_id([job.id, 404, other.id])] == [other.id, job.id]


async def test_hostile_texts_are_data(store: SqlDatabase) -> None:
    job = await queued(store, input='{"prompt":"50% off, a_b"}')
    for text, is_found in (
        ("%", True),
        ("a_b", True),
        ("5_%", False),
        ("a.b", False),
        ("'; DROP TABLE jobs;--", False),
    ):
        found = [found_job.id for found_job in (await store.search_jobs(JobFilter(text=text))).jobs]
        assert found == ([job.id] if is_found else []), text
    for hostile in ("\ud800", "a\0b", "x" * 100_000):
        for filters in (JobFilter(text=hostile), JobFilter(error_code=hostile), JobFilter(task_id=hostile)):
            assert (await store.search_jobs(filters)).jobs == ()
            assert (await store.count_jobs(filters)).number == 0


def test_a_filter_is_stored_and_read_back() -> None:
    rng = Random(3)
    for _ in range(50):
        filters = JobFilter(
            states=tuple(rng.sample(list(State), 2)),
            holds=(HoldState.HELD,) if rng.random() < 0.5 else (),
            text=rng.choice(TEXTS),
            account_id=rng.choice((None, 5)),
            since=ManualClock().now(),
            attention=rng.random() < 0.5,
        )
        assert JobFilter.load(json.loads(json.dumps(filters.dump()))) == filters
    assert JobFilter().dump() == {}
