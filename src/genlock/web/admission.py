"""Decides which request is handled next: at once if its secret was accepted lately, else a few at a time.

Answering a request that waits for nothing takes a fraction of a millisecond, but the event loop answers every
connection with such a request before it goes on with other work. So hundreds of unknown senders would delay each step
of a paid order.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from time import thread_time
from types import coroutine
from typing import Any, TypeVar

#: headers that carry a secret
SECRET_HEADERS = frozenset({b"authorization", b"cookie", b"x-telegram-bot-api-secret-token"})
KNOWN_SECRETS_MAX = 10_000
#: how many of them one account may have, and all senders without an account together: Telegram, providers, operators
SECRETS_PER_SENDER, UNNAMED_SECRETS_MAX = 50, 1_000
#: how much of one turn of the event loop requests of unknown senders may take together
TURN_SECONDS = 0.005
SLOTS_MIN, SLOTS_MAX = 12, 64
#: how long a request may wait for anything but its sender before its slot is given to others
SUSPENDED_SECONDS = 0.1
#: a moving average of the processor time of such a request: its first value, and the weight of the latest request
FIRST_COST_SECONDS, LAST_COST_WEIGHT = 0.0003, 0.1
T = TypeVar("T")


class KnownSecrets:
    """Fingerprints of secrets that endpoints accepted lately. They decide the order of requests, not access.

    A request may carry several headers of which an endpoint checks one, so one sender can have any number of
    fingerprints accepted. Each sender replaces only its own.
    """

    def __init__(self) -> None:
        #: the sender of each fingerprint, the one used longest ago first
        self._known: OrderedDict[int, str] = OrderedDict()
        self._of_sender: dict[str, OrderedDict[int, None]] = {}

    def find(self, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
        """Return the fingerprint of the secret that a request carries; None without a secret."""
        found = None
        for name, value in headers:
            if name in SECRET_HEADERS and (found is None or name == b"authorization"):
                # Python's hash of bytes is keyed with a random number per process: collisions cannot be prepared.
                found = hash(value)
        return found

    def __contains__(self, fingerprint: int | None) -> bool:
        return fingerprint in self._known

    def add(self, fingerprint: int, sender: str = "") -> None:
        """Remember a secret of a sender. Senders without an account share the empty name."""
        if self._known.get(fingerprint) != sender:
            self.discard(fingerprint)
        own = self._of_sender.setdefault(sender, OrderedDict())
        self._known[fingerprint], own[fingerprint] = sender, None
        self._known.move_to_end(fingerprint)
        own.move_to_end(fingerprint)
        if len(own) > (SECRETS_PER_SENDER if sender else UNNAMED_SECRETS_MAX):
            self.discard(next(iter(own)))
        elif len(self._known) > KNOWN_SECRETS_MAX:
            self.discard(next(iter(self._known)))

    def discard(self, fingerprint: int) -> None:
        if (sender := self._known.pop(fingerprint, None)) is not None:
            del self._of_sender[sender][fingerprint]
            if not self._of_sender[sender]:
                del self._of_sender[sender]


class UnknownSenders:
    """Slots for the requests of unknown senders: as many as fit into a turn of the event loop."""

    def __init__(self, clock: Callable[[], float] = thread_time) -> None:
        self.clock = clock
        #: requests without a slot, the next one first
        self._waiting: OrderedDict[asyncio.Future[bool], None] = OrderedDict()
        self._used = 0
        #: the expected seconds of processor time of a request
        self._cost = FIRST_COST_SECONDS
        #: requests with a slot that wait for anything but their sender, and since when, the longest first
        self._suspended: dict[Handling, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def _has_slot(self) -> bool:
        return self._used < max(SLOTS_MIN, min(SLOTS_MAX, round(TURN_SECONDS / self._cost)))

    async def take(self, places: set[asyncio.Future[bool]], *, is_begun: bool = False) -> bool:
        """Take a slot as soon as there is one; False if the sender is gone before.

        While the request waits, its place is in `places`: a result of False gives it up. Requests that have begun are
        first, so that those with large bodies end one after the other.
        """
        if self._has_slot:
            self._used += 1
            return True
        given: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[given] = None
        self._waiting.move_to_end(given, last=not is_begun)
        places.add(given)
        given.add_done_callback(self._leave_queue)
        self._watch()
        try:
            return await given
        except asyncio.CancelledError:
            if given.done() and not given.cancelled() and given.result():
                self.give_back()
            raise
        finally:
            places.discard(given)

    def _leave_queue(self, slot: asyncio.Future[bool]) -> None:
        self._waiting.pop(slot, None)

    def give_back(self) -> None:
        self._used -= 1
        while self._waiting and self._has_slot:
            given, _ = self._waiting.popitem(last=False)
            if not given.done():
                given.set_result(True)
                self._used += 1

    def suspend(self, handling: "Handling") -> None:
        """Note that a request with a slot waits: for the database, a file, another service."""
        self._suspended[handling] = asyncio.get_running_loop().time()

    def resume(self, handling: "Handling") -> None:
        self._suspended.pop(handling, None)

    def _watch(self) -> None:
        if self._timer is None and self._waiting:
            self._timer = asyncio.get_running_loop().call_later(SUSPENDED_SECONDS, self._withdraw_slots)

    def _withdraw_slots(self) -> None:
        """Give the slots of requests that have waited long to others: an outage must not stop all unknown senders."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        for handling, since in list(self._suspended.items()):
            if now - since < SUSPENDED_SECONDS:
                break
            del self._suspended[handling]
            handling.has_slot = False
            self.give_back()
        self._watch()

    def learn(self, seconds: float) -> None:
        """Count the time that a request took among those from which the number of slots is calculated."""
        self._cost += (min(seconds, TURN_SECONDS) - self._cost) * LAST_COST_WEIGHT


