"""Faults of the next calls, and gates that hold calls, of whatever an instance uses."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.changes import Changes


class Gate:
    """A point that calls pass through; shut, it holds them until it is opened."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._changes = Changes()
        self.waiting = 0
        self.arrived = 0

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def through(self) -> None:
        self.waiting += 1
        self.arrived += 1
        self._changes.note()
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1

    async def reached(self, calls: int) -> None:
        """Wait until `calls` calls have arrived in all."""
        await self._changes.until(lambda: self.arrived >= calls)

    async def holds(self, calls: int = 1) -> None:
        """Wait until `calls` calls are held."""
        await self._changes.until(lambda: self.waiting >= calls)


@dataclass
class Fault:
    error: BaseException
    #: whether the call has its effect before it fails: a lost answer
    done: bool = False


class Faults:
    """The faults of the next calls, by operation."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Fault | None]] = {}

    def add(self, operation: str, *errors: BaseException | None, done: bool = False) -> None:
        """Let the next calls fail, in this order; None lets one succeed."""
        faults = (None if error is None else Fault(error, done) for error in errors)
        self._queues.setdefault(operation, deque()).extend(faults)

    def before(self, operation: str) -> Fault | None:
        """The next fault: raised if the call is to have no effect, else returned for `after`."""
        queue = self._queues.get(operation)
        fault = queue.popleft() if queue else None
        if fault and not fault.done:
            raise fault.error
        return fault


def after(fault: Fault | None) -> None:
    if fault:
        raise fault.error


class FaultProxy:
    """Wraps the store, the provider or the channel of one instance: its calls can fail or be held."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self.faults = Faults()
        self.gates: dict[str, Gate] = {}
        #: how many times each operation has returned
        self.answered: Counter[str] = Counter()
        self._changes = Changes()
        #: called before and after every call; raising here crashes the caller
        self.tap: Callable[[str, str], None] | None = None

    async def until(self, operation: str, times: int = 1) -> None:
        """Wait until the operation has returned `times` more times."""
        times += self.answered[operation]
        await self._changes.until(lambda: self.answered[operation] >= times)

    def gate(self, operation: str) -> Gate:
        return self.gates.setdefault(operation, Gate())

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **named: Any) -> Any:
            if self.tap:
                self.tap("before", name)
            if name in self.gates:
                await self.gates[name].through()
            fault = self.faults.before(name)
            answer = await found(*args, **named)
            after(fault)
            self.answered[name] += 1
            self._changes.note()
            if self.tap:
                self.tap("after", name)
            return answer

        return call
