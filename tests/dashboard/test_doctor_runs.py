"""The doctor run from the dashboard: phases one by one, one run at a time, crashes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from genlock.dashboard.doctor_runs import LAST_RUN, ROLE, DoctorRuns
from genlock.domain.doctor_phase import Phase
from genlock.domain.operator import OperatorRole
from tests.changes import poll_until
from tests.dashboard.world import DashboardWorld, running_dashboard
from tests.databases import new_sqlite

PATH = "/system/doctor"


class FakeDoctor:
    """Yields the phases that a test hands out, then ends; or raises."""

    def __init__(self) -> None:
        self.started = 0
        self.phases: asyncio.Queue[Phase | Exception | None] = asyncio.Queue()

    async def __call__(self) -> AsyncIterator[Phase]:
        self.started += 1
        while (item := await self.phases.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item


@pytest.fixture
async def doctor() -> FakeDoctor:
    return FakeDoctor()


@pytest.fixture
async def dashboard(tmp_path: Path, doctor: FakeDoctor) -> AsyncIterator[DashboardWorld]:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", examine=doctor) as world:
        yield world


async def until(dashboard: DashboardWorld, text: str) -> str:
    """Wait until the changing part of the page has a text."""
    client = await dashboard.log_in()

    async def is_shown() -> bool:
        return text in (await client.get(f"{PATH}/phases")).text

    await poll_until(is_shown)  # as the page does
    return (await client.get(f"{PATH}/phases")).text


async def test_phases_appear_one_by_one(dashboard: DashboardWorld, doctor: FakeDoctor) -> None:
    client = await dashboard.log_in()
    assert "The doctor hasn&#39;t been run yet" in (await client.get(PATH)).text
    started = await client.follow(PATH, {"request_key": "k1"})
    assert "The next check is running" in started.text
    assert "every 1s" in started.text

    await doctor.phases.put(Phase(name="store", ok=True, detail="<b>SQLite</b>"))
    shown = await until(dashboard, "SQLite")
    assert "&lt;b&gt;SQLite&lt;/b&gt;" in shown
    assert "Leases and fencing" not in shown
    await doctor.phases.put(Phase(name="atomic operations", ok=False, detail="two claims won"))
    shown = await until(dashboard, "Leases and fencing")
    assert "two claims won" in shown
    await doctor.phases.put(None)
    ended = await until(dashboard, "All checks have finished.")
    assert "every 1s" not in ended
    part = await client.get(f"{PATH}/phases", **{"HX-Request": "true"})
    assert part.headers["HX-Refresh"] == "true", "the whole page has the button again"
    assert [line.action for line in await dashboard.store.audit(10) if line.subject == "doctor"] == ["run_doctor"]


async def test_only_one_run_at_a_time_and_one_for_each_form(dashboard: DashboardWorld, doctor: FakeDoctor) -> None:
    client = await dashboard.log_in()
    for _ in range(3):
        await client.post(PATH, {"request_key": "k1"})
    second = await client.follow(PATH, {"request_key": "k2"})
    assert "already running" in second.text
    assert doctor.started == 1

    await doctor.phases.put(None)
    await until(dashboard, "all passed")
    await client.post(PATH, {"request_key": "k1"})
    assert doctor.started == 1, "the form that began the last run"
    await client.post(PATH, {"request_key": "k3"})
    await until(dashboard, "The next check is running")
    assert doctor.started == 2
    await doctor.phases.put(None)
    await until(dashboard, "all passed")


async def test_a_run_that_breaks_off_says_so_and_the_next_one_can_begin(
    dashboard: DashboardWorld, doctor: FakeDoctor
) -> None:
    client = await dashboard.log_in()
    await client.post(PATH, {"request_key": "k1"})
    await doctor.phases.put(RuntimeError("secret address"))
    shown = await until(dashboard, "was interrupted (RuntimeError)")
    assert "secret address" not in shown
    await client.post(PATH, {"request_key": "k2"})
    await doctor.phases.put(None)
    await until(dashboard, "all passed")


async def test_a_run_whose_instance_crashed_is_given_up(
    dashboard: DashboardWorld, doctor: FakeDoctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.dashboard.doctor_runs.LEASE_SECONDS", -1.0)
    runs = DoctorRuns(dashboard.store, dashboard.recorder, doctor)
    assert await runs.start("7", "k1")
    run = await runs.last()
    assert run is not None
    assert (run.running, run.error, run.ok) == (False, "crashed", False)
    assert "its instance stopped" in (await (await dashboard.log_in()).get(PATH)).text
    assert await runs.start("7", "k2"), "the role has expired"
    assert (await dashboard.store.kv_get(LAST_RUN)) is not None
    assert ROLE in [role.name for role in await dashboard.store.roles()]
    for _ in range(2):
        await doctor.phases.put(None)


async def test_without_a_doctor_the_page_names_the_command(tmp_path: Path) -> None:
    async with running_dashboard(f"sqlite:///{tmp_path}/other.db") as dashboard:
        client = await dashboard.log_in()
        assert "genlock doctor" in (await client.follow(PATH)).text
        for role in (OperatorRole.SUPPORT, OperatorRole.VIEWER):
            assert (await (await dashboard.log_in(role)).post(PATH)).status == 403
