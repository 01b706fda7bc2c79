"""A provider and a channel that answer at once, so that only the engine is measured."""

import asyncio
import json
import time
from typing import Any

from genlock.domain.delivery import Part
from genlock.domain.job import Job
from genlock.domain.result import Outcome, Piece, Report
from genlock.domain.task import Handle, TaskOrder
from genlock.engine.engine import Engine
from genlock.ports import Channel, Placed, Provider


class InstantProvider(Provider):
    """Finishes a task as soon as it is created, and calls back at once."""

    name = "instant"

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self._count = 0
        self.calls_back = True
        self.engine: Engine | None = None
        self._callbacks: set[asyncio.Task[Any]] = set()
        #: when each task's callback arrived
        self.arrived: dict[str, float] = {}

    async def create(self, order: TaskOrder) -> Handle:
        self._count += 1
        task_id = f"{self.tag}-{self._count}"
        if self.calls_back and order.callback_url and self.engine:
            token = order.callback_url.rpartition("/")[2]
            self.arrived[task_id] = time.perf_counter()
            body = f'{{"taskId":"{task_id}","state":"success","url":"http://127.0.0.1/{task_id}.png"}}'.encode()
            task = self.engine.ctx.loop.create_task(self.engine.callback(self.name, token, body))
            self._callbacks.add(task)
            task.add_done_callback(self._callbacks.discard)
        return Handle(task_id=task_id)

    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        return Report(outcome=Outcome.RUNNING, task_id=handle.task_id)

    def read_callback(self, body: bytes) -> Report:
        data = json.loads(body)
        return Report(outcome=Outcome.SUCCESS, task_id=data["taskId"], pieces=(Piece(value=data["url"]),))


class InstantChannel(Channel):
    """Confirms every call at once."""

    name = "instant"

    def __init__(self) -> None:
        #: when each task's result reached the channel
        self.shown: dict[str, float] = {}

    async def create_placeholder(self, job: Job, index: int) -> str:
        return f"{job.id}.{index}"

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        self.shown[job.task_id or ""] = time.perf_counter()
        return Placed(message=part.message or "", file="file")

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        return Placed(message=f"{job.id}.{index}.sent")

    async def notify(self, job: Job) -> None: ...

    async def progress(self, job: Job, fraction: float, until: float) -> None: ...
