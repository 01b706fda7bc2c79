"""An order goes to another provider once it is certain that the first made nothing and bills nothing."""

import json
from datetime import datetime
from typing import Any

import pytest

from genlock.domain.attempt import AttemptOutcome
from genlock.domain.errors import ProviderBusy, SubmitRefused, SubmitUnknown
from genlock.domain.events import Event
from genlock.domain.job import State
from genlock.domain.money import HoldState
from genlock.domain.result import Outcome, Report
from genlock.domain.task import Handle
from genlock.engine.context import EngineRules
from genlock.ports import Lease
from tests.engine.fake_provider import URL, callback_body, success
from tests.engine.two_providers import FIRST, TwoProviders
from tests.engine.world import PRICE, World, idle

#: the first provider's report of a failed task that is not billed
FAILURE = callback_body(task="task-1", state="failed", code="provider_failed", cost=0)


@pytest.fixture
def two(world: World) -> TwoProviders:
    return TwoProviders(world)


@pytest.mark.parametrize(
    "error",
    [
        SubmitRefused("no_provider_credits"),
        SubmitRefused("model_unavailable"),
        SubmitRefused("provider_key"),
        ProviderBusy(120.0, "maintenance"),
        ProviderBusy(5.0, "cannot connect", down=True),
    ],
)
async def test_an_order_that_was_provably_not_accepted_is_made_by_the_next_provider(
    two: TwoProviders, world: World, error: Exception
) -> None:
    two.first.faults.add("create", error)

    job = await two.order()

    assert (job.state, job.provider, job.attempt) == (State.RUNNING, "other", 2)
    expected = AttemptOutcome.BUSY if isinstance(error, ProviderBusy) else AttemptOutcome.REFUSED
    assert await two.outcomes(job) == [("fake", expected), ("other", None)]
    assert len(world.recorder.of(Event.FAILED_OVER, job=job.id)) == 1
    await two.engine.callback("other", two.second.token(job), callback_body(task="second-1", urls=[URL]))
    await two.work()
    job = await world.see(job)
    assert (job.state, job.hold_state) == (State.SUCCEEDED, HoldState.CAPTURED)
    assert await world.spent() == PRICE, "one order, one price"


@pytest.mark.parametrize(
    "error",
    [SubmitUnknown("the answer was lost"), RuntimeError("?"), SubmitRefused("moderation"), SubmitRefused("bad_input")],
)
async def test_an_unknown_outcome_or_a_refusal_of_the_input_is_never_tried_elsewhere(
    two: TwoProviders, world: World, error: Exception
) -> None:
    two.first.faults.add("create", error)

    job = await two.order()
    world.clock.advance(EngineRules().grace_seconds + 1)
    await two.work()

    assert two.second.created == []
    assert len(two.first.created) == 1
    assert (await world.see(job)).state in (State.EXPIRED, State.FAILED)


async def test_a_failed_task_that_is_not_billed_is_made_by_the_next_provider(two: TwoProviders, world: World) -> None:
    job = await two.order()
    await two.engine.callback("fake", two.first.token(job), FAILURE)
    await two.work()

    job = await world.see(job)
    assert (job.state, job.provider, job.task_id) == (State.RUNNING, "other", "second-1")
    assert await two.outcomes(job) == [("fake", AttemptOutcome.FAILED), ("other", None)]


@pytest.mark.parametrize(
    "said",
    [
        {"code": "provider_failed"},  # it does not say that it bills nothing
        {"code": "provider_failed", "cost": 30},
        {"code": "moderation", "cost": 0},
        {"code": "bad_input", "cost": 0},
        {"code": "unheard_of", "cost": 0},
    ],
)
async def test_a_failed_task_that_may_be_billed_or_is_the_users_fault_ends_the_job(
    two: TwoProviders, world: World, said: dict[str, Any]
) -> None:
    job = await two.order()
    await two.engine.callback("fake", two.first.token(job), callback_body(task="task-1", state="failed", **said))
    await two.work()

    job = await world.see(job)
    assert (job.state, job.hold_state) == (State.FAILED, HoldState.RELEASED)
    assert two.second.created == []


async def test_a_failure_that_a_status_query_reports_fails_over_too(two: TwoProviders, world: World) -> None:
    job = await two.order()
    two.first.reports["task-1"] = Report(
        outcome=Outcome.FAILURE, task_id="task-1", error_code="provider_timeout", cost=0
    )
    world.clock.advance(60)
    await two.work()
    await two.work()

    assert (await world.see(job)).provider == "other"


