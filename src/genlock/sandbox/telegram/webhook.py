"""Delivery of updates to the bot's webhook.

One queue per chat (or user, for callback queries); each update is retried with back-off until it is answered with
2xx or expires, and holds up only its own queue.
"""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from genlock.sandbox.telegram.updates import Update, Updates

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the name of a header
ANSWER_SECONDS = 60
RETRY_AFTER_MAX = 3600
#: methods that cannot be called in a webhook response
NOT_AS_REPLY = ("get", "setwebhook", "deletewebhook", "close", "logout")
RunCall = Callable[[str, dict[str, Any]], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class DeliveryAttempt:
    """One attempt to deliver an update; status 0 if there was no answer."""

    update: int
    status: int
    attempt: int


@dataclass(kw_only=True)
class Webhook:
    url: str
    secret: str
    connections: int
    #: the address that the bot named, or that of this machine
    ip: str = ""
    #: the bot has uploaded a certificate of its own
    certified: bool = False
    speed: float
    updates: "Updates"
    clock: Callable[[], float]
    last_error: dict[str, Any] = field(default_factory=dict)
    posted: list[DeliveryAttempt] = field(default_factory=list)
    _queues: "dict[str, deque[Update]]" = field(default_factory=dict)
    _workers: set[asyncio.Task[None]] = field(default_factory=set)
    _rng: Random = field(default_factory=lambda: Random(1))
    _session: aiohttp.ClientSession | None = None
    _slots: asyncio.Semaphore | None = None

    @property
    def settings(self) -> tuple[str, str, int, str, bool]:
        return self.url, self.secret, self.connections, self.ip, self.certified

    def as_json(self) -> dict[str, Any]:
        fields = {"url": self.url, "has_custom_certificate": self.certified, "max_connections": self.connections}
        return fields | ({"ip_address": self.ip} if self.ip else {}) | self.last_error

    async def close(self) -> None:
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        if self._session:
            await self._session.close()

    def take(self, update: "Update") -> None:
        queue = self._queues.get(update.queue)
        if queue is not None:
            queue.append(update)
            return
        self._queues[update.queue] = deque([update])
        worker = asyncio.get_running_loop().create_task(self._work(update.queue))
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)

    async def _work(self, name: str) -> None:
        """Deliver the updates of one queue in order."""
        self._slots = self._slots or asyncio.Semaphore(self.connections)
        queue = self._queues[name]
        while queue:
            update = queue[0]
            attempt = 0
            while update.id in self.updates.pending and update.expires > self.clock():
                attempt += 1
                async with self._slots:
                    wait = await self._post(update, attempt)
                if wait is None:
                    break
                await asyncio.sleep(wait / self.speed)
            self.updates.remove(update)
            queue.popleft()
        del self._queues[name]

    async def _post(self, update: "Update", attempt: int) -> float | None:
        """Post an update; return the seconds until the next attempt, or None if it was accepted."""
        self._session = self._session or aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS))
        headers = {"Content-Type": "application/json"} | ({SECRET_HEADER: self.secret} if self.secret else {})
        body = json.dumps(update.as_json(), ensure_ascii=False).encode()
        try:
            async with self._session.post(self.url, data=body, headers=headers) as response:
                status, body = response.status, await response.read()
                retry_after = response.headers.get("Retry-After", "")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            status, body, retry_after = 0, str(error).encode(), ""
        self.posted.append(DeliveryAttempt(update=update.id, status=status, attempt=attempt))
        if 200 <= status < 300:
            await self._run(body)
            return None
        reason = f"Wrong response from the webhook: {status}" if status else f"Connection failed: {body.decode()}"
        self.last_error = {"last_error_date": int(self.clock()), "last_error_message": reason}
        self.updates.note_failure()
        return min(int(retry_after), RETRY_AFTER_MAX) if retry_after.isdigit() else self.pause(attempt)

    def pause(self, attempt: int) -> float:
        """Return seconds before the next attempt: 0 first, then exponential up to one or two minutes."""
        return 0.0 if attempt == 1 else min(2.0 ** (attempt - 1), self._rng.uniform(60, 120))

    async def _run(self, body: bytes) -> None:
        """Execute the Bot API call in a webhook response, if there is one; its result is discarded."""
        try:
            call = json.loads(body) if body.strip().startswith(b"{") else {}
        except ValueError:
            return
        method = str(call.pop("method", ""))
        if method and not method.lower().startswith(NOT_AS_REPLY) and self.updates.run_call:
            await self.updates.run_call(method, call)
