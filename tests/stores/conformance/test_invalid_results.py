"""Invalid results and changed addresses."""

import pytest

from genlock.domain.delivery import MESSAGE_ONLY, again
from genlock.domain.job import Delivery, State
from genlock.domain.money import EntryKind, HoldState, Wallet
from genlock.ports import Store
from tests.stores.builders import SHOWN, account_with, claimed, delivered, end, ended, finish, see, unchanged
from tests.stores.conformance.settlements import settlements


@pytest.mark.parametrize("price", [0, 100])
async def test_an_invalid_result_becomes_a_failure_and_its_hold_is_released_once(store: Store, price: int) -> None:
    account_id = await account_with(store, 1000)
    job = await ended(store, account_id=account_id, price=price)

    for _ in range(2):  # the second time is a repetition of the statement
        failed = await store.mark_result_invalid(job.id, job.lease_token, MESSAGE_ONLY, "broken_result", "an HTML page")
        assert failed is not None
        assert (failed.state, failed.error_code, failed.error_text) == (State.FAILED, "broken_result", "an HTML page")
        assert (failed.parts, failed.delivery, failed.lease_token) == (MESSAGE_ONLY, Delivery.SENDING, job.lease_token)
        assert failed.hold_state is (HoldState.RELEASED if price else HoldState.FREE)

    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=1000, held=0)
    assert await settlements(store, account_id) == ([EntryKind.RELEASE] if price else [])
    assert await finish(store, job)
    assert await settlements(store, account_id) == ([EntryKind.RELEASE] if price else [])
    assert await store.violations(settled=False) == []


async def test_a_stale_token_marks_no_result_invalid(store: Store) -> None:
    job = await ended(store)

    assert await store.mark_result_invalid(job.id, job.lease_token - 1, MESSAGE_ONLY, "broken_result", "") is None

    assert await unchanged(store, job)


async def test_a_captured_or_finished_result_is_not_marked_invalid(store: Store) -> None:
    paid = await delivered(store)
    assert await store.resend_job(paid.id, again(SHOWN))
    paid = await claimed(store, paid)
    assert await store.mark_result_invalid(paid.id, paid.lease_token, MESSAGE_ONLY, "broken_result", "") is None
    assert (await see(store, paid)).hold_state is HoldState.CAPTURED

    expired = await ended(store, State.EXPIRED)
    assert await store.mark_result_invalid(expired.id, expired.lease_token, MESSAGE_ONLY, "broken_result", "") is None
    assert (await see(store, expired)).state is State.EXPIRED


async def test_a_changed_address_is_stored_and_the_placeholder_dropped(store: Store) -> None:
    job = await ended(store)

    assert not await store.change_address(job.id, job.lease_token - 1, "elsewhere", SHOWN)
    assert await unchanged(store, job)
    assert await store.change_address(job.id, job.lease_token, "elsewhere", SHOWN)

    now = await see(store, job)
    assert (now.address, now.placeholder, now.parts) == ("elsewhere", None, SHOWN)
    assert (now.lease_owner, now.due_at, now.delivery) == (job.lease_owner, job.due_at, job.delivery)


async def test_a_late_result_that_is_invalid_becomes_a_failure_and_moves_no_money(store: Store) -> None:
    for state in (State.EXPIRED, State.FAILED):
        job = await ended(store, state, lease=None)
        late = (await end(store, job, State.SUCCEEDED)).job
        assert late is not None
        wallet = await store.wallet(job.account_id)

        failed = await store.mark_result_invalid(late.id, late.lease_token, MESSAGE_ONLY, "broken_result", "")

        assert failed is not None
        assert (failed.state, failed.late, failed.hold_state) == (State.FAILED, False, HoldState.RELEASED)
        assert await store.wallet(job.account_id) == wallet
        assert await store.violations(settled=False) == []
