"""The check of all money on demand: every invariant for every row, in the background, with stored progress.

The leader's own check (money_check.py) goes on meanwhile; it looks at every row, too, but takes hours for all of them.
"""

import asyncio
import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from genlock.domain.events import Event
from genlock.domain.value import value
from genlock.ports import Database, Observer, Violation

#: kv entry of the installation: the latest full check
RUN = "full_money_check"
#: progress is stored this often; a run whose progress is older than STALE_SECONDS was interrupted
PROGRESS_SECONDS = 1.0
STALE_SECONDS = 30.0
#: between two steps, so that orders come first
PAUSE_SECONDS = 0.02
VIOLATIONS_SHOWN = 50


class RunState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"  #: the database did not answer; nothing is known about the rest
    INTERRUPTED = "interrupted"  #: the instance stopped or crashed


@dataclass(kw_only=True)
class _Run:
    token: str
    by: str
    instance: str
    state: RunState = RunState.RUNNING
    rule: str = ""
    rows: int = 0
    error: str = ""
    count: int = 0
    violations: list[list[str]] = field(default_factory=list)


@value
class FullCheck:
    """The latest full check. `age_seconds` is since its last progress, or since its end."""

    state: RunState
    by: str
    rule: str
    rows: int
    error: str
    count: int
    violations: Sequence[Violation]
    age_seconds: float


class FullMoneyCheck:
    """Starts a full check on this instance and tells how far the latest one is, on whichever instance it runs."""

    def __init__(self, store: Database, observer: Observer, instance: str) -> None:
        self._store = store
        self._observer = observer
        self._instance = instance
        self._task: asyncio.Task[None] | None = None

    async def latest(self) -> FullCheck | None:
        entry = await self._store.kv_get(RUN)
        if entry is None:
            return None
        run = _Run(**json.loads(entry.value))
        stale = run.state == RunState.RUNNING and entry.age > STALE_SECONDS
        return FullCheck(
            state=RunState.INTERRUPTED if stale else RunState(run.state),
            by=run.by,
            rule=run.rule,
            rows=run.rows,
            error=run.error,
            count=run.count,
            violations=[Violation(rule=row[0], subject=row[1], detail=row[2]) for row in run.violations],
            age_seconds=entry.age,
        )

    async def start(self, by: str) -> bool:
        """Start a check in the background. Returns False if one runs. Two that started at once would only read."""
        latest = await self.latest()
        if latest is not None and latest.state is RunState.RUNNING:
            return False
        run = _Run(token=secrets.token_hex(8), by=by, instance=self._instance)
        await self._save(run)
        self._task = asyncio.get_running_loop().create_task(self._run(run), name="full_money_check")
        return True

    async def wait(self) -> None:
        """Wait for the end of the check that this instance runs."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stop the check of this instance. It is shown as interrupted when its progress has become old."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, run: _Run) -> None:
        done: dict[str, int] = {}

        def progress(rule: str, rows: int) -> None:
            done[rule] = rows
            run.rule, run.rows = rule, sum(done.values())

        reporting = asyncio.get_running_loop().create_task(self._report(run))
        try:
            found = await self._store.violations(settled=False, progress=progress, pause_seconds=PAUSE_SECONDS)
        except Exception as error:  # noqa: BLE001 - the operator sees it on the page; the log has it, too
            run.state, run.error = RunState.FAILED, f"{type(error).__name__}: {error}"[:300]
            self._observer.event(Event.STAGE_ERROR, step="full_money_check", error=repr(error))
        else:
            run.state, run.count = RunState.DONE, len(found)
            run.violations = [
                [violation.rule, violation.subject, violation.detail] for violation in found[:VIOLATIONS_SHOWN]
            ]
            for violation in found[:VIOLATIONS_SHOWN]:
                self._observer.event(
                    Event.ATTENTION, rule=violation.rule, subject=violation.subject, detail=violation.detail
                )
        finally:
            reporting.cancel()
        await self._save(run)

    async def _report(self, run: _Run) -> None:
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            await self._save(run)

    async def _save(self, run: _Run) -> None:
        await self._store.kv_put(RUN, json.dumps(asdict(run)))
