"""The checker of the simulation: what it excuses, and that it excuses nothing else."""

from dataclasses import replace

import pytest

from genlock.domain.job import AttentionCode, Delivery, State
from genlock.domain.money import HoldState
from genlock.sandbox.simulation.checker import _check_notices, _check_once, _check_payment, _check_placeholders
from genlock.sandbox.simulation.faulty_channel import message_of
from genlock.sandbox.simulation.world import Message, Truth
from tests.rows import JOB

ENDED = replace(JOB, state=State.SUCCEEDED, delivery=Delivery.DELIVERED)


def rules(findings: list[tuple[str, str]]) -> set[str]:
    return {rule for rule, _ in findings}


@pytest.mark.parametrize("late", [True, False])
def test_a_late_result_that_only_the_row_shows_has_a_notice_of_its_own(*, late: bool) -> None:
    """Its caller was cancelled before it saw the answer of the database."""
    truth = Truth()
    truth.notices[ENDED.id] = 2
    assert rules(_check_notices(replace(ENDED, late=late), truth)) == (set() if late else {"One notice for each end."})


@pytest.mark.parametrize("late", [True, False])
def test_a_late_result_that_only_the_row_shows_is_free(*, late: bool) -> None:
    free = replace(ENDED, late=late, hold_state=HoldState.RELEASED)
    assert bool(_check_payment(free, Truth(shown={ENDED.id}))) is not late


@pytest.mark.parametrize("parked", [True, False])
@pytest.mark.parametrize("resent", [True, False])
def test_a_result_under_late_progress_is_excused_only_while_its_resend_waits_for_the_operator(
    *, parked: bool, resent: bool
) -> None:
    truth = Truth(messages={"m1": Message(address=ENDED.address, shows=(ENDED.id, "the words"), progress=True)})
    truth.resends[ENDED.id] = int(resent)
    code = AttentionCode.STAGE_ERROR if parked else None
    job = replace(ENDED, attention_code=code, delivery=Delivery.PENDING if parked else Delivery.DELIVERED)

    found = "A late progress edit never overwrites a result." in rules(_check_once(job, truth))

    assert found is not (parked and resent)


@pytest.mark.parametrize("own_message", [True, False])
@pytest.mark.parametrize("hold", [HoldState.CAPTURED, HoldState.RELEASED])
def test_late_progress_is_excused_on_a_result_that_was_given_up_and_never_settled(
    hold: HoldState, *, own_message: bool
) -> None:
    given_up = replace(ENDED, delivery=Delivery.UNDELIVERABLE, hold_state=hold)
    shows = message_of(given_up) if own_message else "the words"
    truth = Truth(messages={"m1": Message(address=ENDED.address, shows=(ENDED.id, shows), progress=True)})
    truth.resends[ENDED.id] = 1

    found = "A late progress edit never overwrites a result." in rules(_check_once(given_up, truth))

    assert found is (own_message or hold is HoldState.CAPTURED)


@pytest.mark.parametrize("why", ["", "deleted", "blocked", "blocked before", "listed"])
def test_a_message_may_be_left_waiting_only_if_no_edit_reached_it(why: str) -> None:
    truth = Truth(messages={"m1": Message(address=ENDED.address, deleted=why == "deleted")})
    truth.placeholders[ENDED.id].add("m1")
    if why == "blocked":
        truth.unreachable[ENDED.address] = 1.0
    if why == "blocked before":
        truth.unblocked.add(ENDED.address)
    job = replace(ENDED, attention_reason="look" if why == "listed" else None)

    assert bool(_check_placeholders(job, truth)) is (why in ("", "blocked before"))
