"""Natural batching: calls that arrive while a statement is running share the next one. There is no timer."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from genlock.domain.errors import StoreUnavailable

Call = TypeVar("Call")
Answer = TypeVar("Answer")
Value = TypeVar("Value")
Params = dict[str, Any]


class Item(NamedTuple, Generic[Value]):
    """One call of a batched statement."""

    #: the row it is about: no two items of a batch share a key, and the statement gets them in the order of their keys
    key: Any
    #: parameters that all items of a batch have in common
    shared: Params
    params: Params
    #: what the parameters were made from
    value: Value


class Batch(Generic[Call, Answer]):
    """Merges concurrent calls of one operation. Each caller gets its own answer, or its own exception.

    Two calls with the same `key`, or of a different `group`, never run in the same batch. Where `joins` is set, calls
    with the same key are reads that become one: a read joins only one that has not begun, so that its answer is never
    older than itself.
    """

    def __init__(
        self,
        run: Callable[[list[Call]], Awaitable[Sequence[Answer | Exception]]],
        *,
        key: Callable[[Call], Hashable],
        group: Callable[[Call], object] = lambda _: None,
        limit: int = 250,
        joins: bool = False,
    ) -> None:
        self._run = run
        self._key = key
        self._group = group
        self._limit = limit
        #: the callers of each call
        self._queue: deque[tuple[Call, list[asyncio.Future[Answer]]]] = deque()
        #: the callers of each read that has not begun, by key; None: calls are not joined
        self._joinable: dict[Hashable, list[asyncio.Future[Answer]]] | None = {} if joins else None
        self._drain: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, call: Call) -> asyncio.Future[Answer]:
        if self._drain is None:
            self._loop = asyncio.get_running_loop()
            self._drain = self._loop.create_task(self._work())
        assert self._loop is not None
        future: asyncio.Future[Answer] = self._loop.create_future()
        if self._joinable is None:
            self._queue.append((call, [future]))
        elif callers := self._joinable.get(key := self._key(call)):
            callers.append(future)
        else:
            self._joinable[key] = callers = [future]
            self._queue.append((call, callers))
        return future

    async def _work(self) -> None:
        taken: list[tuple[Call, list[asyncio.Future[Answer]]]] = []
        try:
            while self._queue:
                taken = self._take()
                await self._answer(taken)
        except BaseException as error:
            # Only a cancelled event loop leads here; every caller must still get an answer.
            for future in (future for _, futures in [*taken, *self._queue] for future in futures):
                if not future.done():
                    future.set_exception(asyncio.CancelledError() if not isinstance(error, Exception) else error)
            self._queue.clear()
            if self._joinable is not None:
                self._joinable.clear()
            raise
        finally:
            # There is no await between the last look into the queue and this line, so no call can be missed.
            self._drain = None

    def _take(self) -> list[tuple[Call, list[asyncio.Future[Answer]]]]:
        taken: list[tuple[Call, list[asyncio.Future[Answer]]]] = []
        later: list[tuple[Call, list[asyncio.Future[Answer]]]] = []
        seen: set[Hashable] = set()
        group = self._group(self._queue[0][0])
        while self._queue and len(taken) < self._limit:
            entry = self._queue.popleft()
            key = self._key(entry[0])
            if key in seen or self._group(entry[0]) != group:
                later.append(entry)
            else:
                seen.add(key)
                taken.append(entry)
                if self._joinable is not None:
                    del self._joinable[key]
        if later:
            self._queue.extendleft(reversed(later))
        return taken

    async def _answer(self, taken: list[tuple[Call, list[asyncio.Future[Answer]]]]) -> None:
        answers = await self._attempt([call for call, _ in taken])
        for (_, callers), answer in zip(taken, answers, strict=True):
            for future in callers:
                if future.done():
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    async def _attempt(self, calls: list[Call]) -> Sequence[Answer | Exception]:
        try:
            return await self._run(calls)
        except Exception as error:  # noqa: BLE001 - the callers get it
            if len(calls) == 1 or isinstance(error, StoreUnavailable):  # which says nothing about the calls
                return [error] * len(calls)
        # One of the calls is invalid. Run them one by one, so that only that one fails.
        return [(await self._attempt([call]))[0] for call in calls]
