"""A provider that works as tests tell it."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from genlock.domain.job import Job
from genlock.domain.result import Outcome, Piece, Report
from genlock.domain.task import Handle, TaskOrder
from genlock.ports import Provider
from tests.engine.faults import Faults, Gate, after

URL = "https://files.example/fox.png"
OUTCOMES = {
    "success": Outcome.SUCCESS,
    "failed": Outcome.FAILURE,
    "running": Outcome.RUNNING,
    "generating": Outcome.RUNNING,
}


class FakeProvider(Provider):
    """A provider whose tasks run until the test sets their report."""

    name = "fake"

    def __init__(self, tag: str = "task") -> None:
        self.tag = tag
        self.created: list[tuple[Job, str | None]] = []
        self.orders: list[TaskOrder] = []
        self.asked: list[str] = []
        self.reports: dict[str, Report] = {}
        self.faults = Faults()
        self.create_gate = Gate()
        self.status_gate = Gate()
        #: called during the create call
        self.on_create: Callable[[Job], Awaitable[None]] | None = None

    async def create(self, order: TaskOrder) -> Handle:
        job, callback_url = order.job, order.callback_url
        self.created.append((job, callback_url))
        self.orders.append(order)
        task_id = f"{self.tag}-{len(self.created)}"
        if self.on_create:
            await self.on_create(job)
        await self.create_gate.through()
        after(self.faults.before("create"))
        return Handle(task_id=task_id, details=f"at {task_id}")

    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        task_id = handle.task_id
        assert order.job.task_id == task_id
        self.asked.append(task_id)
        await self.status_gate.through()
        after(self.faults.before("status"))
        return self.reports.get(task_id, Report(outcome=Outcome.RUNNING, task_id=task_id, word="running"))

    def read_callback(self, body: bytes) -> Report:
        found = json.loads(body)
        word = found["state"]
        return Report(
            outcome=OUTCOMES.get(word, Outcome.UNKNOWN),
            task_id=found.get("task"),
            pieces=tuple(Piece(value=value) for value in found.get("urls", [])),
            error_code=found.get("code", ""),
            cost=found.get("cost"),
            word=str(word),
        )

    def token(self, job: Job) -> str:
        """Return the token of the callback URL that the job's last create call got."""
        urls = [url for created, url in self.created if created.id == job.id]
        assert urls
        assert urls[-1] is not None
        return urls[-1].rpartition("/")[2]


def callback_body(**said: Any) -> bytes:
    return json.dumps({"state": "success"} | said).encode()


def success(task_id: str, *urls: str, cost: int | None = None) -> Report:
    pieces = tuple(Piece(value=url) for url in urls or (URL,))
    return Report(outcome=Outcome.SUCCESS, task_id=task_id, pieces=pieces, cost=cost, word="success")


def failure(task_id: str, code: str = "nsfw") -> Report:
    return Report(outcome=Outcome.FAILURE, task_id=task_id, error_code=code, error_text="no", word="fail")
