"""Callbacks of the fal and Replicate simulators: signed, retried until answered with 2xx, and faulty on demand."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import time
from typing import Any

import aiohttp

from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.generations.generation import Generation

RETRIES = 3
TIMEOUT_SECONDS = 15
STALE_SECONDS = 600
STOLEN = "https://stolen.invalid/result.png"

#: the body that reports a generation
Body = Callable[[Generation], Mapping[str, Any]]
#: the headers that sign a body at a time; the last argument: with a wrong key
Sign = Callable[[Generation, bytes, int, bool], dict[str, str]]


@dataclass(frozen=True, kw_only=True)
class SentCallback:
    """One callback that was sent; status 0 if there was no answer."""

    generation: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    status: int


class CallbackSender:
    def __init__(self, *, body: Body, sign: Sign, retry_seconds: float, late_seconds: float) -> None:
        self._body_of = body
        self._sign = sign
        self._retry_seconds = retry_seconds
        self._late_seconds = late_seconds
        self.sent: list[SentCallback] = []
        self._session: aiohttp.ClientSession | None = None

    async def send(self, generation: Generation) -> None:
        """Report the end of a generation, with the faults of that generation."""
        faults = generation.faults
        if generation.webhook_url is None or Fault.CALLBACK_LOST in faults:
            return
        if Fault.CALLBACK_FORGED in faults:
            await self._forge(generation, generation.webhook_url)
        if Fault.CALLBACK_LATE in faults:
            await asyncio.sleep(self._late_seconds)
        await self._post_until_answered(generation, self._body(generation))
        if Fault.CALLBACK_TWICE in faults:
            await self._post_until_answered(generation, self._body(generation))
        if Fault.CALLBACK_CONTRADICTING in faults:
            await self._contradict(generation)

    def _body(self, generation: Generation) -> bytes:
        body = json.dumps(self._body_of(generation), ensure_ascii=False).encode()
        if Fault.CALLBACK_EMPTY in generation.faults:
            return b""
        return body[: len(body) // 2] if Fault.CALLBACK_UNPARSABLE in generation.faults else body

    async def _forge(self, generation: Generation, webhook_url: str) -> None:
        """Send a forged success: to the URL without a secret and with a guessed one, signed with a wrong key."""
        stolen = replace(generation, ended=time(), results=[STOLEN], faults=set())
        body = json.dumps(self._body_of(stolen)).encode()
        base, _, token = webhook_url.rpartition("/")
        for url in (base, f"{base}/{token.partition('.')[0]}.guessed"):
            await self._post(generation, url, body, wrong_key=True)

    async def _contradict(self, generation: Generation) -> None:
        failures = {Fault.TASK_FAIL, Fault.TASK_MODERATED}
        other = generation.faults - failures if generation.failure else generation.faults | {Fault.TASK_FAIL}
        body = json.dumps(self._body_of(replace(generation, faults=other))).encode()
        await self._post_until_answered(generation, body)

    async def _post_until_answered(self, generation: Generation, body: bytes) -> None:
        assert generation.webhook_url is not None
        for attempt in range(RETRIES + 1):
            if 200 <= await self._post(generation, generation.webhook_url, body) < 300:
                return
            await asyncio.sleep(self._retry_seconds * 2**attempt)

    async def _post(self, generation: Generation, url: str, body: bytes, *, wrong_key: bool = False) -> int:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS))
        headers = {"Content-Type": "application/json", **self._signature(generation, body, wrong_key=wrong_key)}
        try:
            async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                status = response.status
        except (aiohttp.ClientError, OSError, TimeoutError):
            status = 0
        self.sent.append(SentCallback(generation=generation.id, url=url, headers=headers, body=body, status=status))
        return status

    def _signature(self, generation: Generation, body: bytes, *, wrong_key: bool) -> dict[str, str]:
        if Fault.CALLBACK_UNSIGNED in generation.faults:
            return {}
        timestamp = int(time()) - (STALE_SECONDS if Fault.CALLBACK_STALE in generation.faults else 0)
        return self._sign(generation, body, timestamp, wrong_key or Fault.CALLBACK_BAD_SIGNATURE in generation.faults)

    async def close(self) -> None:
        if self._session:
            await self._session.close()
