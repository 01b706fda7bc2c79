"""The doctor beside a running service: its phases come one by one, and the caller's event loop stays free."""

import asyncio
import threading
from pathlib import Path

import pytest

from genlock.app.databases import open_store
from genlock.doctor import in_thread
from genlock.doctor.doctor import Doctor
from genlock.doctor.in_thread import examine_in_thread
from genlock.domain.doctor_phase import Phase
from genlock.log import Silent
from genlock.settings import Settings
from tests.changes import PATIENCE_SECONDS


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
        "plug-ins",
    ]  # fmt: skip
    assert "does not exist" in phases[0].detail
    assert threads == {"genlock-doctor"}


async def test_an_error_of_the_doctor_reaches_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Settings) -> Doctor:
        raise RuntimeError("no doctor today")

    monkeypatch.setattr(in_thread, "Doctor", broken)
    with pytest.raises(RuntimeError, match="no doctor today"):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await anext(aiter(examine_in_thread(settings(tmp_path))))


async def test_the_database_that_this_process_serves_is_checked_and_stays_usable(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/genlock.db"
    store = await open_store(url, observer=Silent())
    account = await store.ensure_account("chat", "bot", "1")
    try:
        served = Settings.model_validate({"database_url": url})
        phases = {phase.name: phase async for phase in examine_in_thread(served)}
        checked = ("store", "atomic operations", "migrations", "idempotency", "money")
        assert [phases[name].detail for name in checked if not phases[name].ok] == []
        assert await store.ensure_account("chat", "bot", "1") == account
        assert await store.ensure_account("chat", "bot", "2") == account + 1, "the doctor left nothing behind"
    finally:
        await store.close()
