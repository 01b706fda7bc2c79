"""Engine processes on PostgreSQL that are killed, paused and replaced while they work."""

import asyncio
from collections import Counter
from itertools import takewhile
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM, SIGUSR1, Signals
from typing import Any

import pytest

from genlock.domain.events import Event
from genlock.engine.context import EngineRules
from genlock.engine.invariants import End, ends
from tests.journeys.engine_fleet import Fleet, Process


def answers_before(event: Event, lines: list[dict[str, Any]]) -> Counter[str]:
    """Count what the store had answered when an event was logged."""
    return Counter(line["event"] for line in takewhile(lambda line: line["event"] != event, lines))


async def test_a_killed_instance_is_replaced_within_five_seconds(fleet: Fleet) -> None:
    """With the default rules. The killed instance is the leader and holds twenty deliveries.

    The successor sends a heartbeat each second and asks for the role twice, so their number bounds the time, however
    slow the machine is.
    """
    killed = await fleet.start("killed", hold=True)
    await fleet.order(20)
    await fleet.wait_for_deliveries(killed, 20)
    successor = await fleet.start("successor")
    assert await fleet.active(killed)

    killed.signal(SIGKILL)
    before = len(successor.log_lines)
    await asyncio.gather(fleet.until(lambda: fleet.active(successor)), fleet.until(fleet.settled))

    lines = successor.log_lines[before:]
    rules = EngineRules()
    heartbeats = answers_before(Event.INSTANCE_DEAD, lines)["heartbeat"]
    elections = answers_before(Event.LOCK_ACTIVE, lines)["take_role"]
    # One of the successor may have been on its way at the kill, and one of the killed instance.
    assert 1 <= heartbeats <= 2 + rules.silent_seconds / rules.heartbeat_seconds <= 5
    assert 1 <= elections <= 2 + (rules.role_seconds + rules.heartbeat_seconds) / (rules.heartbeat_seconds / 2) <= 10
    await fleet.check_all_delivered_once()
    assert successor.logged(Event.INSTANCE_DEAD, peer=killed.name, jobs=20)


async def test_a_stopped_instance_is_replaced_at_once(fleet: Fleet) -> None:
    """The stopping instance cannot finish its deliveries in time. Whatever it did not give back would last an hour."""
    lasting: dict[str, Any] = {"lease_seconds": 3600.0, "silent_seconds": 3600.0, "role_seconds": 3600.0}
    stopping = await fleet.start("stopping", hold=True, stop_seconds=0.1, **lasting)
    await fleet.order(20)
    await fleet.wait_for_deliveries(stopping, 20)
    successor = await fleet.start("successor", **lasting)
    assert await fleet.active(stopping)

    stopping.signal(SIGTERM)
    await asyncio.gather(fleet.until(lambda: fleet.active(successor)), fleet.until(fleet.settled))
    await fleet.until(lambda: has_ended(stopping))
    assert stopping.status == 0
    await fleet.check_all_delivered_once()
    assert successor.logged(Event.INSTANCE_DEAD) == []


async def test_a_paused_instance_that_resumes_after_a_takeover_changes_nothing(fleet: Fleet) -> None:
    paused = await fleet.start("paused", hold=True)
    await fleet.order(10)
    await fleet.wait_for_deliveries(paused, 10)
    successor = await fleet.start("successor")
    paused.signal(SIGSTOP)
    await fleet.until(fleet.settled)
    await fleet.until(lambda: fleet.active(successor))
    await fleet.check_all_delivered_once()
    before = await fleet.rows()

    paused.signal(SIGUSR1)
    paused.signal(SIGCONT)
    await fleet.until(lambda: has_logged(paused, Event.LEASE_LOST, 10))
    await fleet.until(lambda: has_logged(paused, Event.LOCK_PASSIVE, 1))

    assert await fleet.rows() == before
    assert await fleet.active(successor)
    paused.signal(SIGTERM)
    await fleet.until(lambda: has_ended(paused))
    assert paused.status == 0
    assert await fleet.rows() == before


@pytest.mark.parametrize("signal", [SIGTERM, SIGKILL], ids=lambda signal: signal.name)
async def test_instances_that_replace_each_other_under_load_deliver_everything_once(
    fleet: Fleet, signal: Signals
) -> None:
    """A rolling deploy: the old instance ends while the new one works; every tenth put loses its answer."""
    # If callbacks are lost with the old process, only status queries end their jobs: they must come soon here.
    rules: dict[str, Any] = {"grace_seconds": 2.0, "poll_seconds": 0.3}
    old = await fleet.start("old", faults=0.2, **rules)
    await fleet.order(100)
    await fleet.wait_for_deliveries(old, 60)
    await fleet.start("new", faults=0.2, **rules)
    for _ in range(4):
        await fleet.order(50)
    await fleet.wait_for_deliveries(None, 160)  # which of the two takes an order is a matter of luck
    old.signal(signal)
    await fleet.until(lambda: has_ended(old))
    await fleet.order(100)
    await fleet.until(fleet.settled)

    if signal is SIGTERM:
        assert old.status == 0
        await fleet.check_all_delivered_once()
        return
    # Killed during create calls: those jobs fail, their hold is released and the user is notified.
    jobs = await fleet.all_jobs()
    assert len(jobs) == 400
    assert max((await fleet.calls("create")).values()) == 1
    assert max((await fleet.calls("notify")).values()) == 1
    shown = await fleet.shown()
    for job in jobs:
        [end] = ends(job)
        assert shown[str(job.placeholder)] == (f"result of {job.id}" if end is End.DELIVERED else "submit_unknown")
    assert len(shown) == 400
    await fleet.check_money(jobs)


async def has_ended(process: Process) -> bool:
    return process.status is not None


async def has_logged(process: Process, event: Event, times: int) -> bool:
    return len(process.logged(event)) >= times
