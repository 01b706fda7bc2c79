"""Alarms: the leader notifies operators once when an incident begins, and once when it ends."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from genlock.domain.alarm import ALARMS, INACTIVE_SECONDS, NO_ACTIVE, Alarm, AlarmNotice, Finding
from genlock.domain.errors import ChannelError
from genlock.domain.events import Event
from genlock.engine.context import EngineContext
from genlock.engine.leader import Leader
from genlock.engine.stats import Stats
from genlock.ports import Database

PERIOD_SECONDS = 10.0
#: checks without a finding before an incident ends: a condition that comes and goes is one incident
CHECKS_WITHOUT_FINDING = 3
_LAST_LEADER = "active_seen"


class Alarms:
    """Open incidents are rows in the store, so that a restarted or another instance continues with them."""

    def __init__(
        self,
        ctx: EngineContext,
        leader: Leader,
        store: Database,
        stats: Stats,
        notify: Callable[[AlarmNotice], Awaitable[None]],
    ) -> None:
        self._ctx = ctx
        self._leader = leader
        self._store = store
        self._stats = stats
        self._notify = notify
        self._quiet_checks: dict[str, int] = {}
        self._epoch: int | None = None
        #: when this instance became the leader
        self._leader_since = 0.0
        self._lock = asyncio.Lock()
        self._checking: asyncio.Task[object] | None = None
        self._stopped = False

    async def check(self) -> None:
        """Compare the counts with every alarm's limits, and notify operators of what began or ended."""
        async with self._lock:
            if self._stopped:
                return
            self._checking = asyncio.current_task()
            try:
                await self._check()
            finally:
                self._checking = None

    async def _check(self) -> None:
        role = self._leader.role
        if role is None:
            return
        if role.epoch != self._epoch:
            await self._report_gap()
            self._epoch, self._leader_since = role.epoch, self._ctx.loop.time()
        await self._store.kv_put(_LAST_LEADER, self._ctx.instance)
        stats = await self._stats.read()
        if stats is None:
            return
        # The time without a leader is no fault of the money check.
        check_age = min(stats.get("ledger_check_age", 0.0), self._ctx.loop.time() - self._leader_since)
        stats = {**stats, "ledger_check_age": check_age}
        incidents = {entry.key: json.loads(entry.value) for entry in await self._store.kv_list("alarm:")}
        for alarm in ALARMS:
            await self._update(alarm, alarm.check(stats), incidents.get(f"alarm:{alarm.name}"))

    async def _report_gap(self) -> None:
        """Notify operators of the time without a leader before this instance."""
        seen = await self._store.kv_get(_LAST_LEADER)
        if seen is not None and seen.age > INACTIVE_SECONDS:
            self._ctx.observer.event(Event.ALARM, name=NO_ACTIVE.name, seconds=round(seen.age))
            await self._try_to_notify(AlarmNotice(name=NO_ACTIVE.name, finding=Finding(seconds=seen.age), late=True))

    async def stop(self) -> None:
        """Stop checking. After an orderly stop of the leader, the time without a leader is no incident.

        A running check is cancelled: it may wait for a chat that does not answer longer than a stop may take.
        """
        self._stopped = True
        if self._checking is not None:
            self._checking.cancel()
        async with self._lock:
            if self._leader.role is not None:
                await self._store.kv_delete(_LAST_LEADER)

    async def _update(self, alarm: Alarm, finding: Finding | None, incident: Any) -> None:
        key = f"alarm:{alarm.name}"
        if finding is not None:
            self._quiet_checks[key] = 0
            if incident is None:
                since = (await self._store.read_clock()).timestamp()
                incident = {"since": since, "told": False}
                await self._store.kv_put(key, json.dumps(incident))
                self._ctx.observer.event(Event.ALARM, name=alarm.name, found=str(finding))
            # Notify first, then write that it was done: a crash in between repeats the notification.
            if not incident["told"] and await self._try_to_notify(AlarmNotice(name=alarm.name, finding=finding)):
                await self._store.kv_put(key, json.dumps({**incident, "told": True}))
        elif incident is not None:
            self._quiet_checks[key] = self._quiet_checks.get(key, 0) + 1
            if self._quiet_checks[key] >= CHECKS_WITHOUT_FINDING:
                await self._recover(alarm, key, incident)

    async def _recover(self, alarm: Alarm, key: str, incident: Any) -> None:
        lasted = (await self._store.read_clock()).timestamp() - incident["since"]
        if not incident["told"] or await self._try_to_notify(AlarmNotice(name=alarm.name, seconds=lasted)):
            await self._store.kv_delete(key)
            self._ctx.observer.event(Event.RECOVERED, name=alarm.name, seconds=round(lasted))

    async def _try_to_notify(self, notice: AlarmNotice) -> bool:
        try:
            await self._notify(notice)
        except ChannelError as error:
            self._ctx.observer.event(Event.STAGE_ERROR, step="alarm", error=f"{type(error).__name__}: {error}")
            return False
        return True
