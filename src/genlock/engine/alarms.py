"""Alarms: the active instance tells the operators, once per incident, and once more when it is over."""

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
#: rounds without a finding before an incident is over: what comes and goes is one incident
CALM_ROUNDS = 3
#: the ledger is summed so rarely that it costs at most a hundredth of the time
LEDGER_LEAST_SECONDS = 600.0
LEDGER_SHARE = 100
_SEEN = "active_seen"


class Alarms:
    """Incidents are facts in the store, so that a restart or another instance goes on with them."""

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
        self._calm: dict[str, int] = {}
        self._epoch: int | None = None
        self._ledger_at = 0.0
        self._lock = asyncio.Lock()
        self._stopped = False

    async def check(self) -> None:
        """Compare the counts with every alarm's limits, and notify operators of what began or ended."""
        async with self._lock:
            if not self._stopped:
                await self._check()

    async def _check(self) -> None:
        role = self._leader.role
        if role is None:
            return
        if role.epoch != self._epoch:
            await self._begin()
            self._epoch = role.epoch
        await self._store.kv_put(_SEEN, self._ctx.instance)
        stats = await self._stats.read()
        if stats is None:
            return
        open_ = {fact.key: json.loads(fact.value) for fact in await self._store.kv_list("alarm:")}
        for alarm in ALARMS:
            await self._look(alarm, alarm.check(stats), open_.get(f"alarm:{alarm.name}"))

    async def _begin(self) -> None:
        """Report how long no instance was the leader before this one."""
        seen = await self._store.kv_get(_SEEN)
        if seen is not None and seen.age > INACTIVE_SECONDS:
            self._ctx.observer.event(Event.ALARM, name=NO_ACTIVE.name, seconds=round(seen.age))
            await self._try_to_notify(AlarmNotice(name=NO_ACTIVE.name, finding=Finding(seconds=seen.age), late=True))

    async def stop(self) -> None:
        """Stop checking. After an orderly stop of the leader, the time without a leader is no incident."""
        async with self._lock:
            self._stopped = True
            if self._leader.role is not None:
                await self._store.kv_delete(_SEEN)

    async def _look(self, alarm: Alarm, found: Finding | None, incident: Any) -> None:
        key = f"alarm:{alarm.name}"
        if found is not None:
            self._calm[key] = 0
            if incident is None:
                since = (await self._store.read_clock()).timestamp()
                incident = {"since": since, "told": False}
                await self._store.kv_put(key, json.dumps(incident))
                self._ctx.observer.event(Event.ALARM, name=alarm.name, found=str(found))
            # Told before it is written that it was: a crash in between tells it twice, not never.
            if not incident["told"] and await self._try_to_notify(AlarmNotice(name=alarm.name, finding=found)):
                await self._store.kv_put(key, json.dumps({**incident, "told": True}))
        elif incident is not None:
            self._calm[key] = self._calm.get(key, 0) + 1
            if self._calm[key] >= CALM_ROUNDS:
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

    async def check_ledger(self) -> None:
        """Sum the ledger now and then. What is found stays a fact until the next time."""
        loop = self._ctx.loop
        if self._leader.role is None or loop.time() < self._ledger_at:
            return
        started = loop.time()
        try:
            found = await self._store.money_violations()
        finally:  # what took long and failed is not tried again at once
            self._ledger_at = loop.time() + max(LEDGER_LEAST_SECONDS, (loop.time() - started) * LEDGER_SHARE)
        for violation in found[:10]:
            self._ctx.observer.event(
                Event.ATTENTION, rule=violation.rule, subject=violation.subject, detail=violation.detail
            )
        await self._store.kv_put("ledger_violations", str(len(found)))
