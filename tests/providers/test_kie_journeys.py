"""From an order to the chat, through the real adapter, the real door and a Kie.ai that misbehaves."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from genlock.domain.events import Event
from genlock.domain.job import Delivery, State
from genlock.sandbox.kie.callbacks import STOLEN
from genlock.sandbox.kie.faults import Fault
from tests.providers.house import PRICE, House, open_house
from tests.providers.models import CATALOG, WORKING


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        yield house


def family(model: str) -> str:
    return CATALOG.models[model].family


ONE_OF_EACH = list({family(model): model for model in reversed(WORKING)}.values())


@pytest.mark.parametrize("public", [True, False])
async def test_every_model_finds_its_way_into_the_chat(tmp_path: Path, public: bool) -> None:  # noqa: FBT001 - a case
    """With callbacks, and by asking alone."""
    async with open_house(tmp_path, public=public) as house:
        jobs = await house.done(*[await house.order(model) for model in WORKING])
        for job in jobs:
            house.assert_delivered_once(job)
        assert house.tasks() == len(WORKING)
        assert await house.spent() == PRICE * len(WORKING)


HARMLESS = [
    Fault.CALLBACK_LOST,
    Fault.CALLBACK_TWICE,
    Fault.CALLBACK_EARLY,
    Fault.CALLBACK_LATE,
    Fault.CALLBACK_CONTRADICTING,
    Fault.CALLBACK_FORGED,
    Fault.CALLBACK_BAD_SIGNATURE,
    Fault.CALLBACK_STALE,
    Fault.CALLBACK_UNPARSABLE,
    Fault.CALLBACK_EMPTY,
    Fault.CALLBACK_DISORDERED,
    Fault.STATUS_NULL,
    Fault.STATUS_WORD,
    Fault.STATUS_GARBLED,
    Fault.STATUS_502,
    Fault.STATUS_500,
    Fault.STATUS_CUT,
]


@pytest.mark.parametrize("fault", HARMLESS)
async def test_a_bad_callback_or_query_changes_nothing(house: House, fault: Fault) -> None:
    """In every family the result arrives once, is paid once, and no stranger's is shown."""
    jobs = []
    for model in ONE_OF_EACH:
        house.simulator.faults.order(fault)
        jobs.append(await house.order(model))
    for job in await house.done(*jobs):
        house.assert_delivered_once(job)
    await house.simulator.service.settled()
    await asyncio.sleep(0.1)
    for job in await house.done(*jobs):
        house.assert_delivered_once(job)
    assert house.chat.showing(STOLEN) == []
    assert house.tasks() == len(jobs)
    assert await house.spent() == PRICE * len(jobs)
    if fault is Fault.CALLBACK_CONTRADICTING:
        assert house.recorder.of(Event.RESULT_CONTRADICTION)


@pytest.mark.parametrize("fault", [Fault.CREATE_CUT, Fault.CREATE_GARBLED, Fault.CREATE_NO_ID, Fault.CREATE_SLOW])
async def test_an_order_whose_answer_was_lost_is_saved_by_its_callback(house: House, fault: Fault) -> None:
    jobs = []
    for model in ONE_OF_EACH:
        house.simulator.faults.order(fault)
        jobs.append(await house.order(model))
    for job in await house.done(*jobs):
        house.assert_delivered_once(job)
    assert house.tasks() == len(jobs), "each was sent once"


async def test_an_order_that_nobody_ever_answers_for_ends_with_the_money_back(house: House) -> None:
    house.simulator.faults.order(Fault.CREATE_CUT, Fault.CALLBACK_LOST)
    [job] = await house.done(await house.order())
    assert job.state is State.EXPIRED
    house.assert_told(job, "submit_unknown")
    assert (house.tasks(), await house.spent()) == (1, 0)


@pytest.mark.parametrize("fault", [Fault.CREATE_500, Fault.CREATE_HTTP_500, Fault.CREATE_502])
async def test_an_order_that_may_have_been_taken_is_not_sent_again(house: House, fault: Fault) -> None:
    house.simulator.faults.order(fault)
    [job] = await house.done(await house.order())
    house.assert_told(job, "submit_unknown")
    assert len(house.simulator.service.creates.admitted) == 0
    assert len(house.recorder.of(Event.SUBMIT_START)) == 1


