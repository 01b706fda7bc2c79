"""A statement that was committed while its answer was lost is repeated, and changes nothing twice."""

from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

from genlock.domain.job import State, Verdict
from genlock.domain.money import EntryKind, HoldState, Wallet
from genlock.stores.postgres import PostgresStore
from genlock.stores.rows import Row
from tests.stores.builders import ME, account_with, claimed, delivered, end, ended, finish, order, queued, running, see


@pytest.fixture
def lose_an_answer(postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Commit the next statement and lose its answer."""
    attempt = postgres.session._try

    def arm() -> None:
        async def lost(text: str, values: list[Any]) -> list[Row]:
            await attempt(text, values)
            monkeypatch.setattr(postgres.session, "_try", attempt)
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

        monkeypatch.setattr(postgres.session, "_try", lost)

    return arm


async def test_an_order_whose_answer_was_lost_is_one_job(
    postgres: PostgresStore, lose_an_answer: Callable[[], None]
) -> None:
    account_id = await account_with(postgres, 1000)
    lose_an_answer()

    accepted = await postgres.accept_job(order(account_id, price=100), ME)

    assert await postgres.jobs() == [accepted.job]
    assert await postgres.wallet(account_id) == Wallet(account_id=account_id, available=900, held=100)
    assert postgres.uncertain_commits == 1, "the job may be leased to us without our knowing"


async def test_a_transfer_whose_answer_was_lost_is_made_once(
    postgres: PostgresStore, lose_an_answer: Callable[[], None]
) -> None:
    account_id = await account_with(postgres, 0)
    lose_an_answer()

    await postgres.transfer(account_id, EntryKind.TOPUP, 5, "key")

    assert (await postgres.wallet(account_id)).available == 5


async def test_an_end_whose_answer_was_lost_releases_the_hold_once(
    postgres: PostgresStore, lose_an_answer: Callable[[], None]
) -> None:
    job = await running(postgres)
    lose_an_answer()

    assert (await end(postgres, job, State.FAILED)).verdict is Verdict.DUPLICATE

    assert (await postgres.wallet(job.account_id)).available == 1000
    assert await postgres.violations(settled=False) == []


async def test_a_finished_delivery_whose_answer_was_lost_is_captured_once(
    postgres: PostgresStore, lose_an_answer: Callable[[], None]
) -> None:
    job = await ended(postgres)
    lose_an_answer()

    await finish(postgres, job)

    assert (await see(postgres, job)).hold_state is HoldState.CAPTURED
    assert await postgres.wallet(job.account_id) == Wallet(account_id=job.account_id, available=900, held=0)


async def test_a_notice_whose_beginning_was_lost_is_not_begun_twice(
    postgres: PostgresStore, lose_an_answer: Callable[[], None]
) -> None:
    job = await delivered(postgres)
    lose_an_answer()

    assert not await postgres.begin_notice(job.id, job.lease_token), "rather none than two"


async def test_an_instance_can_release_leases_it_never_saw(
    postgres: PostgresStore, lose_an_answer: Callable[[], None]
) -> None:
    known = await queued(postgres)
    unseen = await queued(postgres, lease=None)
    lose_an_answer()
    assert await postgres.claim_jobs(10, ME) == [], "the job was in the answer that was lost"
    assert postgres.uncertain_commits == 1
    assert (await see(postgres, unseen)).lease_owner == ME.owner

    assert await postgres.release_leases(ME.owner, [known.id]) == 1

    assert (await claimed(postgres, unseen)).lease_token == unseen.lease_token + 2
