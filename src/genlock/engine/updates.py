"""Updates: kept before they are acknowledged, then worked off by any instance, in order, one at a time per person."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown, RecipientUnreachable, StoreError
from genlock.domain.events import Event
from genlock.domain.poison import ISOLATED_FROM
from genlock.domain.retry import backoff
from genlock.domain.update import NewUpdate, Received, Update, UpdateQueue, UpdateState
from genlock.engine.context import EngineContext, handled
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
        self,
        ctx: EngineContext,
        store: UpdateStore,
        handle: Handler,
        repeated: Callable[[NewUpdate], Awaitable[None]],
        *,
        bots: Sequence[str],
    ) -> None:
        self._ctx = ctx
        self._store = store
        self._handle = handle
        self._bots = tuple(bots)
        #: told of a press that was made twice: somebody still waits for its answer
        self._repeated = repeated
        self._queues: dict[int, tuple[UpdateQueue, float, asyncio.Task[None]]] = {}
        self._urgent: set[int] = set()
        self._answers: set[asyncio.Task[None]] = set()
        self._due = asyncio.Event()
        self._stopping = False
        self._uncertain_commits = 0

    async def take_in(self, update: NewUpdate) -> Received:
        """Keep an update; when this returns it may be acknowledged."""
        arrival = await self._store.store_update(update)
        ctx = self._ctx
        ctx.observer.count("updates", 1, kind=update.kind, arrival=arrival)
        if arrival is not Received.KNOWN:
            ctx.observer.event(
                Event.UPDATE_RECEIVED, update.correlation_id, update=update.update_id, kind=update.kind, arrival=arrival
            )
        if arrival is Received.FRESH:
            self._due.set()
        elif arrival is Received.REPEATED:
            task = ctx.loop.create_task(self._answer(update))
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)
        return arrival

    async def _answer(self, update: NewUpdate) -> None:
        try:
            await self._repeated(update)
        except Exception as error:  # noqa: BLE001 - the press itself was dealt with; this one only looks better answered
            self._ctx.observer.event(
                Event.UPDATE_FAIL, update.correlation_id, update=update.update_id, error=repr(error)
            )

    # the work

    def take(self, lane: UpdateQueue, *, urgent: bool) -> None:
        """Work off a lane that is leased to us."""
        if lane.id in self._queues:  # an older lease of ours, which is over: its writes change nothing
            self._queues.pop(lane.id)[2].cancel()
        loop = self._ctx.loop
        task = loop.create_task(self._work(lane))
        self._queues[lane.id] = (lane, loop.time(), task)
        if urgent:
            self._urgent.add(lane.id)
        task.add_done_callback(lambda done: self._done(lane.id, done))

    def _done(self, queue_id: int, task: asyncio.Task[None]) -> None:
        entry = self._queues.get(queue_id)
        if entry is not None and entry[2] is task:
            del self._queues[queue_id]
            self._urgent.discard(queue_id)
        self._due.set()

    async def _work(self, lane: UpdateQueue) -> None:
        held: UpdateQueue | None = lane
        try:
            while held is not None:
                if held.update is None:
                    held = await self._store.next_update(held)
                    continue
                held = await self._one(held, held.update)
        except Exception as error:  # noqa: BLE001 - a failure of the store; of a handler's it was told before
            # The rows are as they were; the lease runs out and somebody goes on.
            self._ctx.observer.event(Event.STAGE_ERROR, step="updates", lane=lane.id, error=repr(error))

    async def _one(self, lane: UpdateQueue, update: Update) -> UpdateQueue | None:
        """Handle one update; returns the lane with the next one, while it is ours."""
        ctx, started = self._ctx, self._ctx.loop.time()
        entry = self._queues.get(lane.id)
        if entry is not None:
            self._queues[lane.id] = (lane, started, entry[2])
        handled.set(update.correlation_id)
        state, note = UpdateState.DONE, ""
        hopeless = update.attempts > PATIENT_TRIES or lane.crash_count >= ctx.rules.crashes_max
        try:
            if hopeless:
                raise RuntimeError("it was begun too often and never ended")  # noqa: TRY301 - it fails like any other
            async with asyncio.timeout(HANDLER_SECONDS_MAX):
                await self._handle(update)
        except RecipientUnreachable as closed:
            note = closed.reason  # nobody is there to answer: that is an end, too
        except Exception as error:  # noqa: BLE001 - a bug or a poison update must not take the others with it
            note = repr(error)[:NOTE_MAX]
            patient = isinstance(error, ChannelBusy | ChannelOutcomeUnknown | StoreError | TimeoutError)
            if not hopeless and update.attempts < (PATIENT_TRIES if patient else TRIES):
                await self._later(lane, update, error, note)
                return None
            state = UpdateState.DEAD
        took = ctx.loop.time() - started
        settled = await self._store.settle_update(lane, state, note, ctx.lease)
        if settled is None:
            ctx.observer.event(Event.LEASE_LOST, update.correlation_id, lane=lane.id, token=lane.token)
            return None
        self._say_settled(update, state, note, took)
        return settled.queue if settled.waiting and not self._stopping else None

    def _say_settled(self, update: Update, state: UpdateState, note: str, seconds: float) -> None:
        event = Event.UPDATE_DEAD if state is UpdateState.DEAD else Event.UPDATE_DONE
        self._ctx.observer.event(
            event,
            update.correlation_id,
            update=update.update_id,
            kind=update.kind,
            note=note or None,
            seconds=round(seconds, 4),
        )

    async def _later(self, lane: UpdateQueue, update: Update, error: Exception, note: str) -> None:
        rng = self._ctx.rng.random()
        after = (
            error.after if isinstance(error, ChannelBusy) else backoff(update.attempts - 1, rng, base=0.5, most=30.0)
        )
        self._ctx.observer.event(
            Event.UPDATE_FAIL,
            update.correlation_id,
            update=update.update_id,
            attempt=update.attempts,
            after=round(after, 1),
            error=note,
        )
        await self._store.postpone_update(lane, after, note)

    # the loops

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        poison = every(self._ctx.rules.claim_seconds, self.claim_poison_jobs, self._ctx)
        return [self._claim_loop(), poison, self._renew_loop()]

    def _renew_loop(self) -> Coroutine[Any, Any, None]:
        return every(self._ctx.rules.lease_seconds / 6, self._renew, self._ctx)

    async def _claim_loop(self) -> None:
        """Claim when something came in here, and at a steady pace what was left behind elsewhere."""
        ctx = self._ctx
        while True:
            self._due.clear()
            try:
                await self._let_go()
                await self.claim()
            except Exception as error:  # noqa: BLE001 - as in `every`
                ctx.observer.event(Event.STAGE_ERROR, error=repr(error), step="claim_update_queues")
                await asyncio.sleep(ctx.rules.claim_seconds)
            try:
                async with asyncio.timeout(ctx.rules.claim_seconds):
                    await self._due.wait()
            except TimeoutError:
                pass

    async def claim(self) -> None:
        urgent_room = URGENT_ROOM - len(self._urgent)
        room = ROOM - (len(self._queues) - len(self._urgent))
        for urgent, limit in ((True, urgent_room), (False, room)):
            if limit > 0 and not self._stopping:
                for lane in await self._store.claim_update_queues(
                    limit, self._ctx.lease, bots=self._bots, urgent=urgent
                ):
                    self.take(lane, urgent=urgent)

    async def claim_poison_jobs(self) -> None:
        """Take the lanes that others died with again and again, one at a time."""
        for urgent in (True, False):
            if self._stopping or any(lane.crash_count >= ISOLATED_FROM for lane, _, _ in self._queues.values()):
                return
            for lane in await self._store.claim_update_queues(
                1, self._ctx.lease, bots=self._bots, urgent=urgent, poison=True
            ):
                self._ctx.observer.event(Event.POISON_SUSPECTED, lane=lane.id, crash_count=lane.crash_count)
                self.take(lane, urgent=urgent)

    async def _renew(self) -> None:
        """Keep the lanes of handlers that take long."""
        old = self._ctx.loop.time() - self._ctx.rules.lease_seconds / 3
        long = [(lane, task) for lane, since, task in self._queues.values() if since < old]
        if not long:
            return
        kept = await self._store.renew_update_queues([lane for lane, _ in long], self._ctx.lease)
        for lane, task in long:
            if lane.id not in kept and self._queues.get(lane.id, (None,))[0] is lane:
                self._ctx.observer.event(Event.LEASE_LOST, lane=lane.id, token=lane.token)
                task.cancel()

    async def _let_go(self) -> None:
        """After a commit that was made twice a lane may be ours without our knowing: give back what we do not know."""
        uncertain_commits = self._ctx.store.uncertain_commits
        if uncertain_commits != self._uncertain_commits:
            await self._store.release_update_queues(self._ctx.instance, list(self._queues) or [0])
            self._uncertain_commits = uncertain_commits

    async def drain(self) -> None:
        """Take nothing new, let those who are at it finish."""
        self._stopping = True
        renewing = self._ctx.loop.create_task(self._renew_loop())
        try:
            tasks = [*self._answers, *(task for _, _, task in self._queues.values())]
            if tasks:
                await asyncio.wait(tasks, timeout=self._ctx.rules.stop_seconds)
            left = [*self._answers, *(task for _, _, task in self._queues.values())]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
