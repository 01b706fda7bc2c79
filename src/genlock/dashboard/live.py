"""What happens now: read by one task per instance while a tab listens, and sent to all tabs.

The task reads the store every two seconds and renders each language once, however many tabs there are.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from genlock.domain.alarm import ALARMS, Finding
from genlock.domain.errors import StoreError
from genlock.domain.events import Event
from genlock.domain.figures import Durations, hour_number, percentile
from genlock.engine.provider_credit import ProviderCredit, provider_credits
from genlock.engine.stats import Stats
from genlock.ports import Database, FiguresProgress, InstanceInfo, Observer

READ_SECONDS = 2.0
#: what changes slowly is read less often
INSTANCES_SECONDS = 6.0
FIGURES_SECONDS = 30.0
#: a connection without news gets a comment, so that proxies do not close it
QUIET_SECONDS = 15.0
#: after this time the browser connects again
STREAM_SECONDS = 600.0
#: how long a stream goes on after its session has ended or its operator has lost access
SESSION_SECONDS = 15.0
#: connections that one session, and all together, may keep open on an instance
SESSION_STREAMS_MAX, STREAMS_MAX = 40, 400
#: the days from which the present rate of spending is taken
RATE_DAYS = 7
HOURS_PER_DAY = 24

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class OpenAlarm:
    name: str
    #: what is wrong now; None if the condition is over and the alarm about to end
    finding: Finding | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class CreditLeft:
    provider: str
    #: in thousandths of the provider's credit
    credit: int
    #: how long it lasts at the rate of the last days; None if nothing was spent
    days: float | None
    #: seconds since the provider was asked
    age: float


@dataclass(frozen=True, kw_only=True)
class LiveFigures:
    stats: Mapping[str, float]
    instances: Sequence[InstanceInfo]
    alarms: Sequence[OpenAlarm]
    credits: Sequence[CreditLeft]
    #: seconds from the result to the chat, of the orders of this hour and the last; None without deliveries
    delivery_median: float | None
    delivery_p99: float | None
    progress: FiguresProgress


class LiveReader:
    """Reads what happens now. What changes slowly comes from the last reading for a while."""

    def __init__(self, store: Database, stats: Stats) -> None:
        self._store = store
        self._stats = stats
        self._kept: dict[str, tuple[float, Any]] = {}

    async def read(self) -> LiveFigures | None:
        """Return the figures of this moment; None if the store does not answer."""
        stats = await self._stats.read()
        if stats is None:
            return None
        try:
            return await self._read(stats)
        except StoreError:
            return None

    async def _read(self, stats: Mapping[str, float]) -> LiveFigures:
        durations = await self._recent("durations", FIGURES_SECONDS, self._durations)
        return LiveFigures(
            stats=stats,
            instances=await self._recent("instances", INSTANCES_SECONDS, self._store.instances),
            alarms=[
                OpenAlarm(name=name, finding=_findings(stats).get(name), seconds=age)
                for name, age in await self._recent("alarms", INSTANCES_SECONDS, self._alarms)
            ],
            credits=await self._recent("credits", FIGURES_SECONDS, self._credits),
            delivery_median=percentile(durations, 0.5),
            delivery_p99=percentile(durations, 0.99),
            progress=await self._recent("progress", INSTANCES_SECONDS, self._store.figures_progress),
        )

    async def _recent(self, name: str, seconds: float, read: Callable[[], Awaitable[Value]]) -> Value:
        now = asyncio.get_running_loop().time()
        if name not in self._kept or now - self._kept[name][0] >= seconds:
            self._kept[name] = now, await read()
        found: Value = self._kept[name][1]
        return found

    async def _alarms(self) -> list[tuple[str, float]]:
        now = await self._store.read_clock()
        return [
            (entry.key.removeprefix("alarm:"), max(0.0, now.timestamp() - json.loads(entry.value)["since"]))
            for entry in await self._store.kv_list("alarm:")
        ]

    async def _durations(self) -> Durations:
        hour = hour_number(await self._store.read_clock())
        return await self._store.delivery_durations(hour - 1, hour + 1)

    async def _credits(self) -> list[CreditLeft]:
        known = await provider_credits(self._store)
        if not known:
            return []
        now = await self._store.read_clock()
        since = hour_number(now - timedelta(days=RATE_DAYS))
        spent: Counter[str] = Counter()
        for model_figures in await self._store.model_figures(since, hour_number(now) + 1):
            spent[model_figures.provider] += model_figures.figures.cost
        days = await self._days_with_orders(since, hour_number(now) + 1)
        return [_credit_left(credit, spent[credit.provider] / days) for credit in known]

    async def _days_with_orders(self, since: int, until: int) -> float:
        """Return for how many of these days there were orders: a young installation has fewer."""
        hours = await self._store.period_figures(since, until)
        return max(1.0, (until - min(hours)) / HOURS_PER_DAY) if hours else 1.0


def _credit_left(known: ProviderCredit, spent_per_day: float) -> CreditLeft:
    days = known.credit / spent_per_day if spent_per_day > 0 else None
    return CreditLeft(provider=known.provider, credit=known.credit, days=days, age=known.age)


def _findings(stats: Mapping[str, float]) -> dict[str, Finding]:
    return {alarm.name: found for alarm in ALARMS if (found := alarm.check(stats)) is not None}


class LiveFeed:
    """Sends the rendered figures to every tab that listens. The task runs only while there is one."""

    def __init__(
        self, reader: LiveReader, render: Callable[[LiveFigures | None, str], str], observer: Observer, release: str
    ) -> None:
        self._reader = reader
        self._render = render
        self._observer = observer
        #: the version of the pages; a page of another one offers to be loaded again
        self._release = release
        self._listeners: Counter[str] = Counter()
        self._sessions: Counter[int] = Counter()
        self._latest: dict[str, str] = {}
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    def has_room(self, session: int) -> bool:
        """Whether a session may open another connection."""
        return self._sessions[session] < SESSION_STREAMS_MAX and self._sessions.total() < STREAMS_MAX

    async def listen(
        self, language: str, session: int, is_open: Callable[[], bool], is_logged_in: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[str]:
        """Yield server-sent events until the time of a connection is over, its session ends or the instance stops."""
        loop = asyncio.get_running_loop()
        until, sent, quiet_since, checked = loop.time() + STREAM_SECONDS, "", loop.time(), loop.time()
        self._listeners[language] += 1
        self._sessions[session] += 1
        self._start()
        try:
            yield f"event: release\ndata: {self._release}\n\n"
            while is_open() and loop.time() < until:
                text = await self._next(language, sent)
                if loop.time() - checked >= SESSION_SECONDS:
                    checked = loop.time()
                    if not await is_logged_in():
                        return
                if text != sent:
                    sent, quiet_since = text, loop.time()
                    yield "".join(f"data: {line}\n" for line in text.splitlines()) + "\n"
                elif loop.time() - quiet_since >= QUIET_SECONDS:
                    quiet_since = loop.time()
                    yield ":\n\n"
        finally:
            self._listeners[language] -= 1
            self._listeners += Counter()  # drops languages without a listener
            self._sessions[session] -= 1
            self._sessions += Counter()

    async def _next(self, language: str, sent: str) -> str:
        """Wait for another text, for a moment."""
        async with self._changed:
            try:
                async with asyncio.timeout(READ_SECONDS):
                    await self._changed.wait_for(lambda: self._latest.get(language, "") not in ("", sent))
            except TimeoutError:
                return sent
            return self._latest[language]

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._latest = {}
            self._task = asyncio.get_running_loop().create_task(self._read_while_listened(), name="live_figures")

    async def _read_while_listened(self) -> None:
        while self._listeners:
            try:
                live = await self._reader.read()
                texts = {language: self._render(live, language) for language in self._listeners}
            except Exception as error:  # noqa: BLE001 - the tabs wait for the next reading
                self._observer.event(Event.STAGE_ERROR, step="live_figures", error=repr(error)[:500])
            else:
                async with self._changed:
                    self._latest = texts
                    self._changed.notify_all()
            await asyncio.sleep(READ_SECONDS)
