"""Telegram's limits, kept by all instances together: who may call next, and which chat must be left alone."""

import asyncio
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from math import inf

from genlock.domain.errors import ChannelBusy, StoreError
from genlock.ports import LimitStore


class Priority(StrEnum):
    """Who goes first when not all can."""

    RESULT = "result"  #: deliveries, payments, answers
    SCREEN = "screen"  #: the bot's own screens
    PROGRESS = "progress"  #: never waits: it takes a turn that nobody else wants, or none


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """One call every `interval` seconds; after a pause, up to `burst` at once."""

    interval: float
    burst: int


#: Telegram allows about 30 calls a second, 1 a second to a chat with short bursts, 20 a minute to a group. A turn may
#: be used up to a second after it was taken, which can make a burst one larger than it says here.
BOT = Rate(interval=0.035, burst=1)
CHAT = Rate(interval=1.02, burst=2)
GROUP = Rate(interval=3.25, burst=2)
#: how many calls are given their turn at once; the others stay where a more urgent one can overtake them
BATCH = 8
BOT_HORIZON_SECONDS = 2.0
PATIENCE_SECONDS = {Priority.RESULT: 30.0, Priority.SCREEN: 15.0}
#: so many chats flooded within so many seconds: it is the bot that is too fast
FLOODED_CHATS = 3
FLOODED_SECONDS = 10.0
_RANK = {Priority.RESULT: 0, Priority.SCREEN: 1}


@dataclass(order=True, slots=True)
class _Waiter:
    rank: int
    number: int
    chat: int = field(compare=False)
    until: float = field(compare=False)
    future: asyncio.Future[None] = field(compare=False)


