"""Telegram's rate limits: about 1 message per second and chat, 20 per minute and group, 30 per second in total.

Telegram publishes no more than that, and that it tolerates short bursts. Its developers add that bots which only answer
their users hardly reach the limits; so each action of a user in a private chat allows one more call there.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from genlock.sandbox.telegram.api_call import ApiError

LIMITED_PREFIXES = ("send", "edit", "forward", "copy")
#: uploads of the same size above this many bytes are queued; one that would wait longer gets a 429
QUEUED_UPLOAD_BYTES = 100_000
QUEUE_SECONDS_MAX = 5.0
QUEUE_FULL_SECONDS = 60
#: calls that actions of the user allow at most, and for how long
ANSWERS_MAX = 20
ANSWER_SECONDS = 15.0
#: a call that arrives within this time after a block of the whole bot began may have been sent before
IN_FLIGHT_SECONDS = 1.0
WEBHOOK_SECONDS = 1.0
UNLIMITED_METHODS = {"sendchataction", "sendmessagedraft"}


@dataclass(frozen=True, kw_only=True)
class Limits:
    chat_per_second: float = 1.0
    chat_burst: int = 3
    group_per_minute: int = 20
    bot_per_second: float = 30.0
    #: minimum `retry_after`
    penalty_seconds: int = 3


@dataclass(kw_only=True)
class Bucket:
    rate: float
    size: float
    left: float
    at: float

    def take(self, now: float, cost: float) -> float:
        """Take tokens and return 0, or return the seconds until there are enough."""
        self.left = min(self.size, self.left + (now - self.at) * self.rate)
        self.at = now
        if self.left >= min(cost, self.size):
            self.left -= cost
            return 0.0
        return (min(cost, self.size) - self.left) / self.rate


@dataclass(kw_only=True)
class Block:
    """A time in which calls are refused."""

    until: float
    seconds: float
    #: chats whose calls were refused
    told: set[int] = field(default_factory=set)

    def may_be_unknown(self, chat: int, now: float) -> bool:
        """Whether a call was perhaps on its way when the block began: the first one of its chat, shortly after."""
        return chat not in self.told and now < self.until - self.seconds + IN_FLIGHT_SECONDS


@dataclass(kw_only=True)
class Limiter:
    limits: Limits
    clock: Callable[[], float]
    on: bool = True
    refused: int = 0
    _buckets: dict[str, Bucket] = field(default_factory=dict)
    _webhook_set_at: float = -math.inf
    #: by private chat: when its user acted, for each action that was not answered yet
    _actions: dict[int, deque[float]] = field(default_factory=dict)
    #: by chat id, 0 for the whole bot
    _blocks: dict[int, Block] = field(default_factory=dict)
    #: by size: when the last upload of exactly this size may begin
    _uploads: dict[int, float] = field(default_factory=dict)

    def admit(self, method: str, chat: int | None, *, cost: int = 1) -> None:
        """Raise 429 if a limit is exceeded. Retrying too early doubles the waiting time."""
        name = method.lower()
        if not self.on or chat is None or not name.startswith(LIMITED_PREFIXES) or name in UNLIMITED_METHODS:
            return
        now = self.clock()
        for place in (chat, 0):
            block = self._blocks.get(place)
            if block is None or now >= block.until:
                continue
            if block.may_be_unknown(chat, now):
                self._refuse(chat, block, block.until - now)
            self._begin_block(place, chat, now, block.seconds * 2)
        for place, bucket in self._of(chat, now):
            if place == chat and cost == 1 and self._answers(chat, now):
                continue
            if wait := bucket.take(now, cost):
                self._begin_block(place, chat, now, max(wait, self.limits.penalty_seconds))

    def note_action(self, chat: int) -> None:
        """Allow one more call to a private chat: its user wrote or tapped."""
        if chat > 0:
            self._actions.setdefault(chat, deque(maxlen=ANSWERS_MAX)).append(self.clock())

    def _answers(self, chat: int, now: float) -> bool:
        """Whether the call answers a recent action of the user."""
        actions = self._actions.get(chat)
        while actions:
            if actions.popleft() > now - ANSWER_SECONDS:
                return True
        return False

    def upload_wait(self, size: int) -> float:
        """Return the seconds that an upload waits: the server queues large uploads of equal size. Raises 429."""
        if not self.on or size <= QUEUED_UPLOAD_BYTES:
            return 0.0
        now, interval = self.clock(), min(max(size * 1e-7, 0.2), 0.9)
        last = self._uploads.get(size, 0.0)
        if last > now + QUEUE_SECONDS_MAX:
            self.refused += 1
            raise too_many(QUEUE_FULL_SECONDS)
        self._uploads[size] = max(last + interval, now - 1.0)
        return max(0.0, self._uploads[size] - now)

    def admit_webhook(self) -> None:
        """Raise 429 for a second setWebhook within a second."""
        now, last = self.clock(), self._webhook_set_at
        if self.on and now < last + WEBHOOK_SECONDS:
            self.refused += 1
            raise too_many(WEBHOOK_SECONDS)
        self._webhook_set_at = now

    def block_for(self, chat: int | None, seconds: float) -> None:
        """Refuse all calls for `seconds`."""
        told = {chat} if chat else set()
        self._blocks[chat or 0] = Block(until=self.clock() + seconds, seconds=seconds, told=told)

    def unblock(self) -> None:
        """End every block at once."""
        self._blocks.clear()

    def _begin_block(self, place: int, chat: int, now: float, seconds: float) -> NoReturn:
        self._blocks[place] = Block(until=now + seconds, seconds=seconds)
        self._refuse(chat, self._blocks[place], seconds)

    def _refuse(self, chat: int, block: Block, seconds: float) -> NoReturn:
        self.refused += 1
        block.told.add(chat)
        raise too_many(seconds)

    def _of(self, chat: int, now: float) -> list[tuple[int, Bucket]]:
        limits = self.limits
        found = [(chat, self._bucket(f"chat {chat}", limits.chat_per_second, limits.chat_burst, now))]
        if chat < 0:
            minute = self._bucket(f"group {chat}", limits.group_per_minute / 60, limits.group_per_minute, now)
            found.append((chat, minute))
        return [*found, (0, self._bucket("bot", limits.bot_per_second, limits.bot_per_second, now))]

    def _bucket(self, name: str, rate: float, size: float, now: float) -> Bucket:
        return self._buckets.setdefault(name, Bucket(rate=rate, size=size, left=size, at=now))


def too_many(seconds: float) -> ApiError:
    whole = max(1, math.ceil(seconds))
    return ApiError(429, f"Too Many Requests: retry after {whole}", retry_after=whole)
