"""Updates: kept before they are acknowledged, then worked off by any instance, in order, one at a time per person."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from genlock.domain.errors import ChannelBusy, ChannelUnknown, ChatClosed, StoreError
from genlock.domain.events import Event
from genlock.domain.retry import backoff
from genlock.domain.suspicion import OFTEN
from genlock.domain.update import Lane, NewUpdate, Received, Update, UpdateState
from genlock.engine.kit import Kit, handled
from genlock.engine.worker import every
from genlock.ports import UpdateStore

#: lanes one instance works on at the same time, and those it keeps free for what is urgent
ROOM = 200
URGENT_ROOM = 50
#: tries of an update that nobody can handle, and of one whose time will come
TRIES = 5
PATIENT_TRIES = 40
HANDLER_SECONDS_MAX = 300.0
NOTE_MAX = 500

Handler = Callable[[Update], Awaitable[None]]


class Updates:
    """One task per lane that somebody waits in; none for those that are empty."""

    def __init__(
        self, kit: Kit, store: UpdateStore, handle: Handler, repeated: Callable[[NewUpdate], Awaitable[None]]
    ) -> None:
        self._kit = kit
        self._store = store
        self._handle = handle
        #: told of a press that was made twice: somebody still waits for its answer
        self._repeated = repeated
        self._lanes: dict[int, tuple[Lane, float, asyncio.Task[None]]] = {}
        self._urgent: set[int] = set()
        self._answers: set[asyncio.Task[None]] = set()
        self._due = asyncio.Event()
        self._stopping = False
        self._unsure = 0

    async def take_in(self, update: NewUpdate) -> Received:
        """Keep an update; when this returns it may be acknowledged."""
        arrival = await self._store.store_update(update)
        kit = self._kit
        kit.observer.count("updates", 1, kind=update.kind, arrival=arrival)
        if arrival is not Received.KNOWN:
            kit.observer.event(
                Event.UPDATE_RECEIVED, update.correlation, update=update.update_id, kind=update.kind, arrival=arrival
            )
        if arrival is Received.FRESH:
            self._due.set()
        elif arrival is Received.REPEATED:
            task = kit.loop.create_task(self._answer(update))
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)
        return arrival

    async def _answer(self, update: NewUpdate) -> None:
        try:
            await self._repeated(update)
        except Exception as error:  # noqa: BLE001 - the press itself was dealt with; this one only looks better answered
            self._kit.observer.event(Event.UPDATE_FAIL, update.correlation, update=update.update_id, error=repr(error))

    # the work

    def take(self, lane: Lane, *, urgent: bool) -> None:
        """Work off a lane that is leased to us."""
        if lane.id in self._lanes:  # an older lease of ours, which is over: its writes change nothing
            self._lanes.pop(lane.id)[2].cancel()
        loop = self._kit.loop
        task = loop.create_task(self._work(lane))
        self._lanes[lane.id] = (lane, loop.time(), task)
        if urgent:
            self._urgent.add(lane.id)
        task.add_done_callback(lambda done: self._done(lane.id, done))

    def _done(self, lane_id: int, task: asyncio.Task[None]) -> None:
        entry = self._lanes.get(lane_id)
        if entry is not None and entry[2] is task:
            del self._lanes[lane_id]
            self._urgent.discard(lane_id)
        self._due.set()

    async def _work(self, lane: Lane) -> None:
        held: Lane | None = lane
        try:
            while held is not None:
                if held.update is None:
                    held = await self._store.next_update(held)
                    continue
                held = await self._one(held, held.update)
        except Exception as error:  # noqa: BLE001 - a failure of the store; of a handler's it was told before
            # The rows are as they were; the lease runs out and somebody goes on.
            self._kit.observer.event(Event.STAGE_ERROR, step="updates", lane=lane.id, error=repr(error))

    async def _one(self, lane: Lane, update: Update) -> Lane | None:
        """Handle one update; returns the lane with the next one, while it is ours."""
        kit, started = self._kit, self._kit.loop.time()
        entry = self._lanes.get(lane.id)
        if entry is not None:
            self._lanes[lane.id] = (lane, started, entry[2])
        handled.set(update.correlation)
        state, note = UpdateState.DONE, ""
        hopeless = update.attempts > PATIENT_TRIES or lane.deaths >= kit.rules.deaths_max
        try:
            if hopeless:
                raise RuntimeError("it was begun too often and never ended")  # noqa: TRY301 - it fails like any other
            async with asyncio.timeout(HANDLER_SECONDS_MAX):
                await self._handle(update)
        except ChatClosed as closed:
            note = closed.reason  # nobody is there to answer: that is an end, too
        except Exception as error:  # noqa: BLE001 - a bug or a poison update must not take the others with it
            note = repr(error)[:NOTE_MAX]
            patient = isinstance(error, ChannelBusy | ChannelUnknown | StoreError | TimeoutError)
            if not hopeless and update.attempts < (PATIENT_TRIES if patient else TRIES):
                await self._later(lane, update, error, note)
                return None
            state = UpdateState.ASIDE
        took = kit.loop.time() - started
        settled = await self._store.settle_update(lane, state, note, kit.lease)
        if settled is None:
            kit.observer.event(Event.LEASE_LOST, update.correlation, lane=lane.id, token=lane.token)
            return None
        self._say_settled(update, state, note, took)
        return settled.lane if settled.waiting and not self._stopping else None

    def _say_settled(self, update: Update, state: UpdateState, note: str, seconds: float) -> None:
        event = Event.UPDATE_ASIDE if state is UpdateState.ASIDE else Event.UPDATE_DONE
        self._kit.observer.event(
            event,
            update.correlation,
            update=update.update_id,
            kind=update.kind,
            note=note or None,
            seconds=round(seconds, 4),
        )

    async def _later(self, lane: Lane, update: Update, error: Exception, note: str) -> None:
        chance = self._kit.chance.random()
        after = (
            error.after if isinstance(error, ChannelBusy) else backoff(update.attempts - 1, chance, base=0.5, most=30.0)
        )
        self._kit.observer.event(
            Event.UPDATE_FAIL,
            update.correlation,
            update=update.update_id,
            attempt=update.attempts,
            after=round(after, 1),
            error=note,
        )
        await self._store.postpone_update(lane, after, note)

    # the loops

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        suspects = every(self._kit.rules.claim_seconds, self.claim_suspects, self._kit)
        return [self._claim_loop(), suspects, self._renew_loop()]

    def _renew_loop(self) -> Coroutine[Any, Any, None]:
        return every(self._kit.rules.lease_seconds / 6, self._renew, self._kit)

    async def _claim_loop(self) -> None:
        """Claim when something came in here, and at a steady pace what was left behind elsewhere."""
        kit = self._kit
        while True:
            self._due.clear()
            try:
                await self._let_go()
                await self.claim()
            except Exception as error:  # noqa: BLE001 - as in `every`
                kit.observer.event(Event.STAGE_ERROR, error=repr(error), step="claim_lanes")
                await asyncio.sleep(kit.rules.claim_seconds)
            try:
                async with asyncio.timeout(kit.rules.claim_seconds):
                    await self._due.wait()
            except TimeoutError:
                pass

    async def claim(self) -> None:
        urgent_room = URGENT_ROOM - len(self._urgent)
        room = ROOM - (len(self._lanes) - len(self._urgent))
        for urgent, limit in ((True, urgent_room), (False, room)):
            if limit > 0 and not self._stopping:
                for lane in await self._store.claim_lanes(limit, self._kit.lease, urgent=urgent):
                    self.take(lane, urgent=urgent)

    async def claim_suspects(self) -> None:
        """Take the lanes that others died with again and again, one at a time."""
        for urgent in (True, False):
            if self._stopping or any(lane.deaths >= OFTEN for lane, _, _ in self._lanes.values()):
                return
            for lane in await self._store.claim_lanes(1, self._kit.lease, urgent=urgent, suspects=True):
                self._kit.observer.event(Event.SUSPECT, lane=lane.id, deaths=lane.deaths)
                self.take(lane, urgent=urgent)

    async def _renew(self) -> None:
        """Keep the lanes of handlers that take long."""
        old = self._kit.loop.time() - self._kit.rules.lease_seconds / 3
        long = [(lane, task) for lane, since, task in self._lanes.values() if since < old]
        if not long:
            return
        kept = await self._store.renew_lanes([lane for lane, _ in long], self._kit.lease)
        for lane, task in long:
            if lane.id not in kept and self._lanes.get(lane.id, (None,))[0] is lane:
                self._kit.observer.event(Event.LEASE_LOST, lane=lane.id, token=lane.token)
                task.cancel()

    async def _let_go(self) -> None:
        """After a commit that was made twice a lane may be ours without our knowing: give back what we do not know."""
        unsure = self._kit.store.unsure
        if unsure != self._unsure:
            await self._store.rescue_lanes(self._kit.instance, list(self._lanes) or [0])
            self._unsure = unsure

    async def drain(self) -> None:
        """Take nothing new, let those who are at it finish."""
        self._stopping = True
        renewing = self._kit.loop.create_task(self._renew_loop())
        try:
            tasks = [*self._answers, *(task for _, _, task in self._lanes.values())]
            if tasks:
                await asyncio.wait(tasks, timeout=self._kit.rules.stop_seconds)
            left = [*self._answers, *(task for _, _, task in self._lanes.values())]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
