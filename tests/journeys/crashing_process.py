"""A process with an engine that kills itself on one result: `python crashing_process.py CONFIG`, the config as JSON."""

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass, field

from genlock.app.databases import open_store
from genlock.app.engine import make_engine
from genlock.domain.delivery import Part
from genlock.domain.job import Job
from genlock.engine.context import EngineRules
from genlock.ports import Channel, Placed
from tests.journeys.engine_process import READY, Lines, log

POISON = "https://files.example/poison.png"
PUT = "PUT"


@dataclass(frozen=True, kw_only=True)
class Config:
    url: str
    #: puts never return
    hold: bool = False
    rules: dict[str, float] = field(default_factory=dict)


class Chat(Channel):
    """Putting a result takes a moment; putting the poison result kills the process."""

    name = "chat"

    def __init__(self, *, hold: bool) -> None:
        self._hold = hold

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        log(PUT, job=job.id)
        if part.value == POISON:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(3600 if self._hold else 0.02)
        assert part.message is not None
        return Placed(message=part.message)

    async def create_placeholder(self, job: Job, index: int) -> str:
        raise NotImplementedError("every job has a placeholder")

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        raise NotImplementedError("messages are never deleted in these tests")

    async def notify(self, job: Job) -> None:
        pass

    async def progress(self, job: Job, fraction: float, until: float) -> None:
        raise NotImplementedError("the model has no expected time")


async def main(config: Config) -> None:
    store = await open_store(config.url, observer=Lines())
    engine = make_engine(
        store,
        Lines(),
        providers={"kie": None},  # type: ignore[dict-item] # no job is submitted here
        channels={"chat": Chat(hold=config.hold)},
        rules=EngineRules(**config.rules),  # type: ignore[arg-type]
    )
    await engine.start()
    log(READY)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Config(**json.loads(sys.argv[1]))))