class TelegramRateLimiter:
    """The turns of one instance. Whoever cannot have one in time is told when to come back."""

    def __init__(self, limits: LimitStore, bot: str) -> None:
        self._limits = limits
        self._bot = bot
        self._waiting: list[_Waiter] = []
        self._numbers = count()
        #: until when a chat has no turn, as far as we know; and the same for the whole bot
        self._closed: dict[int, float] = {}
        self._bot_closed = 0.0
        #: chats, and None for the bot, that Telegram wants to be left alone: since when and until when
        self._stopped: dict[int | None, tuple[float, float]] = {}
        self._server: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def take(self, chat: int, priority: Priority) -> None:
        """Wait for leave to make one call to a chat. Raises ChannelBusy if that is too far away."""
        if priority is Priority.PROGRESS:
            await self._take_free(chat)
            return
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_SECONDS[priority]
        waiter = _Waiter(_RANK[priority], next(self._numbers), chat, until, loop.create_future())
        insort(self._waiting, waiter)
        self._changed.set()
        if self._server is None:
            self._server = loop.create_task(self._serve())
        await waiter.future

    async def stop(self, chat: int | None, seconds: float) -> None:
        """Nobody calls this chat (or, without one, Telegram) for so long."""
        now = asyncio.get_running_loop().time()
        young = now - FLOODED_SECONDS
        self._stopped = {one: (at, until) for one, (at, until) in self._stopped.items() if at > young or until > now}
        self._stopped[chat] = (now, now + seconds)
        if chat is not None:
            self._close(chat, now + seconds)
            await self._limits.block_limit(self._key(chat), seconds)
        if chat is None or sum(at > young for at, _ in self._stopped.values()) >= FLOODED_CHATS:
            self._stopped[None] = (now, now + seconds)
            self._bot_closed = max(self._bot_closed, now + seconds)
            await self._limits.block_limit(self._bot_key, seconds)

    # one call that may not wait

    async def _take_free(self, chat: int) -> None:
        now = asyncio.get_running_loop().time()
        closed = max(self._bot_closed, self._closed.get(chat, 0.0))
        if self._waiting or closed > now:
            raise ChannelBusy(max(closed - now, BOT.interval), "others wait for their turn")
        rate = _rate(chat)
        try:
            # One turn stays free, for the result that may come in the next moment.
            [wait] = await self._limits.take_permits([self._key(chat)], rate.interval, rate.burst, rate.interval * 0.9)
            free = wait <= 0.0 and await self._limits.reserve_permits(self._bot_key, 1, BOT.interval, BOT.burst, 0.0)
        except StoreError as error:
            raise ChannelBusy(1.0, f"the limits cannot be read: {error}") from error
        if not free:
            raise ChannelBusy(max(wait, BOT.interval), "no turn is free")

    # those that wait

    async def _serve(self) -> None:
        """Give out turns as long as anybody waits for one."""
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                self._changed.clear()
                self._refuse_hopeless(loop.time())
                chosen = list(self._choose(loop.time()))
                if chosen:
                    await self._give(chosen)
                elif self._waiting:
                    await self._pause(loop.time())
        except StoreError as error:
            self._refuse(list(self._waiting), ChannelBusy(1.0, f"the limits cannot be read: {error}"))
        finally:
            # No await between the last look at those who wait and this line, so nobody can be overlooked.
            self._server = None
            self._closed = {chat: until for chat, until in self._closed.items() if until > loop.time()}
            if self._waiting and not loop.is_closed():
                self._refuse(list(self._waiting), ChannelBusy(1.0, "the limits could not be kept"))

    def _refuse_hopeless(self, now: float) -> None:
        for waiter in list(self._waiting):
            free = max(self._bot_closed, self._closed.get(waiter.chat, 0.0))
            if waiter.future.done():
                self._waiting.remove(waiter)
            elif free > waiter.until:
                self._refuse([waiter], ChannelBusy(free - now, "the chat must be left alone"))
            elif waiter.until < now:
                self._refuse([waiter], ChannelBusy(1.0 + len(self._waiting) * BOT.interval, "too many calls wait"))

    def _refuse(self, waiters: Iterable[_Waiter], error: ChannelBusy) -> None:
        for waiter in waiters:
            self._waiting.remove(waiter)
            if not waiter.future.done():
                waiter.future.set_exception(error)

    def _choose(self, now: float) -> Iterable[_Waiter]:
        """The first few that may go now, one of each chat."""
        if self._bot_closed > now:
            return
        chats: set[int] = set()
        for waiter in self._waiting:
            if len(chats) == BATCH:
                return
            if waiter.chat not in chats and self._closed.get(waiter.chat, 0.0) <= now:
                chats.add(waiter.chat)
                yield waiter

    async def _give(self, chosen: list[_Waiter]) -> None:
        loop = asyncio.get_running_loop()
        free = [waiter for rate in (CHAT, GROUP) for waiter in await self._take_chats(rate, chosen)]
        if not free:
            return
        waits = await self._limits.reserve_permits(
            self._bot_key, len(free), BOT.interval, BOT.burst, BOT_HORIZON_SECONDS
        )
        now = loop.time()
        for waiter, wait in zip(free, waits, strict=False):
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            loop.call_at(now + wait, self._grant, waiter)
        if len(waits) < len(free):
            self._bot_closed = max(self._bot_closed, now + BOT_HORIZON_SECONDS / 2)
        elif waits[-1] > BOT.interval:
            # No further ahead than this: somebody more urgent may come.
            await asyncio.sleep(waits[-1] - BOT.interval)

    async def _take_chats(self, rate: Rate, chosen: list[_Waiter]) -> list[_Waiter]:
        """Those of the chosen with this rate whose chat has a turn for them now."""
        mine = [waiter for waiter in chosen if _rate(waiter.chat) is rate]
        if not mine:
            return []
        keys = [self._key(waiter.chat) for waiter in mine]
        waits = await self._limits.take_permits(keys, rate.interval, rate.burst, 0.0)
        now = asyncio.get_running_loop().time()
        for waiter, wait in zip(mine, waits, strict=True):
            if wait > 0.0:
                self._close(waiter.chat, now + wait)
        return [waiter for waiter, wait in zip(mine, waits, strict=True) if wait <= 0.0]

    def _grant(self, waiter: _Waiter) -> None:
        """Its time has come, unless Telegram has asked for quiet since."""
        now = asyncio.get_running_loop().time()
        if waiter.future.done():
            return
        free = max(self._stopped.get(place, (0.0, 0.0))[1] for place in (waiter.chat, None))
        if free > now:
            waiter.future.set_exception(ChannelBusy(free - now, "the chat must be left alone"))
        else:
            waiter.future.set_result(None)

    async def _pause(self, now: float) -> None:
        """Until somebody new comes, or a chat may be called again."""
        free = min((self._closed.get(waiter.chat, 0.0) for waiter in self._waiting), default=inf)
        patience = min(waiter.until for waiter in self._waiting)
        seconds = min(max(free, self._bot_closed), patience) - now
        try:
            async with asyncio.timeout(max(0.001, seconds)):
                await self._changed.wait()
        except TimeoutError:
            return

    def _close(self, chat: int, until: float) -> None:
        self._closed[chat] = max(self._closed.get(chat, 0.0), until)

    @property
    def _bot_key(self) -> str:
        return f"telegram:{self._bot}"

    def _key(self, chat: int) -> str:
        return f"telegram:{self._bot}:{chat}"


def _rate(chat: int) -> Rate:
    return GROUP if chat < 0 else CHAT