class Handling:
    """The handling of a request of an unknown sender. It has a slot while it does not wait for the sender."""

    def __init__(self, senders: UnknownSenders) -> None:
        self._senders = senders
        #: where its tasks wait for a slot
        self._places: set[asyncio.Future[bool]] = set()
        self._is_over = False
        self.has_slot = False
        #: whether it needs no slot: its sender is known now, or it has ended
        self._is_exempt = False
        self._spent = 0.0

    async def run(self, handle: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Handle the request to its end; not at all if its connection is closed before."""
        await self._enter(is_begun=False)
        if not self.has_slot:
            return
        try:
            await self._measure(handle())
        finally:
            self.exempt()
            self._senders.learn(self._spent)

    async def outside(self, awaited: Awaitable[T]) -> T:
        """Wait for the sender, who may take long, without a slot. Several tasks of a request may do so at a time."""
        self._leave()
        result = await awaited
        await self._enter(is_begun=True)
        return result

    def abandon(self) -> None:
        """Wait for no slot any more: the sender is gone. A request that has begun ends without one."""
        self._is_over = True
        for given in tuple(self._places):
            if not given.done():
                given.set_result(False)

    def exempt(self) -> None:
        """Go on without a slot."""
        self._is_exempt = True
        self._leave()

    async def _enter(self, *, is_begun: bool) -> None:
        if not self._needs_slot():
            return
        taken = await self._senders.take(self._places, is_begun=is_begun)
        if taken and not self._needs_slot():  # meanwhile another task of the request took one, or the request ended
            self._senders.give_back()
        elif taken:
            self.has_slot = True

    def _needs_slot(self) -> bool:
        return not self._is_exempt and not self.has_slot and not self._is_over

    def _leave(self) -> None:
        self._senders.resume(self)
        if self.has_slot:
            self.has_slot = False
            # In the next turn: else any number of requests that wait for nothing would be handled in this one.
            asyncio.get_running_loop().call_soon(self._senders.give_back)

    @coroutine
    def _measure(self, steps: Coroutine[Any, Any, None]) -> Generator[Any, Any, None]:
        """Run a coroutine and add up the time that its steps take, from one wait to the next."""
        error: BaseException | None = None
        while True:
            began = self._senders.clock()
            try:
                awaited = steps.send(None) if error is None else steps.throw(error)
            except StopIteration:
                return
            finally:
                if not self._is_exempt:
                    self._spent += self._senders.clock() - began
            try:
                yield from self._wait(awaited)
                error = None
            except BaseException as raised:  # noqa: BLE001 - the coroutine decides: it may be a cancellation
                error = raised

    def _wait(self, awaited: Any) -> Generator[Any, Any, None]:
        """Wait for what the coroutine awaits. Its slot may be given to others meanwhile; then it takes another one."""
        if self.has_slot:
            self._senders.suspend(self)
        yield awaited
        self._senders.resume(self)
        yield from self._enter(is_begun=True).__await__()