@pytest.mark.parametrize("fault", [Fault.CREATE_429, Fault.CREATE_HTTP_429, Fault.CREATE_433, Fault.CREATE_455])
async def test_an_order_that_was_put_off_is_sent_again_later(house: House, fault: Fault) -> None:
    house.simulator.faults.order(fault)
    job = await house.order()
    await house.recorder.until(Event.SUBMIT_BUSY)
    waiting = await house.reached(job, State.QUEUED)
    assert waiting.due_at is not None
    assert (waiting.due_at - waiting.read_at).total_seconds() > 3
    await house.store.retry_job(job.id)  # instead of waiting
    [ended] = await house.done(job)
    house.assert_delivered_once(ended)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault.CREATE_PAUSED, "model_unavailable"),
        (Fault.CREATE_MODERATED, "moderation"),
        (Fault.TASK_FAIL, "provider_failed"),
        (Fault.TASK_UPSTREAM, "provider_failed"),
        (Fault.TASK_MODERATED, "moderation"),
        (Fault.RESULT_EMPTY, "empty_result"),
    ],
)
async def test_what_fails_costs_nothing_and_is_told(house: House, fault: Fault, code: str) -> None:
    jobs = []
    for model in ONE_OF_EACH:
        house.simulator.faults.order(fault)
        jobs.append(await house.order(model))
    for job in await house.done(*jobs):
        assert (job.state, job.delivery) == (State.FAILED, Delivery.DELIVERED)
        house.assert_told(job, code)
    assert await house.spent() == 0


@pytest.mark.parametrize("fault", [Fault.RESULT_BROKEN, Fault.RESULT_BAD_URLS])
async def test_a_result_that_cannot_be_shown_is_a_failure(house: House, fault: Fault) -> None:
    house.simulator.faults.order(fault)
    [job] = await house.done(await house.order())
    house.assert_told(job, "empty_result")
    assert job.cost == 800, "what the provider took is on record"
    assert await house.spent() == 0


async def test_a_result_after_the_deadline_is_shown_for_free(house: House) -> None:
    house.simulator.service.speed = 10.0
    [job] = await house.done(await house.order(deadline_seconds=0.3))
    assert job.state is State.EXPIRED
    await house.simulator.service.settled()
    async with asyncio.timeout(5):
        while not (await house.see(job)).late:  # noqa: ASYNC110 - the row is in a database
            await asyncio.sleep(0.05)
    [late] = await house.done(job)
    assert len(house.chat.showing(late.parts[0].value)) == 1
    assert await house.spent() == 0


CHANCES = {
    Fault.CREATE_CUT: 0.04,
    Fault.CREATE_500: 0.03,
    Fault.CREATE_PAUSED: 0.03,
    Fault.TASK_FAIL: 0.08,
    Fault.RESULT_EMPTY: 0.04,
    Fault.STATUS_500: 0.05,
    Fault.STATUS_WORD: 0.1,
    Fault.STATUS_NULL: 0.1,
    **{fault: 0.12 for fault in HARMLESS if fault.startswith("callback_")},
}


@pytest.mark.parametrize("seed", [1, 2])
async def test_on_a_bad_day_every_job_comes_to_an_end_and_the_money_adds_up(tmp_path: Path, seed: int) -> None:
    async with open_house(tmp_path, seed=seed) as house:
        for fault, probability in CHANCES.items():
            house.simulator.faults.set_probability(fault, probability)
        jobs = [await house.order(WORKING[number % len(WORKING)]) for number in range(60)]
        await house.done(*jobs, seconds=40)
        await house.simulator.service.settled()
        await asyncio.sleep(0.2)
        ended = await house.done(*jobs)
        delivered = [job for job in ended if job.state is State.SUCCEEDED]
        for job in delivered:
            house.assert_delivered_once(job)
        for job in ended:
            if job.state is not State.SUCCEEDED and not job.late:
                assert job.placeholder is not None
                assert house.chat.messages[job.placeholder].endswith(job.error_code)
        assert await house.spent() == PRICE * len(delivered)
        assert len(delivered) > 30
        assert house.chat.showing(STOLEN) == []
        assert house.tasks() <= len(jobs)
        assert await house.store.violations(settled=True) == []
        assert max(Counter(_orders(house)).values()) == 1, "no order was sent twice"


def _orders(house: House) -> list[str]:
    return [task.values["prompt"] for task in house.simulator.service.tasks.values()]


def test_one_of_each_family_is_tried() -> None:
    assert {family(model) for model in ONE_OF_EACH} == {
        "market",
        "veo",
        "runway",
        "aleph",
        "4o",
        "flux-kontext",
        "suno",
    }
