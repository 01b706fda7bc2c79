"""The doctor beside a running service: its phases come one by one, and the caller's event loop stays free."""

import asyncio
import threading
from pathlib import Path

import pytest

from genlock.doctor import in_thread
from genlock.doctor.doctor import Doctor
from genlock.doctor.in_thread import examine_in_thread
from genlock.doctor.phase import Phase
from genlock.settings import Settings


def settings(folder: Path) -> Settings:
    return Settings.model_validate({"database_url": f"sqlite:///{folder}/missing/genlock.db"})


async def test_every_phase_is_run_in_a_thread_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, examined = set(), Doctor._phase

    async def phase(self: Doctor, name: str, check: object) -> Phase:
        threads.add(threading.current_thread().name)
        return await examined(self, name, check)  # type: ignore[arg-type]

    monkeypatch.setattr(Doctor, "_phase", phase)
    phases = [phase async for phase in examine_in_thread(settings(tmp_path))]
    assert [phase.name for phase in phases] == [
        "store", "atomic operations", "callback endpoint", "channel", "migrations", "idempotency", "money",
    ]  # fmt: skip
    assert "does not exist" in phases[0].detail
    assert threads == {"genlock-doctor"}


async def test_an_error_of_the_doctor_reaches_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Settings) -> Doctor:
        raise RuntimeError("no doctor today")

    monkeypatch.setattr(in_thread, "Doctor", broken)
    with pytest.raises(RuntimeError, match="no doctor today"):
        async with asyncio.timeout(10):
            await anext(aiter(examine_in_thread(settings(tmp_path))))
