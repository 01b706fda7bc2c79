"""Jobs from order to delivery, with the real client, the real callback endpoint and a faulty Kie.ai."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from genlock.domain.events import Event
from genlock.domain.job import Delivery, State
from genlock.sandbox.kie.callbacks import STOLEN
from genlock.sandbox.kie.faults import Fault
from tests.engine.world import idle
from tests.providers.kie_world import PRICE, QUICK, KieWorld, running_world
from tests.providers.models import CATALOG, WORKING

pytestmark = pytest.mark.slow


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[KieWorld]:
    async with running_world(tmp_path) as world:
        yield world


def family(model: str) -> str:
    return CATALOG.models[model].family


ONE_OF_EACH = list({family(model): model for model in reversed(WORKING)}.values())


@pytest.mark.parametrize("public", [True, False])
async def test_the_result_of_every_model_is_delivered(tmp_path: Path, public: bool) -> None:  # noqa: FBT001 - a case
    """With callbacks, and by polling only."""
    async with running_world(tmp_path, public=public) as world:
        jobs = await world.done(*[await world.order(model) for model in WORKING])
        for job in jobs:
            world.assert_delivered_once(job)
        assert world.tasks() == len(WORKING)
        assert await world.spent() == PRICE * len(WORKING)


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
async def test_a_faulty_callback_or_query_changes_nothing(world: KieWorld, fault: Fault) -> None:
    """In every family the result is delivered once, paid once, and no forged result is shown."""
    jobs = []
    for model in ONE_OF_EACH:
        world.simulator.faults.order(fault)
        jobs.append(await world.order(model))
    for job in await world.done(*jobs):
        world.assert_delivered_once(job)
    await world.callbacks_processed()
    for job in await world.done(*jobs):
        world.assert_delivered_once(job)
    assert world.chat.showing(STOLEN) == []
    assert world.tasks() == len(jobs)
    assert await world.spent() == PRICE * len(jobs)
    if fault is Fault.CALLBACK_CONTRADICTING:
        assert world.recorder.of(Event.RESULT_CONTRADICTION)


@pytest.mark.parametrize("fault", [Fault.CREATE_CUT, Fault.CREATE_GARBLED, Fault.CREATE_NO_ID, Fault.CREATE_SLOW])
async def test_a_job_whose_create_answer_was_lost_is_completed_by_its_callback(tmp_path: Path, fault: Fault) -> None:
    async with running_world(tmp_path, rules=replace(QUICK, grace_seconds=120.0)) as world:
        jobs = []
        for model in ONE_OF_EACH:
            world.simulator.faults.order(fault)
            jobs.append(await world.order(model))
        for job in await world.done(*jobs):
            world.assert_delivered_once(job)
        assert world.tasks() == len(jobs), "each was submitted once"


async def test_a_job_without_an_answer_or_callback_expires_and_releases_its_hold(world: KieWorld) -> None:
    world.simulator.faults.order(Fault.CREATE_CUT, Fault.CALLBACK_LOST)
    [job] = await world.done(await world.order())
    assert job.state is State.EXPIRED
    world.assert_informed(job, "submit_unknown")
    assert (world.tasks(), await world.spent()) == (1, 0)


@pytest.mark.parametrize("fault", [Fault.CREATE_500, Fault.CREATE_HTTP_500, Fault.CREATE_502])
async def test_a_job_that_may_have_been_accepted_is_not_submitted_again(world: KieWorld, fault: Fault) -> None:
    world.simulator.faults.order(fault)
    [job] = await world.done(await world.order())
    world.assert_informed(job, "submit_unknown")
    assert len(world.simulator.service.creates.admitted) == 0
    assert len(world.recorder.of(Event.SUBMIT_START)) == 1


@pytest.mark.parametrize("fault", [Fault.CREATE_429, Fault.CREATE_HTTP_429, Fault.CREATE_433, Fault.CREATE_455])
async def test_a_temporarily_refused_job_is_submitted_again_later(world: KieWorld, fault: Fault) -> None:
    world.simulator.faults.order(fault)
    job = await world.order()
    await world.recorder.until(Event.SUBMIT_BUSY)
    await idle(world.engine)
    waiting = await world.see(job)
    assert waiting.state is State.QUEUED
    assert waiting.due_at is not None
    assert (waiting.due_at - waiting.read_at).total_seconds() > 3
    await world.store.retry_job(job.id)  # instead of waiting
    [ended] = await world.done(job)
    world.assert_delivered_once(ended)


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
async def test_a_failed_job_is_free_and_the_user_is_informed(world: KieWorld, fault: Fault, code: str) -> None:
    jobs = []
    for model in ONE_OF_EACH:
        world.simulator.faults.order(fault)
        jobs.append(await world.order(model))
    for job in await world.done(*jobs):
        assert (job.state, job.delivery) == (State.FAILED, Delivery.DELIVERED)
        world.assert_informed(job, code)
    assert await world.spent() == 0


@pytest.mark.parametrize("fault", [Fault.RESULT_BROKEN, Fault.RESULT_BAD_URLS])
async def test_a_result_that_cannot_be_shown_is_a_failure(world: KieWorld, fault: Fault) -> None:
    world.simulator.faults.order(fault)
    [job] = await world.done(await world.order())
    world.assert_informed(job, "empty_result")
    assert job.cost == 800, "the provider's cost is recorded"
    assert await world.spent() == 0


async def test_a_result_after_the_deadline_is_delivered_free(world: KieWorld) -> None:
    world.simulator.service.hold_tasks()
    job = await world.order()
    await world.recorder.until(Event.SUBMIT_OK)
    await world.store.session.call(lambda connection: connection.execute("UPDATE jobs SET deadline_at = created_at"))
    [job] = await world.done(job)
    assert job.state is State.EXPIRED
    world.simulator.service.release_tasks()
    await world.simulator.service.settled()

    async def is_late() -> bool:
        return (await world.see(job)).late

    await world.recorder.changes.until(is_late)
    [late] = await world.done(job)
    assert len(world.chat.showing(late.parts[0].value)) == 1
    assert await world.spent() == 0


PROBABILITIES = {
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
async def test_with_random_faults_every_job_ends_and_the_ledger_balances(tmp_path: Path, seed: int) -> None:
    async with running_world(tmp_path, seed=seed) as world:
        for fault, probability in PROBABILITIES.items():
            world.simulator.faults.set_probability(fault, probability)
        jobs = [await world.order(WORKING[number % len(WORKING)]) for number in range(60)]
        await world.done(*jobs, seconds=40)
        await world.callbacks_processed()
        ended = await world.done(*jobs)
        delivered = [job for job in ended if job.state is State.SUCCEEDED]
        for job in delivered:
            world.assert_delivered_once(job)
        for job in ended:
            if job.state is not State.SUCCEEDED and not job.late:
                assert job.placeholder is not None
                assert world.chat.messages[job.placeholder].endswith(job.error_code)
        assert await world.spent() == PRICE * len(delivered)
        assert len(delivered) > 30
        assert world.chat.showing(STOLEN) == []
        assert world.tasks() <= len(jobs)
        assert await world.store.violations(settled=True) == []
        assert max(Counter(_orders(world)).values()) == 1, "no job was submitted twice"


def _orders(world: KieWorld) -> list[str]:
    return [task.values["prompt"] for task in world.simulator.service.tasks.values()]


def test_every_family_is_covered() -> None:
    assert {family(model) for model in ONE_OF_EACH} == {
        "",
        "veo",
        "runway",
        "aleph",
        "4o",
        "flux-kontext",
        "suno",
    }
