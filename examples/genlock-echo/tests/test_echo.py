"""The conformance suites of genlock, run against the example."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from genlock_echo import Echo, Folder

import genlock.plugin as genlock
from genlock.testing import (
    ChannelConformance,
    ChannelSubject,
    NotShown,
    ProviderConformance,
    ProviderSubject,
    Shown,
    Situation,
)


class EchoSubject(ProviderSubject):
    model = "echo"
    values: Mapping[str, Any] = {"prompt": "a fox"}

    def __init__(self) -> None:
        self._created = 0
        self._is_bad = False

    def make(self) -> genlock.ProviderBundle:
        subject = self

        class CountedEcho(Echo):
            """There is no service that could count the tasks."""

            async def create(self, order: genlock.TaskOrder) -> genlock.Handle:
                handle = await super().create(order)
                subject._created += 1
                return handle

        echo = CountedEcho()
        return genlock.ProviderBundle(provider=echo, rate_limits={}, credit_usd=Decimal(1), close=echo.close)

    async def created(self) -> int:
        return self._created

    async def arrange(self, situation: Situation, handle: genlock.Handle | None = None) -> None:
        if situation is not Situation.BAD_INPUT:
            raise NotShown(f"the echo has no server, so there is no: {situation}")
        self._is_bad = True

    def order(self, number: int = 1, values: Mapping[str, Any] | None = None) -> genlock.TaskOrder:
        given, self._is_bad = ({"prompt": " "} if self._is_bad else values), False
        return super().order(number, given)


class TestEcho(ProviderConformance):
    @asynccontextmanager
    async def running(self) -> AsyncIterator[ProviderSubject]:
        yield EchoSubject()


class FolderSubject(ChannelSubject):
    address = "order-1"

    def __init__(self, path: Path) -> None:
        self._path = path

    def make(self) -> genlock.Channel:
        texts: Any = Texts()
        return Folder(self._path, texts)

    async def shown(self) -> Sequence[Shown]:
        return [Shown(message=file.name, text=file.read_text()) for file in sorted(self._path.glob("*.txt"))]

    def picture_url(self) -> str:
        return "https://files.example/fox.png"


class Texts:
    """The only text that the folder shows."""

    def failed(self, job: genlock.Job, language: str) -> genlock.OutgoingMessage:
        return genlock.OutgoingMessage(text=f"order {job.id} failed, nothing was charged")


class TestFolder(ChannelConformance):
    @asynccontextmanager
    async def running(self) -> AsyncIterator[ChannelSubject]:
        with TemporaryDirectory() as folder:
            yield FolderSubject(Path(folder))
