"""API clients of a chaos run: each order is repeated with its idempotency key until an answer arrives.

They know only what the API tells them, and keep it: the verdict is read from these records.
"""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from time import time
from typing import Any, TypeVar

import aiohttp

from genlock.sandbox.chaos.users import MODEL, SUBJECTS
from genlock.sandbox.chaos.webhook_receiver import Endpoint

FINAL = {"succeeded", "failed", "canceled", "expired"}
ORDERS_AT_ONCE = 60
REQUEST_SECONDS = 20.0
RETRY_SECONDS = 0.3
WAIT_SECONDS = 5
#: shares of the requests or orders that …
CUT_SHARE = 0.1  # … the client cuts off before the answer can arrive
CUT_SECONDS_MAX = 0.1
AT_ONCE_SHARE = 0.15  # … are sent twice at the same time
REPEAT_SHARE = 0.25  # … are repeated after they were accepted
OTHER_BODY_SHARE = 0.05  # … are repeated with another body, which must be refused
CANCEL_SHARE = 0.05
STREAM_SHARE = 0.2  # … are watched by server-sent events
FOREIGN_SHARE = 0.1  # … another account tries to read
PAGE = 100
T = TypeVar("T")
_TRY_AGAIN = {429, 502, 503, 504}


class NoAnswer(Exception):
    """The answer was lost, or the service asked to try again."""


@dataclass(kw_only=True, eq=False)
class Account:
    name: str
    #: several keys of the same account: an order may be repeated with another of them
    keys: list[str] = field(repr=False)
    endpoints: list[Endpoint] = field(default_factory=list)
    #: read at the end: the balance, the jobs by id, and the ledger
    balance: dict[str, Any] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    ledger: list[dict[str, Any]] = field(default_factory=list)


@dataclass(kw_only=True, eq=False)
class ApiOrder:
    """One order as its client knows it."""

    account: Account
    key: str
    prompt: str
    asked_at: float
    #: the ids of jobs that the answers to the order named
    ids: set[str] = field(default_factory=set)
    #: answers to the order, and how many of them were marked as replays
    answers: int = 0
    replays: int = 0
    #: the last state that the client read
    job: dict[str, Any] | None = None
    result_sha256: str | None = None
    #: answers that must not happen
    wrong: list[str] = field(default_factory=list)
    ended_at: float | None = None


