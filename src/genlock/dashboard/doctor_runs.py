"""Runs the doctor from the dashboard: one run at a time on all instances, its phases shown as they end."""

import asyncio
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from genlock.dashboard.installation import Examine
from genlock.domain.doctor_phase import Phase
from genlock.domain.errors import StoreError
from genlock.domain.events import Event
from genlock.ports import Database, Observer

#: the role of the instance that runs the doctor, and the entry with what it found
ROLE = "doctor"
LAST_RUN = "doctor:run"
#: a run without a new phase for this long is given up: its instance has crashed
LEASE_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class DoctorRun:
    operator: str
    started_at: datetime
    phases: tuple[Phase, ...]
    #: why the run ended before its last phase; "" if it did not
    error: str
    running: bool

    @property
    def ok(self) -> bool:
        return not self.running and not self.error and all(phase.ok for phase in self.phases)


class DoctorRuns:
    def __init__(
        self,
        store: Database,
        observer: Observer,
        examine: Examine | None,
        new_id: Callable[[], str] = lambda: f"doctor-{secrets.token_hex(8)}",
    ) -> None:
        self._store = store
        self._observer = observer
        self._examine = examine
        self._new_id = new_id
        self._task: asyncio.Task[None] | None = None

    @property
    def is_available(self) -> bool:
        return self._examine is not None

    async def start(self, operator: str, request_key: str) -> bool:
        """Begin a run, unless the same form began the newest one. False if another is running, on any instance."""
        assert self._examine is not None
        entry = await self._store.kv_get(LAST_RUN)
        if entry is not None and json.loads(entry.value)["request_key"] == request_key:
            return True
        run = self._new_id()
        if (await self._store.take_role(ROLE, run, LEASE_SECONDS)).holder != run:
            return False
        started = (await self._store.read_clock()).isoformat()
        record = {"operator": operator, "request_key": request_key, "started": started, "phases": []}
        await self._write(record)
        self._task = asyncio.create_task(self._work(run, record, self._examine), name="doctor")
        return True

    async def last(self) -> DoctorRun | None:
        """Return the newest run, which may still be under way on another instance."""
        entry = await self._store.kv_get(LAST_RUN)
        if entry is None:
            return None
        record = json.loads(entry.value)
        ended = record.get("ended", False)
        return DoctorRun(
            operator=record["operator"],
            started_at=datetime.fromisoformat(record["started"]),
            phases=tuple(Phase(**phase) for phase in record["phases"]),
            error=record.get("error", "" if ended or entry.age < LEASE_SECONDS else "crashed"),
            running=not ended and entry.age < LEASE_SECONDS,
        )

    async def _work(self, run: str, record: dict[str, Any], examine: Examine) -> None:
        try:
            await self._record_phases(run, record, examine)
        except StoreError as error:  # the page shows the run as given up when its lease is over
            self._observer.event(Event.STAGE_ERROR, step="doctor", error=str(error))

    async def _record_phases(self, run: str, record: dict[str, Any], examine: Examine) -> None:
        try:
            async for phase in examine():
                record["phases"].append(_dump(phase))
                if (await self._store.take_role(ROLE, run, LEASE_SECONDS)).holder != run:
                    return  # this process was paused so long that another run has begun
                await self._write(record)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - shown to the operator
            self._observer.event(Event.STAGE_ERROR, step="doctor", error=repr(error)[:500])
            record["error"] = type(error).__name__
        await self._write({**record, "ended": True})
        await self._store.release_role(ROLE, run)

    async def _write(self, record: dict[str, Any]) -> None:
        await self._store.kv_put(LAST_RUN, json.dumps(record, ensure_ascii=False))


def _dump(phase: Phase) -> dict[str, Any]:
    return {"name": phase.name, "ok": phase.ok, "detail": phase.detail}
