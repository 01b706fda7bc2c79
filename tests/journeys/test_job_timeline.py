"""The time line of a job whose instance was killed or stopped during its delivery tells of both instances, in order."""

from signal import SIGKILL, SIGTERM, Signals

import pytest

from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.engine.job_timeline import TimelineEntry, read_timeline
from tests.journeys.engine_fleet import PRICE, Fleet


async def timeline(fleet: Fleet, job: Job) -> list[TimelineEntry]:
    return await read_timeline(fleet.store, job, str)


@pytest.mark.parametrize("signal", [SIGKILL, SIGTERM], ids=lambda signal: signal.name)
async def test_the_time_line_tells_a_takeover(fleet: Fleet, signal: Signals) -> None:
    first = await fleet.start("first", hold=True, stop_seconds=0.1)
    await fleet.order(1)
    await fleet.wait_for_deliveries(first, 1)
    [job] = await fleet.all_jobs()

    async def holders(count: int) -> bool:
        found = await fleet.store.job_events(job.correlation_id, 100)
        return sum(event.event == Event.DELIVER_LOCK_WIN for event in found) == count

    await fleet.until(lambda: holders(1))
    second = await fleet.start("second")
    first.signal(signal)
    await fleet.until(fleet.settled)
    await fleet.check_all_delivered_once()
    await fleet.until(lambda: holders(2))

    async def notified() -> bool:
        [now] = await fleet.all_jobs()
        return any(entry.kind == "notice_sent" for entry in await timeline(fleet, now))

    await fleet.until(notified)
    [now] = await fleet.all_jobs()
    entries = await timeline(fleet, now)

    told = [(entry.kind, entry.instance) for entry in entries if entry.kind in KINDS]
    # Events are dated when they are written, some milliseconds late; what the row and the ledger say is exact.
    assert [kind for kind, _ in told if kind in EXACT] == list(EXACT)
    assert [instance for kind, instance in told if kind == "deliver_lock_win"] == [first.name, second.name]
    assert dict(told)["delivered"] == second.name
    assert [entry.amount for entry in entries if entry.amount is not None] == [PRICE, PRICE]
    assert [entry.body for entry in entries if entry.kind == "callback"] == [str(now.id)]


EXACT = ("accepted", "hold", "submitted", "ended_succeeded", "delivered", "capture")
KINDS = {*EXACT, "deliver_lock_win", "notice_sent"}
