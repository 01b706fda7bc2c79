"""Natural batching: calls that arrive while a statement is in flight share the next one. No timer, no added wait."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from genlock.domain.errors import StoreUnavailable

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
Params = dict[str, Any]


class Item(NamedTuple):
    """One call of a batched operation."""

    #: what it is about; no two calls of a batch share one, and they are made in its order
    key: Any
    #: what it shares with the whole batch
    shared: Params
    params: Params
    #: what the parameters were made from
    value: Any = None


class Batch(Generic[Asked, Answer]):
    """Merges concurrent calls of one operation. Each caller gets its own answer, or its own exception.

    `key` names what two items of one batch must not share, `alike` what they all must; others wait for the next batch.
    """

    def __init__(
        self,
        run: Callable[[list[Asked]], Awaitable[Sequence[Answer | Exception]]],
        *,
        key: Callable[[Asked], Hashable],
        alike: Callable[[Asked], object] = lambda _: None,
        limit: int = 250,
    ) -> None:
        self._run = run
        self._key = key
        self._alike = alike
        self._limit = limit
        self._queue: deque[tuple[Asked, asyncio.Future[Answer]]] = deque()
        self._drain: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, item: Asked) -> asyncio.Future[Answer]:
        if self._drain is None:
            self._loop = asyncio.get_running_loop()
            self._drain = self._loop.create_task(self._work())
        assert self._loop is not None
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._queue.append((item, future))
        return future

    async def _work(self) -> None:
        taken: list[tuple[Asked, asyncio.Future[Answer]]] = []
        try:
            while self._queue:
                taken = self._take()
                await self._answer(taken)
        except BaseException as error:
            # Only a cancelled loop comes here; nobody may be left waiting for an answer.
            for _, future in [*taken, *self._queue]:
                if not future.done():
                    future.set_exception(asyncio.CancelledError() if not isinstance(error, Exception) else error)
            self._queue.clear()
            raise
        finally:
            # No await between the last look into the queue and this line, so no call can be overlooked.
            self._drain = None

    def _take(self) -> list[tuple[Asked, asyncio.Future[Answer]]]:
        taken: list[tuple[Asked, asyncio.Future[Answer]]] = []
        later: list[tuple[Asked, asyncio.Future[Answer]]] = []
        seen: set[Hashable] = set()
        alike = self._alike(self._queue[0][0])
        while self._queue and len(taken) < self._limit:
            entry = self._queue.popleft()
            key = self._key(entry[0])
            if key in seen or self._alike(entry[0]) != alike:
                later.append(entry)
            else:
                seen.add(key)
                taken.append(entry)
        if later:
            self._queue.extendleft(reversed(later))
        return taken

    async def _answer(self, taken: list[tuple[Asked, asyncio.Future[Answer]]]) -> None:
        answers = await self._attempt([item for item, _ in taken])
        for (_, future), answer in zip(taken, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    async def _attempt(self, items: list[Asked]) -> Sequence[Answer | Exception]:
        try:
            return await self._run(items)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the callers' to see
            if len(items) == 1 or isinstance(error, StoreUnavailable):  # which says nothing about the items
                return [error] * len(items)
        # Something in the batch is bad. One by one, so that it fails alone.
        return [(await self._attempt([item]))[0] for item in items]
