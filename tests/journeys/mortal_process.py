"""A real process with an engine on either store that dies of one value: `python mortal_process.py CONFIG`, as JSON."""

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass, field

from genlock.app import make_engine, open_store
from genlock.domain.delivery import Part
from genlock.domain.job import Job
from genlock.engine.context import EngineRules
from genlock.ports import Channel, Placed
from tests.journeys.engine_process import READY, Lines, say

POISON = "https://files.example/poison.png"
PUT = "PUT"


@dataclass(frozen=True, kw_only=True)
class Config:
    url: str
    #: puts hang for ever
    hold: bool = False
    rules: dict[str, float] = field(default_factory=dict)


class Chat(Channel):
    """Every result takes a moment to show; opening the poisoned one is the end of the process."""

    name = "chat"

    def __init__(self, *, hold: bool) -> None:
        self._hold = hold

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        say(PUT, job=job.id)
        if part.value == POISON:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(3600 if self._hold else 0.02)
        assert part.message is not None
        return Placed(message=part.message)

    async def create_placeholder(self, job: Job, index: int) -> str:
        raise NotImplementedError("every order brings its message")

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        raise NotImplementedError("nobody deletes messages here")

    async def notify(self, job: Job) -> None:
        pass

    async def progress(self, job: Job, fraction: float, until: float) -> None:
        raise NotImplementedError("nobody knows how long it takes here")


async def main(config: Config) -> None:
    store = await open_store(config.url, observer=Lines())
    engine = make_engine(
        store,
        Lines(),
        providers={"kie": None},  # type: ignore[dict-item] # nobody orders here
        channels={"chat": Chat(hold=config.hold)},
        rules=EngineRules(**config.rules),  # type: ignore[arg-type]
    )
    await engine.start()
    say(READY)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Config(**json.loads(sys.argv[1]))))
