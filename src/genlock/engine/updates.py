"""The update worker: updates are stored, acknowledged, then handled by any instance, in order for each user."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown, RecipientUnreachable, StoreError
from genlock.domain.events import Event
from genlock.domain.poison import ISOLATED_FROM
from genlock.domain.retry import backoff
from genlock.domain.update import NewUpdate, Received, Update, UpdateQueue, UpdateState
from genlock.engine.cancellation import cancel_and_wait
from genlock.engine.context import EngineContext
from genlock.ports import UpdateStore
from genlock.ports.call_fence import may_call

#: queues that one instance handles at the same time, and those reserved for urgent ones
CAPACITY = 200
URGENT_CAPACITY = 50
#: tries of an update whose handler fails, and of one that fails for a transient reason
TRIES = 5
TRANSIENT_TRIES = 40
#: tries of an update whose handler does not finish in time: most likely it never will
TIMEOUT_TRIES = 2
HANDLER_SECONDS_MAX = 300.0
NOTE_MAX = 500
#: errors after which waiting helps
TRANSIENT = (ChannelBusy, ChannelOutcomeUnknown, StoreError, TimeoutError)

Handler = Callable[[Update], Awaitable[None]]


@dataclass(slots=True)
class RunningQueue:
    """An update queue that this instance handles, with the task that runs."""

    queue: UpdateQueue
    urgent: bool
    #: the loop's time when the current update was begun
    since: float
    task: asyncio.Task[None]
    #: whether the update was handled, and only its end is being stored, which may give the lease back
    settling: bool = False


class UpdateWorker:
    """Runs one asyncio task for each queue with waiting updates, and none for empty queues."""

    def __init__(
        self,
        ctx: EngineContext,
        store: UpdateStore,
        handlers: Mapping[str, Handler],
        answer_repeated: Callable[[NewUpdate], Awaitable[None]],
    ) -> None:
        self._ctx = ctx
        self._store = store
        #: the handler of each bot, by bot id; updates of other bots are not claimed
        self._handlers = handlers
        #: answers a repeated button press, whose sender still waits for an answer
        self._answer_repeated = answer_repeated
        #: takes updates that are worthless after seconds, by bot and kind: they are not stored, and may be lost
        self.volatile: dict[tuple[str, str], Callable[[NewUpdate], None]] = {}
        self._queues: dict[int, RunningQueue] = {}
        #: tasks that store the end of an update while a newer lease of their queue is already used
        self._settling: set[asyncio.Task[None]] = set()
        self._answers: set[asyncio.Task[None]] = set()
        #: set when a queue was finished while others waited for capacity, so that the next claim comes at once
        self.wake = asyncio.Event()
        #: whether queues may be due that did not fit the capacity
        self._claim_next = False
        #: whether this instance has a heartbeat, so that others take over what it leases if it crashes
        self._started = False
        self._stopping = False
        self._uncertain_commits = 0
        ctx.isolation.has_updates = self._has_isolated

    async def receive(self, update: NewUpdate) -> Received:
        """Store an update. When this returns, it may be acknowledged to the sender."""
        ctx = self._ctx
        if (take := self.volatile.get((update.bot, update.kind))) is not None:
            take(update)
            return Received.FRESH
        lease = ctx.lease if self._free_capacity(urgent=update.urgent) > 0 else None
        is_held = ctx.liveness.watch()
        received, queue = await self._store.receive_update(update, lease)
        ctx.observer.count("updates", 1, kind=update.kind, arrival=received)
        if received is not Received.KNOWN:
            ctx.observer.event(
                Event.UPDATE_RECEIVED,
                update.correlation_id,
                update=update.update_id,
                kind=update.kind,
                arrival=received,
            )
        if queue is not None:
            await self._begin(queue, is_held, urgent=update.urgent)
        elif received is Received.FRESH and lease is None:
            self._claim_next = True
        elif received is Received.REPEATED:
            task = ctx.loop.create_task(self._answer(update))
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)
        return received

    async def _answer(self, update: NewUpdate) -> None:
        try:
            await self._answer_repeated(update)
        except Exception as error:  # noqa: BLE001 - the first press was handled; this answer is a courtesy
            self._ctx.observer.event(
                Event.UPDATE_FAIL, update.correlation_id, update=update.update_id, error=repr(error)
            )

    # handling

    def open(self) -> None:
        """Lease queues from now on. Called after the instance's first heartbeat."""
        self._started = True

    def _free_capacity(self, *, urgent: bool) -> int:
        """Return how many more queues this instance may handle now."""
        running = sum(queue.urgent == urgent for queue in self._queues.values())
        return 0 if self._stopping or not self._started else (URGENT_CAPACITY if urgent else CAPACITY) - running

    async def _begin(self, queue: UpdateQueue, is_held: Callable[[], bool], *, urgent: bool) -> None:
        """Handle a queue that was leased when its update was stored; give it back if the worker stops."""
        if self._stopping:
            await self._store.release_update_queues(self._ctx.instance, list(self._queues) or [0])
        else:
            self.start(queue, is_held, urgent=urgent)

    def start(self, queue: UpdateQueue, is_held: Callable[[], bool], *, urgent: bool) -> None:
        """Handle the updates of a queue that is leased to this instance.

        `is_held` is what `Liveness.watch` returned before the queue was leased.
        """
        if (running := self._queues.get(queue.id)) is not None:
            if running.queue.token > queue.token:
                return
            self._leave(self._queues.pop(queue.id))
        loop = self._ctx.loop
        task = loop.create_task(self._process(queue, is_held))
        self._queues[queue.id] = RunningQueue(queue, urgent, loop.time(), task)
        task.add_done_callback(lambda done: self._finished(queue.id, done))

    def _leave(self, older: RunningQueue) -> None:
        """Cancel the work on an older lease of ours, unless only the report of its end is missing."""
        if older.settling:
            self._settling.add(older.task)
            older.task.add_done_callback(self._settling.discard)
        else:
            older.task.cancel()  # the lease has expired, so its writes change nothing

    def _finished(self, queue_id: int, task: asyncio.Task[None]) -> None:
        running = self._queues.get(queue_id)
        if running is not None and running.task is task:
            del self._queues[queue_id]
        if self._claim_next:  # queues may wait that did not fit the capacity
            self._claim_next = False
            self.wake.set()

    async def _process(self, queue: UpdateQueue, is_held: Callable[[], bool]) -> None:
        """Handle one update after the other while the queue is ours and not empty."""
        held: UpdateQueue | None = queue
        task = asyncio.current_task(self._ctx.loop)
        may_call.set(is_held)
        try:
            while held is not None and task not in self._settling:
                if held.update is None:
                    may_call.set(self._ctx.liveness.watch())
                    held = await self._store.next_update(held)
                    continue
                held = await self._handle(held, held.update)
        except Exception as error:  # noqa: BLE001 - the store failed; a failing handler was reported before
            # The rows are unchanged; when the lease expires, an instance claims the queue again.
            self._ctx.observer.event(Event.STAGE_ERROR, step="updates", queue=queue.id, error=repr(error))

    async def _handle(self, queue: UpdateQueue, update: Update) -> UpdateQueue | None:
        """Handle one update. Returns the queue with its next update while it is ours."""
        ctx, started = self._ctx, self._ctx.loop.time()
        if (running := self._queues.get(queue.id)) is not None:
            running.queue, running.since, running.settling = queue, started, False
        state, note, limit = UpdateState.DONE, "", None
        exhausted = update.attempts > TRANSIENT_TRIES or queue.crash_count >= ctx.rules.crashes_max
        try:
            if exhausted:
                raise RuntimeError("too many attempts or crashes, and the handler never finished")  # noqa: TRY301 - it fails like any other
            async with asyncio.timeout(HANDLER_SECONDS_MAX) as limit:
                await self._handlers[update.bot](update)
        except RecipientUnreachable as unreachable:
            note = unreachable.reason  # the user cannot be answered, so the update is done
        except Exception as error:  # noqa: BLE001 - one broken update must not stop the others
            note = repr(error)[:NOTE_MAX]
            tries = TRANSIENT_TRIES if isinstance(error, TRANSIENT) else TRIES
            if limit is not None and limit.expired():
                tries = TIMEOUT_TRIES
            if not exhausted and update.attempts < tries:
                await self._retry_later(queue, update, error, note)
                return None
            state = UpdateState.DEAD
        took = ctx.loop.time() - started
        may_call.set(ctx.liveness.watch())
        if running is not None:
            running.settling = True
        settled = await self._store.settle_update(queue, state, note, ctx.lease)
        if settled is None:
            ctx.observer.event(Event.LEASE_LOST, update.correlation_id, queue=queue.id, token=queue.token)
            return None
        self._report_settled(update, state, note, took)
        return settled.queue if settled.waiting and not self._stopping else None

    def _report_settled(self, update: Update, state: UpdateState, note: str, seconds: float) -> None:
        event = Event.UPDATE_DEAD if state is UpdateState.DEAD else Event.UPDATE_DONE
        self._ctx.observer.event(
            event,
            update.correlation_id,
            update=update.update_id,
            kind=update.kind,
            note=note or None,
            seconds=round(seconds, 4),
        )

    async def _retry_later(self, queue: UpdateQueue, update: Update, error: Exception, note: str) -> None:
        jitter = self._ctx.rng.random()
        after = (
            error.after if isinstance(error, ChannelBusy) else backoff(update.attempts - 1, jitter, base=0.5, most=30.0)
        )
        self._ctx.observer.event(
            Event.UPDATE_FAIL,
            update.correlation_id,
            update=update.update_id,
            attempt=update.attempts,
            after=round(after, 1),
            error=note,
        )
        await self._store.postpone_update(queue, after, note)

    # periodic tasks (see engine.py)

    async def claim(self) -> None:
        """Claim due queues of our bots: those stored here at once, those of other instances at the next period."""
        await self._release_unknown()
        for urgent in (True, False):
            limit, is_held = self._free_capacity(urgent=urgent), self._ctx.liveness.watch()
            queues = (
                await self._store.claim_update_queues(limit, self._ctx.lease, bots=list(self._handlers), urgent=urgent)
                if limit > 0
                else []
            )
            for queue in queues:
                self.start(queue, is_held, urgent=urgent)
            self._claim_next = self._claim_next or len(queues) >= limit

    async def claim_poison_queues(self) -> None:
        """Claim queues during whose update several instances crashed, one at a time."""
        for urgent in (True, False):
            async with self._ctx.isolation.claiming:
                if self._stopping or self._has_isolated() or self._ctx.isolation.has_job():
                    return
                is_held = self._ctx.liveness.watch()
                for queue in await self._store.claim_update_queues(
                    1, self._ctx.lease, bots=list(self._handlers), urgent=urgent, poison=True
                ):
                    self._ctx.observer.event(Event.POISON_SUSPECTED, queue=queue.id, crash_count=queue.crash_count)
                    self.start(queue, is_held, urgent=urgent)

    def _has_isolated(self) -> bool:
        return any(running.queue.crash_count >= ISOLATED_FROM for running in self._queues.values())

    async def renew_leases(self) -> None:
        """Renew the leases of queues whose handler takes long, and cancel the work on those that were lost."""
        old = self._ctx.loop.time() - self._ctx.rules.lease_seconds / 3
        renewed = [(running, running.queue) for running in self._queues.values() if running.since < old]
        if not renewed:
            return
        held = await self._store.renew_update_queues([queue for _, queue in renewed], self._ctx.lease)
        for running, queue in renewed:
            lost = queue.id not in held and not running.settling
            if lost and self._queues.get(queue.id) is running and running.queue is queue:
                self._ctx.observer.event(Event.LEASE_LOST, queue=queue.id, token=queue.token)
                running.task.cancel()

    async def _release_unknown(self) -> None:
        """Release leases that no local task uses, after a retried statement may have claimed queues we never saw."""
        uncertain_commits = self._ctx.store.uncertain_commits
        if uncertain_commits != self._uncertain_commits:
            await self._store.release_update_queues(self._ctx.instance, list(self._queues) or [0])
            self._uncertain_commits = uncertain_commits

    # stopping

    async def finish(self) -> None:
        """Claim nothing new, and finish or cancel what runs within `stop_seconds`.

        The caller must keep the renewal of leases running meanwhile.
        """
        self._stopping = True
        if tasks := self._tasks():
            await asyncio.wait(tasks, timeout=self._ctx.rules.stop_seconds)
        await cancel_and_wait(self._tasks())

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [*self._answers, *self._settling, *(running.task for running in self._queues.values())]
