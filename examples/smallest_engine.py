"""The smallest provider and channel, and one order through them: `.venv/bin/python examples/smallest_engine.py`."""

import asyncio
import logging
import sys
import tempfile

from genlock.app.databases import open_store
from genlock.app.engine import make_engine
from genlock.domain.delivery import Part
from genlock.domain.job import Job, NewJob
from genlock.domain.money import EntryKind
from genlock.domain.result import Outcome, Piece, Report
from genlock.domain.task import Handle, TaskOrder
from genlock.log import LogObserver
from genlock.ports import Channel, Placed, Provider


class Painter(Provider):
    """Reports every task as finished at the first status query, and sends no callbacks."""

    name = "mine"

    async def create(self, order: TaskOrder) -> Handle:
        return Handle(task_id=f"task-{order.job.id}")

    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        picture = Piece(value=f"https://example.org/{handle.task_id}.png")
        return Report(outcome=Outcome.SUCCESS, task_id=handle.task_id, pieces=(picture,))

    def read_callback(self, body: bytes) -> Report:
        raise ValueError("this provider sends no callbacks")


class Terminal(Channel):
    """Prints every message."""

    name = "chat"

    def __init__(self) -> None:
        self.notified = asyncio.Event()

    async def create_placeholder(self, job: Job, index: int) -> str:
        return f"{job.id}.{index}"

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        sys.stdout.write(f"message {part.message} shows {part.value}\n")
        return Placed(message=part.message or "")

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        return await self.put(job, index, part)

    async def notify(self, job: Job) -> None:
        sys.stdout.write(f"notice: order {job.id} is ready\n")
        self.notified.set()

    async def progress(self, job: Job, fraction: float, until: float) -> None: ...


async def main(url: str) -> None:
    provider, channel = Painter(), Terminal()
    observer = LogObserver(logging.getLogger("genlock"), as_json=False)

    store = await open_store(url, observer=observer)
    engine = make_engine(store, observer, providers={"mine": provider}, channels={"chat": channel})
    await engine.start()

    account_id = await store.ensure_account("chat", "my-bot", "12345")
    await store.transfer(account_id, EntryKind.TOPUP, 10_000, key="payment-1")
    await engine.order(
        NewJob(
            account_id=account_id,
            request_key="message-77",
            provider="mine",
            channel="chat",
            address="12345",
            model="z-image",
            input='{"prompt": "cat astronaut"}',
            price=800,
            deadline_seconds=900,
        )
    )

    await channel.notified.wait()
    wallet = await store.wallet(account_id)
    sys.stdout.write(f"the account has {wallet.available} thousandths of a credit left, and {wallet.held} held\n")
    await engine.stop()
    await store.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(f"sqlite:///{folder}/genlock.db"))
