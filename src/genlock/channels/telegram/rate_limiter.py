"""Telegram's rate limits, shared by all instances: which call may go next, and which chats must not be called."""

import asyncio
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from math import inf

from genlock.domain.errors import ChannelBusy, StoreError
from genlock.ports import LimitStore, SharedLimit


class Priority(StrEnum):
    """Which call goes first when calls must wait."""

    RESULT = "result"  #: deliveries, payments, answers to queries
    SCREEN = "screen"  #: the bot's own screens, which answer what the user wrote or tapped
    PROGRESS = "progress"  #: never waits: it takes a permit that no other call wants, or fails


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """One call every `interval` seconds; after a pause, up to `burst` at once."""

    interval: float
    burst: int


#: Telegram allows about 30 calls a second, 1 a second to a chat with short bursts, 20 a minute to a group. A permit
#: may be used up to a second after it was taken, which can make a burst one call larger than stated here.
BOT = Rate(interval=0.035, burst=1)
CHAT = Rate(interval=1.02, burst=2)
#: screens of a private chat have permits of their own: Telegram tolerates short bursts over one call a second, and bots
#: that only answer their users hardly reach its limits. A user who taps quickly for some seconds does not wait.
SCREENS = Rate(interval=1.02, burst=10)
GROUP = Rate(interval=3.25, burst=2)
#: permits granted at once; the other calls stay in the queue, where a more urgent one can overtake them
BATCH = 8
BOT_HORIZON_SECONDS = 2.0
WAIT_SECONDS_MAX = {Priority.RESULT: 30.0, Priority.SCREEN: 15.0}
#: 429 answers from this many private chats within this time mean that the whole bot is too fast
RATE_LIMITED_CHATS = 3
RATE_LIMITED_SECONDS = 10.0
_RANK = {Priority.RESULT: 0, Priority.SCREEN: 1}


@dataclass(order=True, slots=True)
class _Waiter:
    rank: int
    number: int
    chat: int = field(compare=False)
    rate: Rate = field(compare=False)
    #: the limit that it takes a permit of, beside that of the bot
    key: str = field(compare=False)
    until: float = field(compare=False)
    future: asyncio.Future[None] = field(compare=False)