async def test_a_late_result_of_an_abandoned_attempt_neither_ends_nor_bills_the_job(
    two: TwoProviders, world: World
) -> None:
    job = await two.order()
    token = two.first.token(job)
    await two.engine.callback("fake", token, FAILURE)
    await idle(two.engine)
    for when in range(2):
        await two.engine.callback("fake", token, callback_body(task="task-1", urls=["https://late"], cost=50))
        await two.engine.callback("fake", token, FAILURE)
        if when == 0:
            await two.work()

    assert (await world.see(job)).state is State.RUNNING
    first, _ = await world.store.attempts(job.id)
    assert (first.outcome, first.cost) == (AttemptOutcome.FAILED, 50), "the operator sees what it cost"
    assert world.recorder.of(Event.ATTEMPT_REPORT_LATE, job=job.id)
    await two.engine.callback("other", two.second.token(job), callback_body(task="second-1", urls=[URL], cost=10))
    await two.work()
    job = await world.see(job)
    assert (job.state, job.cost) == (State.SUCCEEDED, 10)
    assert world.channel.showing("https://late") == []
    assert len(world.channel.showing(URL)) == 1
    assert await world.spent() == PRICE


async def test_when_no_provider_is_left_the_job_fails_and_the_user_is_refunded(two: TwoProviders, world: World) -> None:
    for provider in (two.first, two.second):
        provider.faults.add("create", SubmitRefused("no_provider_credits"))

    job = await two.order()
    await two.work()

    job = await world.see(job)
    assert (job.state, job.error_code, job.hold_state) == (State.FAILED, "no_provider_credits", HoldState.RELEASED)
    assert [provider for provider, _ in await two.outcomes(job)] == ["fake", "other"]


async def test_a_provider_that_is_busy_for_a_short_time_is_asked_again(two: TwoProviders, world: World) -> None:
    two.first.faults.add("create", ProviderBusy(5.0, "rate limit"))
    job = await two.order()
    world.clock.advance(6)
    await two.work()
    assert (await world.see(job)).provider == "fake"
    assert len(two.first.created) == 2

    two.first.faults.add("create", *[ProviderBusy(10.0, "rate limit")] * 5)
    job = await two.order()
    for _ in range(4):
        world.clock.advance(11)
        await two.work()
        await two.work()
    job = await world.see(job)
    assert (job.state, job.provider) == (State.RUNNING, "other"), "busy for too long"


async def test_an_order_with_values_that_a_provider_cannot_be_asked_for_does_not_go_there(two: TwoProviders) -> None:
    two.first.faults.add("create", SubmitRefused("model_unavailable"))
    job = await two.order(input=json.dumps({"prompt": "a", "seed": 3}))
    assert (job.state, two.second.created) == (State.FAILED, [])


async def test_a_provider_that_fails_often_is_left_alone_and_tried_again_by_one_order(
    two: TwoProviders, world: World
) -> None:
    two.first.faults.add("create", *[ProviderBusy(5.0, "cannot connect", down=True)] * 6)
    for _ in range(5):
        assert (await two.order()).provider == "other"
    assert len(world.recorder.of(Event.BREAKER_OPEN, provider="fake")) == 1
    asked = len(two.first.created)
    assert (await two.order()).provider == "other"
    assert len(two.first.created) == asked, "not asked while it is paused"

    world.clock.advance(31)
    await two.engine.ctx.breakers.read()
    assert (await two.order()).provider == "other", "the one trial failed"
    assert len(two.first.created) == asked + 1
    await two.order()
    assert len(two.first.created) == asked + 1

    world.clock.advance(61)
    assert (await two.order()).provider == "fake"
    assert len(world.recorder.of(Event.BREAKER_CLOSED, provider="fake")) == 1
    assert (await two.order()).provider == "fake"
    assert await world.store.breakers() == []


async def test_another_instance_leaves_the_provider_alone_too(two: TwoProviders, world: World) -> None:
    two.first.faults.add("create", SubmitRefused("no_provider_credits"))
    await two.order()
    instance = two._engine()
    await instance.ctx.breakers.read()

    job = await instance.order(world.order())
    await idle(instance)

    assert (await world.see(job)).provider == "other"
    assert await world.store.reset_breakers("fake") == 1
    await instance.ctx.breakers.read()
    job = await instance.order(world.order())
    await idle(instance)
    assert (await world.see(job)).provider == "fake", "an operator has reset it"


