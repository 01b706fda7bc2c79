"""An instance that handles updates as a test says, and updates for it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

from genlock.domain.update import NewUpdate, Update
from genlock.engine.context import EngineContext, EngineRules
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.engine.updates import UpdateWorker
from genlock.stores.database import SqlDatabase
from tests.engine.faults import FaultProxy
from tests.engine.recorder import Recorder

numbers = count(1)


def message(user: int, text: str = "", number: int | None = None) -> NewUpdate:
    content = {"from": {"id": user}, "text": text}
    return new_update(user, "message", content, number)


def button(user: int, data: str, number: int | None = None) -> NewUpdate:
    content = {"from": {"id": user}, "data": data}
    return new_update(user, "callback_query", content, number, dedup_key=f"{user}/7/{data}")


def payment(user: int) -> NewUpdate:
    return new_update(user, "pre_checkout_query", {"from": {"id": user}}, urgent=True)


def new_update(
    user: int,
    kind: str,
    content: dict[str, Any],
    number: int | None = None,
    *,
    urgent: bool = False,
    dedup_key: str | None = None,
    bot: str = "bot",
) -> NewUpdate:
    number = number or next(numbers)
    return NewUpdate(
        bot=bot,
        update_id=number,
        ordering_key=f"{user}/{kind}" if urgent else str(user),
        kind=kind,
        urgent=urgent,
        dedup_key=dedup_key,
        body=json.dumps({"update_id": number, kind: content}),
    )


@dataclass
class Instance:
    """An instance whose handler is the test's."""

    store: SqlDatabase
    recorder: Recorder
    engine: Engine
    updates: UpdateWorker
    seen: list[int] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    inside: dict[str, int] = field(default_factory=dict)
    act: Callable[[Update], Awaitable[None]] | None = None

    async def handle(self, update: Update) -> None:
        sender = f"{json.loads(update.body)[update.kind]['from']} {update.kind == 'pre_checkout_query'}"
        assert sender not in self.inside, "two at a time"
        self.inside[sender] = update.update_id
        self.attempts.append(update.attempts)
        try:
            await asyncio.sleep(0)
            self.recorder.changes.note()
            if self.act:
                await self.act(update)
            self.seen.append(update.update_id)
        finally:
            del self.inside[sender]
            self.recorder.changes.note()

    async def answer(self, update: NewUpdate) -> None:
        self.repeated.append(update.update_id)
        self.recorder.changes.note()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a handler or an event."""
        await self.recorder.changes.until(condition, seconds=30)

    async def idle(self) -> None:
        """Wait until no handler runs."""
        async with asyncio.timeout(30):
            while tasks := self.updates._tasks():
                await asyncio.wait(tasks)


def make_instance(store: SqlDatabase | FaultProxy, recorder: Recorder, name: str = "me", **rules: Any) -> Instance:
    reached = cast("SqlDatabase", store)
    ctx = EngineContext(
        store=reached,
        providers={},
        channels={},
        observer=recorder,
        instance=name,
        limits=RateLimiter(reached, {}),
        rules=EngineRules(**{"claim_seconds": 0.02, "heartbeat_seconds": 0.05, "silent_seconds": 0.3, **rules}),
    )
    instance: Instance

    async def handle(update: Update) -> None:
        await instance.handle(update)

    async def answer(update: NewUpdate) -> None:
        await instance.answer(update)

    updates = UpdateWorker(ctx, reached, {"bot": handle}, answer)
    instance = Instance(store=reached, recorder=recorder, engine=Engine(ctx, updates), updates=updates)
    return instance
