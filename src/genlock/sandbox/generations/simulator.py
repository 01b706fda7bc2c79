"""The base of the fal and Replicate simulators: an API host and a file host, on two ports of this machine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from genlock.sandbox.faults import Faults
from genlock.sandbox.generations.callbacks import CallbackSender
from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.generations.server import UPLOAD_BYTES_MAX, add_control, answer_errors
from genlock.sandbox.generations.service import GenerationService
from genlock.sandbox.serving import Listener, listening, serving


class GenerationSimulator:
    def __init__(self, service: GenerationService, sender: CallbackSender, *, slow_seconds: float) -> None:
        self.service = service
        self.sender = sender
        self.slow_seconds = slow_seconds
        self.url = ""
        self.listener: Listener
        self.app = web.Application(client_max_size=UPLOAD_BYTES_MAX, middlewares=[answer_errors])
        add_control(self.app, service, sender, "127.0.0.1")

    @property
    def faults(self) -> Faults[Fault]:
        return self.service.faults

    @asynccontextmanager
    async def listening(self, host: str, port: int, files_port: int) -> AsyncIterator[None]:
        """Serve both hosts until the block ends."""
        files = self.service.files
        async with listening(self.app, host, port) as self.listener, serving(files.app, host, files_port) as files.url:
            self.url = self.listener.url
            try:
                yield
            finally:
                await self.service.close()
                await self.sender.close()
