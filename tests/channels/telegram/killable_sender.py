"""A process that delivers results and kills itself at a given step.

It forks one child for every case that it reads from standard input but the first, in which nothing dies. A line is a
case: the store's file, the simulator's URL, what to deliver, and the step to die at. Each step is written to a log
file, so that the test knows how far the child came.
"""

import asyncio
import gc
import json
import os
import signal
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain, repeat
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
from tests.channels.telegram.harness import AdjustableClock, NoLimits
from tests.channels.telegram.plain_texts import PlainTexts
from tests.engine.fake_provider import FakeProvider
from tests.engine.recorder import Recorder
from tests.engine.world import idle
from tests.media.thread_reader import ThreadReader

T = TypeVar("T")
WRITES = ("save_parts", "finish_delivery", "begin_notice", "reschedule", "mark_result_invalid", "change_address")


@dataclass(kw_only=True)
class Case:
    store: str
    api: str
    log: str
    chat: int
    key: str
    #: what is delivered; empty: only due jobs are claimed
    pieces: list[list[str]] = field(default_factory=list)
    private: str = ""
    #: the step at which the process dies; None: it does not die
    die_at: int | None = None
    #: the answer of the call at that step is lost
    lose: bool = False
    #: the user deletes the placeholder before the result comes
    deleted: bool = False
    #: seconds by which the clock is ahead
    ahead: float = 0.0


class Steps:
    """Counts the steps of a delivery, and kills the process at one of them."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._passed = -1
        self.on = False

    def record(self, name: str) -> bool:
        """Log the step. Return whether the answer of the next call is to be lost."""
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
        self, method: Callable[..., Awaitable[T]], /, *, chat: int | None, priority: Priority | None, **arguments: Any
    ) -> T:
        name = getattr(method, "__name__", "")
        lose = self.steps.record(f"before {name}")
        if lose:
            await asyncio.to_thread(_lose_next, self.case)
        try:
            answer = await super().call(method, chat=chat, priority=priority, **arguments)
        except ChannelError:
            if lose:
                os.kill(os.getpid(), signal.SIGKILL)
            raise
        self.steps.record(f"after {name}")
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
    """The store with a step before and after each write of a delivery."""

    def __init__(self, store: SqliteStore, steps: Steps) -> None:
        self._store = store
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in WRITES:
            return found

        async def call(*args: Any, **named: Any) -> Any:
            self._steps.record(f"before {name}")
            answer = await found(*args, **named)
            self._steps.record(f"after {name}")
            return answer

        return call


async def run(case: Case) -> None:
    clock, recorder, steps = AdjustableClock(), Recorder(), Steps(case)
    clock.ahead = timedelta(seconds=case.ahead)
    store = await SqliteStore.open(case.store, clock=clock, observer=recorder)
    caller = SteppedCaller(make_bot("42:sandbox", case.api), NoLimits(), recorder)
    caller.steps, caller.case = steps, case
    channel = TelegramChannel(caller, PlainTexts(), Downloads(private=[case.private]), ThreadReader())
    stepped: Any = SteppedStore(store, steps)
    engine = Engine(
        EngineContext(
            store=stepped,
            providers={"mill": FakeProvider()},
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
    await _process_all(store, engine, clock)
    await store.close()


async def _ended(case: Case, store: SqliteStore, channel: TelegramChannel, engine: Engine) -> Job:
    """Return a job that has just ended, with its placeholder in the chat."""
    account_id = await store.ensure_account("telegram", "42", str(case.chat))
    await store.transfer(account_id, EntryKind.GRANT, 100, f"grant:{case.key}")
    order = NewJob(
        account_id=account_id,
        request_key=case.key,
        provider="mill",
        channel="telegram",
        address=f"{case.chat}/en",
        model="m",
        input="{}",
        price=100,
        deadline_seconds=36_000,
    )
    job = (await store.accept_job(order, engine.ctx.lease)).job
    message = await channel.create_placeholder(job, 0)
    await store.begin_submit(job.id, job.lease_token, "hash", message)
    if case.deleted:
        await asyncio.to_thread(_ask, case, f"people/{case.chat}/delete", {"message": int(message), "for_both": True})
    await store.mark_submitted(job.id, job.lease_token, f"task-{case.key}", 3600.0)
    parts = plan(Piece(kind=PartKind(kind), value=value) for kind, value in case.pieces)
    ended = await store.end_job(EndJob(job_id=job.id, state=State.SUCCEEDED, parts=parts), engine.ctx.lease)
    assert ended.job is not None
    return ended.job


async def _process_all(store: SqliteStore, engine: Engine, clock: AdjustableClock) -> None:
    """Process due jobs until none is left."""
    for _ in range(20):
        for job in await store.claim_jobs(10, engine.ctx.lease):
            engine.worker.start(job)
        await idle(engine)
        if not [row for row in await store.jobs(limit=1000) if row.due_at is not None]:
            return
        clock.ahead += timedelta(seconds=40)
    raise AssertionError("some jobs never end")


def deliver(case: Case) -> int:
    """Process a case; return the exit status."""
    try:
        asyncio.run(run(case))
    except BaseException as error:  # noqa: BLE001 - reported to the parent process
        sys.stderr.write(f"{error!r}\n")
        return 1
    return 0


def deliver_in_child(case: Case) -> int:
    child = os.fork()
    if child == 0:
        os._exit(deliver(case))
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    # A delivery in this process loads and caches all that the children would load and cache, each anew.
    ways = chain([deliver], repeat(deliver_in_child))
    for line, way in zip(sys.stdin, ways, strict=False):
        sys.stdout.write(f"{way(Case(**json.loads(line)))}\n")
        sys.stdout.flush()
        gc.freeze()


if __name__ == "__main__":
    main()