class ApiClients:
    def __init__(self, url: str, accounts: list[Account], *, rng: Random, deadline: float) -> None:
        self._url = url
        self._rng = rng
        self._deadline = deadline
        self.accounts = accounts
        self.orders: list[ApiOrder] = []
        self.counts: Counter[str] = Counter()

    @property
    def placed(self) -> int:
        return len(self.orders)

    @property
    def ended(self) -> int:
        return sum(order.ended_at is not None for order in self.orders)

    async def order(self, count: int, *, spread_seconds: float) -> None:
        """Place orders; return when every client has read how its orders ended, or at the deadline."""
        slots = asyncio.Semaphore(ORDERS_AT_ONCE)
        async with self._session() as session:

            async def place_order(number: int) -> None:
                await asyncio.sleep(spread_seconds * number / count)
                async with slots:
                    await self._live(session, number)

            await asyncio.gather(*map(place_order, range(count)))

    async def read_accounts(self) -> None:
        """Read what the API tells each account in the end: its balance, all of its jobs, and its ledger."""
        async with self._session() as session:
            for account in self.accounts:
                account.balance = await self._until_answered(partial(self._get, session, account, "/v1/balance"))
                jobs = await self._all_pages(session, account, "/v1/jobs")
                account.jobs = {job["id"]: job for job in jobs}
                account.ledger = await self._all_pages(session, account, "/v1/ledger")

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        )

    # one order

    async def _live(self, session: aiohttp.ClientSession, number: int) -> None:
        prompt = f"{self._rng.choice(SUBJECTS)} number {number}"
        order = ApiOrder(account=self._rng.choice(self.accounts), key=f"order-{number}", prompt=prompt, asked_at=time())
        self.orders.append(order)
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + max(0.0, self._deadline - time())):
                await self._place(session, order)
                await self._follow(session, order)
        except TimeoutError:
            return
        order.ended_at = time()

    async def _place(self, session: aiohttp.ClientSession, order: ApiOrder) -> None:
        happens = {share: self._rng.random() < share for share in (AT_ONCE_SHARE, REPEAT_SHARE, OTHER_BODY_SHARE)}
        times = 2 if happens[AT_ONCE_SHARE] else 1
        await asyncio.gather(*(self._until_answered(lambda: self._send(session, order)) for _ in range(times)))
        if happens[REPEAT_SHARE]:
            self.counts["repeats_after_success"] += 1
            await self._until_answered(lambda: self._send(session, order))
        if happens[OTHER_BODY_SHARE]:
            self.counts["other_bodies"] += 1
            await self._until_answered(lambda: self._send_other(session, order))

    async def _send(self, session: aiohttp.ClientSession, order: ApiOrder) -> None:
        status, body, headers = await self._request(
            session, order.account, "POST", "/v1/jobs", self._body(order), {"Idempotency-Key": order.key}
        )
        if status != 202:
            order.wrong.append(f"the order was answered with {status} {body}")
            return
        order.answers += 1
        order.replays += headers.get("Idempotent-Replayed") == "true"
        order.ids.add(body["id"])
        order.job = body

    async def _send_other(self, session: aiohttp.ClientSession, order: ApiOrder) -> None:
        other = self._body(order)
        other["input"]["prompt"] += " again"
        status, body, _ = await self._request(
            session, order.account, "POST", "/v1/jobs", other, {"Idempotency-Key": order.key}
        )
        if (status, body.get("code")) != (422, "idempotency_key_reused"):
            order.wrong.append(f"the key with another body was answered with {status} {body}")

    def _body(self, order: ApiOrder) -> dict[str, Any]:
        return {
            "model": MODEL,
            "input": {"prompt": order.prompt, "aspect_ratio": "1:1"},
            "metadata": {"key": order.key},
        }

    # its end

    async def _follow(self, session: aiohttp.ClientSession, order: ApiOrder) -> None:
        if order.job is None:
            return
        path = f"/v1/jobs/{order.job['id']}"
        if self._rng.random() < CANCEL_SHARE:
            await self._until_answered(lambda: self._cancel(session, order, path))
        if self._rng.random() < FOREIGN_SHARE:
            await self._until_answered(lambda: self._read_as_another(session, order, path))
        job, read = order.job, self._stream if self._rng.random() < STREAM_SHARE else self._wait
        while job["status"] not in FINAL:
            job = order.job = await self._until_answered(lambda: read(session, order.account, path))
        if job["results"]:
            order.result_sha256 = await self._until_answered(lambda: self._fetch(session, order, f"{path}/results/0"))

    async def _wait(self, session: aiohttp.ClientSession, account: Account, path: str) -> dict[str, Any]:
        return await self._get(session, account, path, {"Prefer": f"wait={WAIT_SECONDS}"})

    async def _stream(self, session: aiohttp.ClientSession, account: Account, path: str) -> dict[str, Any]:
        """Read the job's events until the stream ends; return the last one."""
        last: dict[str, Any] | None = None
        try:
            async with session.get(f"{self._url}{path}/events", headers=self._headers(account)) as response:
                if response.status != 200:
                    raise NoAnswer
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        last = json.loads(line[6:])
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if last is None:
                raise NoAnswer from error
        if last is None:
            raise NoAnswer
        self.counts["streams"] += 1
        return last

    async def _cancel(self, session: aiohttp.ClientSession, order: ApiOrder, path: str) -> None:
        status, body, _ = await self._request(session, order.account, "POST", f"{path}/cancel", {})
        if status not in {202, 409}:
            order.wrong.append(f"the cancel was answered with {status} {body}")
        self.counts["cancels"] += status == 202

    async def _read_as_another(self, session: aiohttp.ClientSession, order: ApiOrder, path: str) -> None:
        others = [account for account in self.accounts if account is not order.account]
        if others:
            status, body, _ = await self._request(session, self._rng.choice(others), "GET", path)
            self.counts["foreign_reads"] += 1
            if status != 404:
                order.wrong.append(f"another account read the job: {status} {body}")

    async def _fetch(self, session: aiohttp.ClientSession, order: ApiOrder, path: str) -> str:
        try:
            async with session.get(f"{self._url}{path}", headers=self._headers(order.account)) as response:
                content = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswer from error
        if response.status in _TRY_AGAIN:
            raise NoAnswer
        if response.status != 200:
            order.wrong.append(f"the result was answered with {response.status}")
        return hashlib.sha256(content).hexdigest()

    # requests

    async def _until_answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Repeat the same request until its answer arrives."""
        while True:
            try:
                return await ask()
            except NoAnswer:
                self.counts["lost_answers"] += 1
                await asyncio.sleep(self._rng.uniform(0.1, 1.0) * RETRY_SECONDS)

    async def _get(
        self, session: aiohttp.ClientSession, account: Account, path: str, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        status, body, _ = await self._request(session, account, "GET", path, None, headers)
        if status != 200:
            raise NoAnswer
        return body

    async def _all_pages(self, session: aiohttp.ClientSession, account: Account, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = await self._until_answered(partial(self._get, session, account, f"{path}?limit={PAGE}{cursor}"))
            found += page["data"]
            if page["next_cursor"] is None:
                return found
            cursor = f"&cursor={page['next_cursor']}"

    async def _request(
        self,
        session: aiohttp.ClientSession,
        account: Account,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, Any], Any]:
        """Send a request and return the answer. Raises NoAnswer."""
        self.counts["requests"] += 1
        seconds = REQUEST_SECONDS
        if method == "POST" and self._rng.random() < CUT_SHARE:
            seconds = self._rng.uniform(0.001, CUT_SECONDS_MAX)
        try:
            async with session.request(
                method,
                f"{self._url}{path}",
                json=body,
                headers=self._headers(account) | (headers or {}),
                timeout=aiohttp.ClientTimeout(total=seconds),
            ) as response:
                content = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswer from error
        if response.status in _TRY_AGAIN:
            raise NoAnswer
        try:
            return response.status, json.loads(content), response.headers
        except ValueError:
            return response.status, {"text": content.decode(errors="replace")[:200]}, response.headers

    def _headers(self, account: Account) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._rng.choice(account.keys)}"}
