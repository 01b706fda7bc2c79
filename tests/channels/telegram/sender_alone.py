"""A sender that can be killed at any step: a process that forks one for every case it reads from its input.

Each line is a case: the store's file, the simulator's address, what to deliver or to take over, and where to die. Each
step that the sender passes is written to a file of its own, so that it is known how far it came.
"""

import asyncio
import json
import os
import signal
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from genlock.channels.telegram.caller import Caller, Priority, make_bot
from genlock.channels.telegram.channel import TelegramChannel
from genlock.domain.delivery import plan
from genlock.domain.errors import ChannelError
from genlock.domain.job import Job, NewJob, State
from genlock.domain.money import EntryKind
from genlock.domain.result import PartKind, Piece
from genlock.engine.context import EngineContext
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.media.download import Downloads
from genlock.ports import EndJob
from genlock.stores.sqlite import SqliteStore
from tests.channels.telegram.house import NoLimits, TurnableClock
from tests.channels.telegram.words import PlainWords
from tests.engine.world import Mill, Recorder, idle

T = TypeVar("T")
WRITES = ("save_parts", "finish_delivery", "begin_notice", "reschedule", "mark_result_invalid", "change_address")


@dataclass(kw_only=True)
class Case:
    store: str
    api: str
    log: str
    chat: int
    key: str
    #: what is delivered; empty: whatever is due is taken over
    pieces: list[list[str]] = field(default_factory=list)
    private: str = ""
    #: the step at which it dies; None: it lives
    die_at: int | None = None
    #: the answer of the call at that step is lost
    lose: bool = False
    #: the person deletes the message before the result comes
    deleted: bool = False
    #: seconds that the clock is ahead
    ahead: float = 0.0


class Steps:
    """Counts the steps of a delivery, and ends the process at one of them."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._passed = -1
        self.on = False

    def pass_(self, name: str) -> bool:
        """Write the step down. True if the answer of the call that follows is to be lost."""
        if not self.on:
            return False
        self._passed += 1
        with Path(self._case.log).open("a", encoding="utf-8") as log:
            log.write(f"{name}\n")
        here = self._passed == self._case.die_at
        if here and not self._case.lose:
            os.kill(os.getpid(), signal.SIGKILL)
        return here


class SteppedCaller(Caller):
    steps: Steps
    case: Case

    async def call(
        self, method: Callable[..., Awaitable[T]], /, *, chat: int | None, priority: Priority, **arguments: Any
    ) -> T:
        name = getattr(method, "__name__", "")
        lose = self.steps.pass_(f"before {name}")
        if lose:
            await asyncio.to_thread(_lose_next, self.case)
        try:
            answer = await super().call(method, chat=chat, priority=priority, **arguments)
        except ChannelError:
            if lose:
                os.kill(os.getpid(), signal.SIGKILL)
            raise
        self.steps.pass_(f"after {name}")
        return answer


def _lose_next(case: Case) -> None:
    _ask(case, "faults", {"fault": "drop_after", "chat": case.chat, "times": 1})


def _ask(case: Case, path: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(  # noqa: S310 - the simulator on this machine
        f"{case.api}/sim/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        answer.read()


class SteppedStore:
    """The store, with a step before and after each write of a delivery."""

    def __init__(self, store: SqliteStore, steps: Steps) -> None:
        self._store = store
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in WRITES:
            return found

        async def call(*args: Any, **named: Any) -> Any:
            self._steps.pass_(f"before {name}")
            answer = await found(*args, **named)
            self._steps.pass_(f"after {name}")
            return answer

        return call


async def run(case: Case) -> None:
    clock, recorder, steps = TurnableClock(), Recorder(), Steps(case)
    clock.ahead = timedelta(seconds=case.ahead)
    store = await SqliteStore.open(case.store, clock=clock, observer=recorder)
    caller = SteppedCaller(make_bot("42:sandbox", case.api), NoLimits(), recorder)
    caller.steps, caller.case = steps, case
    channel = TelegramChannel(caller, PlainWords(), Downloads(private=[case.private]))
    reached: Any = SteppedStore(store, steps)
    engine = Engine(
        EngineContext(
            store=reached,
            providers={"mill": Mill()},
            channels={"telegram": channel},
            observer=recorder,
            instance=f"{case.key}-{case.ahead}",
            limits=RateLimiter(store, {}),
            rng=Random(1),
        )
    )
    if case.pieces:
        job = await _ended(case, store, channel, engine)
        steps.on = True
        engine.worker.start(job)
        await idle(engine)
    await _work_off(store, engine, clock)
    await store.close()


async def _ended(case: Case, store: SqliteStore, channel: TelegramChannel, engine: Engine) -> Job:
    """A job with its message in the chat, that has just ended."""
    person = await store.ensure_account("telegram", "42", str(case.chat))
    await store.transfer(person, EntryKind.GRANT, 100, f"grant:{case.key}")
    order = NewJob(
        account_id=person,
        request_key=case.key,
        provider="mill",
        channel="telegram",
        address=f"{case.chat}/en",
        model="m",
        input="{}",
        price=100,
        deadline_seconds=36_000,
    )
    job = (await store.accept(order, engine.ctx.lease)).job
    message = await channel.create_placeholder(job, 0)
    await store.begin_submit(job.id, job.lease_token, "hash", message)
    if case.deleted:
        await asyncio.to_thread(_ask, case, f"people/{case.chat}/delete", {"message": int(message), "for_both": True})
    await store.mark_submitted(job.id, job.lease_token, f"task-{case.key}", 3600.0)
    parts = plan(Piece(kind=PartKind(kind), value=value) for kind, value in case.pieces)
    ended = await store.end_job(EndJob(job_id=job.id, state=State.SUCCEEDED, parts=parts), engine.ctx.lease)
    assert ended.job is not None
    return ended.job


async def _work_off(store: SqliteStore, engine: Engine, clock: TurnableClock) -> None:
    """Whatever is due, until nothing is."""
    for _ in range(20):
        for job in await store.claim(10, engine.ctx.lease):
            engine.worker.start(job)
        await idle(engine)
        if not [row for row in await store.jobs(limit=1000) if row.due_at is not None]:
            return
        clock.ahead += timedelta(seconds=40)
    raise AssertionError("work does not come to an end")


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(run(Case(**json.loads(line))))
            except BaseException as error:  # noqa: BLE001 - told to whoever waits
                sys.stderr.write(f"{error!r}\n")
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