class TelegramRateLimiter:
    """Grants permits to the calls of one instance. A call that would wait too long raises ChannelBusy."""

    def __init__(self, limits: LimitStore, bot: str) -> None:
        self._limits = limits
        self._bot = bot
        self._waiting: list[_Waiter] = []
        self._numbers = count()
        #: until when a limit has no permit, as far as this instance knows; and the same for the whole bot
        self._closed: dict[str, float] = {}
        self._bot_closed = 0.0
        #: chats (None: the bot) stopped by a 429: since when and until when
        self._stopped: dict[int | None, tuple[float, float]] = {}
        self._server: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def acquire(self, chat: int, priority: Priority) -> None:
        """Wait for a permit for one call to a chat. Raises ChannelBusy if that would take too long."""
        if priority is Priority.PROGRESS:
            await self._acquire_free(chat)
            return
        loop = asyncio.get_running_loop()
        until = loop.time() + WAIT_SECONDS_MAX[priority]
        rate = _rate(chat, priority)
        waiter = _Waiter(
            _RANK[priority], next(self._numbers), chat, rate, self._key(chat, rate), until, loop.create_future()
        )
        insort(self._waiting, waiter)
        self._changed.set()
        if self._server is None:
            self._server = loop.create_task(self._serve())
        await waiter.future

    async def stop(self, chat: int | None, seconds: float) -> None:
        """Stop all calls of all instances to a chat (None: to Telegram) for some seconds."""
        now = asyncio.get_running_loop().time()
        recent = now - RATE_LIMITED_SECONDS
        self._stopped = {key: (at, until) for key, (at, until) in self._stopped.items() if at > recent or until > now}
        self._stopped[chat] = (now, now + seconds)
        if chat is not None:
            for rate in (GROUP,) if chat < 0 else (CHAT, SCREENS):
                self._close(self._key(chat, rate), now + seconds)
                await self._limits.block_limit(self._key(chat, rate), seconds)
        pause = seconds if chat is None else self._pause_of_bot(recent)
        if pause:
            self._bot_closed = max(self._bot_closed, now + pause)
            self._stopped[None] = (now, self._bot_closed)
            await self._limits.block_limit(self._bot_key, pause)

    def _pause_of_bot(self, since: float) -> float:
        """Return for how long 429 answers from several chats stop the whole bot; 0.0 if they do not.

        Groups do not count, since each has a low limit of its own. One chat may have to wait longer than the others.
        """
        stops = [(at, until) for chat, (at, until) in self._stopped.items() if chat is not None and chat > 0]
        pauses = [until - at for at, until in stops if at > since]
        return min(pauses) if len(pauses) >= RATE_LIMITED_CHATS else 0.0

    # a call that must not wait

    async def _acquire_free(self, chat: int) -> None:
        now = asyncio.get_running_loop().time()
        rate = _rate(chat, Priority.PROGRESS)
        key = self._key(chat, rate)
        closed = max(self._bot_closed, self._closed.get(key, 0.0))
        if self._waiting or closed > now:
            raise ChannelBusy(max(closed - now, BOT.interval), "other calls wait for permits")
        try:
            # One permit stays free for a result that may come in the next moment.
            [wait] = await self._limits.take_permits([key], rate.interval, rate.burst, rate.interval * 0.9)
            free = wait <= 0.0 and await self._limits.reserve_permits(self._bot_key, 1, BOT.interval, BOT.burst, 0.0)
        except StoreError as error:
            raise ChannelBusy(1.0, f"the rate limits cannot be read: {error}") from error
        if not free:
            raise ChannelBusy(max(wait, BOT.interval), "no permit is free")

    # calls that wait

    async def _serve(self) -> None:
        """Grant permits as long as a call waits for one."""
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                self._changed.clear()
                self._refuse_late(loop.time())
                chosen = list(self._choose(loop.time()))
                if chosen:
                    await self._grant_all(chosen)
                elif self._waiting:
                    await self._pause(loop.time())
        except StoreError as error:
            self._refuse(list(self._waiting), ChannelBusy(1.0, f"the rate limits cannot be read: {error}"))
        finally:
            # There is no await between the last check of the queue and this line, so no new call is missed.
            self._server = None
            self._closed = {key: until for key, until in self._closed.items() if until > loop.time()}
            if self._waiting and not loop.is_closed():
                self._refuse(list(self._waiting), ChannelBusy(1.0, "the rate limiter stopped"))

    def _refuse_late(self, now: float) -> None:
        for waiter in list(self._waiting):
            free = max(self._bot_closed, self._closed.get(waiter.key, 0.0))
            if waiter.future.done():
                self._waiting.remove(waiter)
            elif free > waiter.until:
                self._refuse([waiter], ChannelBusy(free - now, "Telegram has limited this chat"))
            elif waiter.until < now:
                self._refuse([waiter], ChannelBusy(1.0 + len(self._waiting) * BOT.interval, "too many calls wait"))

    def _refuse(self, waiters: Iterable[_Waiter], error: ChannelBusy) -> None:
        for waiter in waiters:
            self._waiting.remove(waiter)
            if not waiter.future.done():
                waiter.future.set_exception(error)

    def _choose(self, now: float) -> Iterable[_Waiter]:
        """Yield the first waiting calls that may go now, one per limit."""
        if self._bot_closed > now:
            return
        keys: set[str] = set()
        for waiter in self._waiting:
            if len(keys) == BATCH:
                return
            if waiter.key not in keys and self._closed.get(waiter.key, 0.0) <= now:
                keys.add(waiter.key)
                yield waiter

    async def _grant_all(self, chosen: list[_Waiter]) -> None:
        loop = asyncio.get_running_loop()
        last = max([await self._grant_same_rate(rate, chosen) for rate in (CHAT, SCREENS, GROUP)])
        if last > loop.time() + BOT.interval and self._bot_closed <= loop.time():
            # Reserve no further ahead: a more urgent call may come.
            await asyncio.sleep(last - loop.time() - BOT.interval)

    async def _grant_same_rate(self, rate: Rate, chosen: list[_Waiter]) -> float:
        """Grant the chosen calls with this rate whose chat and bot have a permit. Returns when the last one may go."""
        loop = asyncio.get_running_loop()
        same_rate = [waiter for waiter in chosen if waiter.rate is rate]
        if not same_rate:
            return 0.0
        keys = [waiter.key for waiter in same_rate]
        waits, bot_waits = await self._limits.take_call_permits(keys, rate.interval, rate.burst, shared=self._bot_limit)
        now, permits = loop.time(), iter(bot_waits)
        for waiter, wait in zip(same_rate, waits, strict=True):
            if wait is None:
                self._bot_closed = max(self._bot_closed, now + BOT_HORIZON_SECONDS / 2)
            elif wait > 0.0:
                self._close(waiter.key, now + wait)
            else:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
                loop.call_at(now + next(permits), self._grant, waiter)
        return now + bot_waits[-1] if bot_waits else 0.0

    def _grant(self, waiter: _Waiter) -> None:
        """Let the call go, unless a 429 has stopped its chat or the bot meanwhile."""
        now = asyncio.get_running_loop().time()
        if waiter.future.done():
            return
        free = max(self._stopped.get(chat, (0.0, 0.0))[1] for chat in (waiter.chat, None))
        if free > now:
            waiter.future.set_exception(ChannelBusy(free - now, "Telegram has limited this chat"))
        else:
            waiter.future.set_result(None)

    async def _pause(self, now: float) -> None:
        """Sleep until a new call arrives or a chat may be called again."""
        free = min((self._closed.get(waiter.key, 0.0) for waiter in self._waiting), default=inf)
        deadline = min(waiter.until for waiter in self._waiting)
        seconds = min(max(free, self._bot_closed), deadline) - now
        try:
            async with asyncio.timeout(max(0.001, seconds)):
                await self._changed.wait()
        except TimeoutError:
            return

    def _close(self, key: str, until: float) -> None:
        self._closed[key] = max(self._closed.get(key, 0.0), until)

    @property
    def _bot_limit(self) -> SharedLimit:
        return SharedLimit(key=self._bot_key, interval=BOT.interval, burst=BOT.burst, horizon=BOT_HORIZON_SECONDS)

    @property
    def _bot_key(self) -> str:
        return f"telegram:{self._bot}"

    def _key(self, chat: int, rate: Rate) -> str:
        key = f"telegram:{self._bot}:{chat}"
        return f"{key}:screens" if rate is SCREENS else key


def _rate(chat: int, priority: Priority) -> Rate:
    if chat < 0:
        return GROUP
    return SCREENS if priority is Priority.SCREEN else CHAT
