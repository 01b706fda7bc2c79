"""Callbacks of the Kie.ai simulator.

Like the real service it signs callbacks if a webhook key is set, and retries them with back-off until they are
answered with 2xx. Faults make it lose, repeat, delay, forge, truncate or contradict them.
"""

import asyncio
import json
from dataclasses import dataclass, replace
from time import time

import aiohttp

from genlock.providers.kie.signature import SIGNATURE, TIMESTAMP, sign
from genlock.sandbox.kie.endpoint import JsonObject, SimulatedEndpoint, StagedCallback
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.task import FAILURES, Task

RETRIES = 3
TIMEOUT_SECONDS = 15
STALE_SECONDS = 600
STOLEN = "https://stolen.invalid/result.png"


@dataclass(frozen=True, kw_only=True)
class SentCallback:
    """One callback that was sent; status 0 if there was no answer."""

    task: str
    url: str
    body: bytes
    status: int


class CallbackSender:
    def __init__(self, *, key: str | None, retry_seconds: float, late_seconds: float) -> None:
        self._key = key
        self._retry_seconds = retry_seconds
        self.late_seconds = late_seconds
        self.sent: list[SentCallback] = []
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    async def call(self, task: Task, endpoint: SimulatedEndpoint, content: JsonObject, *, last: bool) -> None:
        """Send one callback of a task, with the faults of that task. `last` marks the final stage."""
        if not task.callback_url or Fault.CALLBACK_LOST in task.faults:
            return
        if last and Fault.CALLBACK_FORGED in task.faults:
            await self._forge(task, endpoint)
        if last and Fault.CALLBACK_LATE in task.faults:
            await asyncio.sleep(self.late_seconds)
        body = self._body(task, content)
        await self._post_until_answered(task, task.callback_url, body, self._key)
        if last and Fault.CALLBACK_TWICE in task.faults:
            await self._post_until_answered(task, task.callback_url, body, self._key)
        if last and Fault.CALLBACK_CONTRADICTING in task.faults:
            await self._contradict(task, endpoint)

    def _body(self, task: Task, content: JsonObject) -> bytes:
        body = json.dumps(content, ensure_ascii=False).encode()
        if Fault.CALLBACK_EMPTY in task.faults:
            return b""
        return body[: len(body) // 2] if Fault.CALLBACK_UNPARSABLE in task.faults else body

    async def _forge(self, task: Task, endpoint: SimulatedEndpoint) -> None:
        """Send a forged success: to the URL without a secret and with a guessed one, signed with a wrong key."""
        assert task.callback_url is not None
        stolen = replace(task, ended=time(), results=[STOLEN], faults=set())
        body = json.dumps(endpoint.callbacks(stolen)[-1][1]).encode()
        base, _, token = task.callback_url.rpartition("/")
        guess = f"{base}/{token.partition('.')[0]}.guessed"
        for url in (base, guess):
            await self._post(task, url, body, "not the key" if self._key else None)

    async def _contradict(self, task: Task, endpoint: SimulatedEndpoint) -> None:
        assert task.callback_url is not None
        other = task.faults - set(FAILURES) if task.failed else task.faults | {Fault.TASK_FAIL}
        body = endpoint.callbacks(replace(task, faults=other))[-1][1]
        await self._post_until_answered(task, task.callback_url, json.dumps(body).encode(), self._key)

    async def _post_until_answered(self, task: Task, url: str, body: bytes, key: str | None) -> None:
        for attempt in range(RETRIES + 1):
            if 200 <= await self._post(task, url, body, key) < 300:
                return
            await asyncio.sleep(self._retry_seconds * 2**attempt)

    async def _post(self, task: Task, url: str, body: bytes, key: str | None) -> int:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS))
        headers = {"Content-Type": "application/json", **self._signature(task, key)}
        try:
            async with self._session.post(url, data=body, headers=headers) as response:
                status = response.status
        except (aiohttp.ClientError, OSError):
            status = 0
        self.sent.append(SentCallback(task=task.id, url=url, body=body, status=status))
        return status

    def _signature(self, task: Task, key: str | None) -> dict[str, str]:
        if key is None:
            return {}
        timestamp = int(time()) - (STALE_SECONDS if Fault.CALLBACK_STALE in task.faults else 0)
        wrong = "x" if Fault.CALLBACK_BAD_SIGNATURE in task.faults else ""
        return {TIMESTAMP: str(timestamp), SIGNATURE: sign(task.id, timestamp, key + wrong)}


def order_callbacks(task: Task, calls: list[StagedCallback]) -> list[StagedCallback]:
    """Return callbacks in the order they are sent; with CALLBACK_DISORDERED all at the end and in reverse."""
    if Fault.CALLBACK_DISORDERED in task.faults:
        return [(1.0, body) for _, body in reversed(calls)]
    return calls
