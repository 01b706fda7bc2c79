"""What the engine keeps of a task and asks of a provider: the handle, the wish to cancel, an incomplete callback."""

import json

from genlock.domain.events import Event
from genlock.domain.job import State
from genlock.domain.result import Outcome, Report
from genlock.domain.task import CancelOutcome, Handle, TaskOrder
from genlock.engine.engine import Engine
from tests.engine.fake_provider import success
from tests.engine.world import World, idle


async def test_the_provider_gets_the_handle_back_that_it_returned(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    given: list[Handle] = []

    async def status(handle: Handle, _: TaskOrder) -> Report:
        given.append(handle)
        return success(handle.task_id)

    world.provider.status = status  # type: ignore[method-assign,assignment]
    world.clock.advance(60)
    await engine.worker.claim()
    await idle(engine)

    assert given == [Handle(task_id="task-1", details="at task-1")]
    assert (await world.see(job)).state is State.SUCCEEDED


async def test_a_callback_without_the_result_makes_the_job_due_for_a_status_query(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    read = world.provider.read_callback

    def incomplete(body: bytes) -> Report:
        if json.loads(body)["state"] == "look":
            return Report(outcome=Outcome.RUNNING, task_id="task-1", word="look", incomplete=True)
        return read(body)

    world.provider.read_callback = incomplete  # type: ignore[method-assign]
    world.provider.reports["task-1"] = success("task-1")
    await world.call_back(engine, job, state="look")
    await engine.worker.claim()
    await idle(engine)

    assert world.provider.asked == ["task-1"]
    assert (await world.see(job)).state is State.SUCCEEDED


async def test_the_provider_is_asked_to_end_the_task_of_a_cancelled_job(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    asked: list[str] = []

    async def cancel(handle: Handle, _: TaskOrder) -> CancelOutcome:
        asked.append(handle.task_id)
        return CancelOutcome.CANCELLED

    world.provider.cancel = cancel  # type: ignore[method-assign,assignment]
    world.provider.reports["task-1"] = Report(outcome=Outcome.FAILURE, task_id="task-1", cost=0, word="cancelled")
    await engine.cancel(job.id, "the user")
    await idle(engine)
    await engine.worker.claim()
    await idle(engine)

    assert asked == ["task-1"]
    assert len(world.recorder.of(Event.TASK_CANCELLED, job=job.id, outcome=CancelOutcome.CANCELLED)) == 1
    row = await world.see(job)
    assert (row.state, row.cost, row.due_at) == (State.CANCELLED, 0, None)
