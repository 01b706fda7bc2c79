"""Triggers count and record what is written; the rows of a backup were counted when they were first written."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from genlock.app.databases import open_store
from genlock.domain.job import State
from genlock.domain.money import EntryKind
from genlock.stores.database import SqlDatabase
from tests.stores.backups.copies import backed_up, restored, rewritten, rows_of
from tests.stores.builders import ME, ManualClock, account_with, delivered, end, new_key, order
from tests.stores.conftest import Raw, RecordingObserver

#: the number of the migration that added the count of open jobs
COUNTED_SINCE = 27


async def client_with(store: SqlDatabase, jobs: int) -> int:
    """An account with this many open jobs of its API key, one that has ended and one of the chat."""
    account_id = await account_with(store, 1000)
    key = (await store.add_api_key(new_key(account_id, account_id)))[0].id
    accepted = [await store.accept_job(order(account_id, api_key_id=key), ME) for _ in range(jobs + 1)]
    await end(store, accepted[0].job, State.FAILED)
    await store.accept_job(order(account_id), ME)
    return account_id


async def opened_jobs(url: str, account_ids: list[int]) -> list[int]:
    """How many open jobs of API keys are counted in the restored database."""
    store = await open_store(url, observer=RecordingObserver(), clock=ManualClock())
    counted = [(await store.order_state(account_id, "none")).open_api_jobs for account_id in account_ids]
    await store.close()
    return counted


async def test_open_jobs_of_api_keys_are_counted_once_after_a_restore(
    store: SqlDatabase, raw: Raw, url: str, any_url: str, file: Path
) -> None:
    accounts = [await client_with(store, jobs) for jobs in (2, 0, 1)]
    await raw(f"UPDATE accounts SET open_api_jobs = 7 WHERE id = {accounts[1]}")  # noqa: S608 - a number
    await backed_up(url, file)

    for resume in (True, False):
        summary = await restored(any_url, file, force=True, resume=resume)
        assert summary.violations == ()
        assert await opened_jobs(any_url, accounts) == [2, 0, 1]


async def test_open_jobs_are_counted_in_a_backup_from_before_they_were(
    store: SqlDatabase, url: str, any_url: str, file: Path
) -> None:
    accounts = [await client_with(store, jobs) for jobs in (2, 0)]
    await backed_up(url, file)

    def older(lines: list[bytes]) -> list[bytes]:
        header = json.loads(lines[0])
        header["migrations"] = [migration for migration in header["migrations"] if migration[0] < COUNTED_SINCE]
        return [json.dumps(header).encode() + b"\n", *lines[1:]]

    rewritten(file, older)
    summary = await restored(any_url, file)

    assert "accounts.open_api_jobs" in summary.left_out
    assert summary.violations == ()
    assert await opened_jobs(any_url, accounts) == [2, 0]


async def test_a_backup_with_a_refund_is_restored_whole(
    store: SqlDatabase, raw: Raw, url: str, any_url: str, file: Path, tmp_path: Path
) -> None:
    """A refund that the figures contain already, and one that they do not yet."""
    account_id = await account_with(store, 1000)
    jobs = [await delivered(store, account_id=account_id) for _ in range(2)]
    await store.transfer(account_id, EntryKind.REFUND, 1, f"refund:{jobs[0].id}")
    await raw("DELETE FROM figure_changes")
    await store.transfer(account_id, EntryKind.REFUND, 1, f"refund:{jobs[1].id}")
    before = await rows_of(url, tmp_path)
    await backed_up(url, file)

    summary = await restored(any_url, file, resume=True)

    after = await rows_of(any_url, tmp_path)
    assert after["figure_changes"] == before["figure_changes"]
    assert len(before["figure_changes"]) == 1
    assert summary.violations == ()


async def test_what_happens_after_a_restore_is_recorded_and_counted(
    store: SqlDatabase, url: str, new_url: str, file: Path, tmp_path: Path,
    opened: Callable[[], Awaitable[SqlDatabase]],
) -> None:  # fmt: skip
    account_id = await client_with(store, 1)
    job = await delivered(store, account_id=account_id)
    await backed_up(url, file)
    await restored(new_url, file)

    again = await opened()
    key = (await again.add_api_key(new_key(account_id, 99)))[0].id
    await again.accept_job(order(account_id, api_key_id=key), ME)
    await again.transfer(account_id, EntryKind.REFUND, 1, f"refund:{job.id}")

    assert (await again.order_state(account_id, "none")).open_api_jobs == 2
    await again.close()
    assert len((await rows_of(new_url, tmp_path))["figure_changes"]) == 1