async def test_an_instance_that_does_not_know_of_the_pause_yet_orders_once_and_a_success_ends_the_pause(
    two: TwoProviders, world: World
) -> None:
    other = two._engine()
    await other.ctx.breakers.read()
    two.first.faults.add("create", SubmitRefused("no_provider_credits"))
    await two.order()
    asked = len(two.first.created)

    job = await other.order(world.order())
    await idle(other)

    assert len(two.first.created) == asked + 1
    assert await two.outcomes(job) == [("fake", None)]
    await other.ctx.breakers.read()
    await other.ctx.breakers.accepted("fake")
    assert await world.store.breakers() == []


async def test_an_order_whose_instance_dies_after_the_fail_over_is_made_once_by_the_next_provider(
    two: TwoProviders, world: World
) -> None:
    job = await two.order()
    await two.engine.callback("fake", two.first.token(job), FAILURE)
    await idle(two.engine)
    assert (await world.see(job)).state is State.QUEUED, "the instance has not claimed it again"

    for instance in (two._engine(), two._engine()):
        await instance.callback("fake", two.first.token(job), FAILURE)
        await instance.worker.claim()
        await idle(instance)

    assert len(two.second.created) == 1
    assert await two.outcomes(job) == [("fake", AttemptOutcome.FAILED), ("other", None)]


async def test_an_attempt_whose_instance_dies_before_its_call_goes_to_no_other_provider(
    two: TwoProviders, world: World
) -> None:
    """The intent of the second attempt is committed, so whether the call was made is unknown."""
    job = await two.order()
    await two.engine.callback("fake", two.first.token(job), FAILURE)
    await idle(two.engine)
    [claimed] = await world.store.claim_jobs(1, Lease(owner="dead", seconds=1.0))
    assert await world.store.begin_submit(claimed.id, claimed.lease_token, "hash", None, "other", "other/flux")
    world.clock.advance(2)
    for _ in range(3):
        await two.work()
        world.clock.advance(two.engine.ctx.rules.grace_seconds + 1)

    assert (len(two.first.created), two.second.created) == (1, [])
    assert (await world.see(job)).state is State.EXPIRED
    assert await world.spent() == 0


async def test_a_model_with_one_provider_is_ordered_there_even_if_it_fails(two: TwoProviders) -> None:
    two.offers = [FIRST]
    two.first.faults.add("create", SubmitRefused("no_provider_credits"))
    assert (await two.order()).error_code == "no_provider_credits"
    assert (await two.order()).state is State.RUNNING


async def test_a_provider_with_as_many_tasks_as_it_may_run_is_passed_over(two: TwoProviders) -> None:
    two.engine.ctx.concurrency["fake"] = 2  # type: ignore[index]
    assert [(await two.order()).provider for _ in range(3)] == ["fake", "fake", "other"]


async def test_a_lost_task_is_searched_for_from_the_moment_of_the_call(two: TwoProviders, world: World) -> None:
    """Not from the order: an earlier order of the same input may have been made since."""
    asked: list[datetime] = []

    async def find(_: object, since: datetime) -> list[Handle]:
        asked.append(since)
        return []

    two.offers = [FIRST]
    two.first.find = find  # type: ignore[method-assign,assignment]
    two.first.faults.add("create", ProviderBusy(60.0))
    job = await two.order()
    two.first.faults.add("create", SubmitUnknown("the answer was lost"))
    world.clock.advance(61)
    await two.work()
    called = world.clock.now()
    world.clock.advance(EngineRules().grace_seconds + 1)
    await two.work()

    assert asked == [called]
    assert job.created_at < called


@pytest.mark.parametrize(
    ("found", "adopted"),
    [(["lost"], "lost"), (["lost", "task-0"], "lost"), (["lost", "lost-too"], None), (["task-0"], None), ([], None)],
)
async def test_the_task_of_a_lost_answer_is_adopted_only_if_no_other_could_be_meant(
    two: TwoProviders, world: World, found: list[str], adopted: str | None
) -> None:
    two.offers = [FIRST]
    known = await two.order()
    world_task = known.task_id
    two.first.faults.add("create", SubmitUnknown("the answer was lost"))
    job = await two.order()

    async def find(*_: object) -> list[Handle]:
        names = [world_task if name == "task-0" else name for name in found]
        return [Handle(task_id=str(name), details="found") for name in names]

    two.first.find = find  # type: ignore[method-assign,assignment]
    world.clock.advance(EngineRules().grace_seconds + 1)
    await two.work()

    job = await world.see(job)
    if adopted is None:
        assert job.state is State.EXPIRED
    else:
        assert (job.state, job.task_id, job.handle) == (State.RUNNING, adopted, "found")
        two.first.reports[adopted] = success(adopted)
        world.clock.advance(60)
        await two.work()
        assert (await world.see(job)).state is State.SUCCEEDED
