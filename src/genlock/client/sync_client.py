"""The client for programs without asyncio."""

import time
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from genlock import __version__
from genlock.client.downloads import Download
from genlock.client.errors import ConnectionLost, TooManyRequests, Unavailable, no_answer
from genlock.client.protocol import (
    ANSWER_SECONDS,
    WAIT_SECONDS_MAX,
    Lost,
    Pause,
    Protocol,
    Received,
    Send,
    Steps,
    delivered,
    id_of,
)
from genlock.client.types import Balance, File, Job, Model, Quote, Result

Answer = TypeVar("Answer")


class Client:
    """Orders generations. Use it as a context manager, or close it."""

    def __init__(self, url: str, key: str, *, retries: int = 4, http: httpx.Client | None = None) -> None:
        """`url` is the address of the service, `key` the API key, `retries` how often a request is repeated."""
        self._protocol = Protocol(retries=retries)
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}", "User-Agent": f"genlock-client/{__version__}"}
        self._http = http or httpx.Client()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def order(
        self,
        model: str,
        values: Mapping[str, Any],
        *,
        key: str | None = None,
        metadata: Mapping[str, str] | None = None,
        max_price: float | None = None,
        wait: float = 0.0,
    ) -> Job:
        """Order a generation; wait up to 60 seconds for its end if `wait` says so.

        The same `key` is the same order, today and after a crash of yours; without one, each call is a new order.
        """
        return self._run(
            self._protocol.order(model, values, key=key, metadata=metadata, max_price=max_price, wait=wait)
        )

    def run(
        self,
        model: str,
        values: Mapping[str, Any],
        *,
        key: str | None = None,
        metadata: Mapping[str, str] | None = None,
        max_price: float | None = None,
    ) -> Job:
        """Order a generation and return its job when the result is there. Raises JobNotDelivered."""
        job = self.order(model, values, key=key, metadata=metadata, max_price=max_price, wait=WAIT_SECONDS_MAX)
        return delivered(job if job.is_final else self.wait(job))

    def job(self, job: Job | str, *, wait: float = 0.0) -> Job:
        """Read a job; wait up to 60 seconds for its end if `wait` says so."""
        return self._run(self._protocol.job(id_of(job), wait=wait))

    def watch(self, job: Job | str, *, every: float = 2.0) -> Iterator[Job]:
        """Yield the job every few seconds, with its progress, and last when it has ended."""
        while True:
            seen = self.job(job, wait=max(every, 1.0))
            yield seen
            if seen.is_final:
                return

    def wait(self, job: Job | str) -> Job:
        """Return the job when it has ended; every job ends, at its deadline at the latest."""
        while not (seen := self.job(job, wait=WAIT_SECONDS_MAX)).is_final:
            pass
        return seen

    def jobs(self) -> Iterator[Job]:
        """Yield the jobs of the account, newest first."""
        cursor: str | None = None
        while True:
            page, cursor = self._run(self._protocol.jobs(cursor, 100))
            yield from page
            if cursor is None:
                return

    def cancel(self, job: Job | str) -> Job:
        return self._run(self._protocol.cancel(id_of(job)))

    def upload(self, file: bytes | PathLike[str]) -> File:
        """Send a file for the input of an order, up to 20 MB."""
        return self._run(self._protocol.upload(file if isinstance(file, bytes) else Path(file).read_bytes()))

    def models(self) -> list[Model]:
        return self._run(self._protocol.models())

    def model(self, model_id: str) -> Model:
        return self._run(self._protocol.model(model_id))

    def quote(self, model: str, values: Mapping[str, Any]) -> Quote:
        """Return the price of an input. Nothing is held."""
        return self._run(self._protocol.quote(model, values))

    def balance(self) -> Balance:
        return self._run(self._protocol.balance())

    def download(self, result: Result, path: str | PathLike[str]) -> Path:
        """Write a result to a file, which appears only when it is whole. A cut download is continued."""
        download = Download(result, path)
        for attempt in range(self._protocol.retries):
            try:
                self._continue(download)
                return download.finish()
            except (httpx.TransportError, TooManyRequests, Unavailable):
                time.sleep(self._protocol.pause(attempt))
        try:
            self._continue(download)
        except httpx.TransportError as error:
            raise ConnectionLost(no_answer(self._url, error)) from error
        return download.finish()

    def _continue(self, download: Download) -> None:
        url, headers = f"{self._url}{download.path}", {**self._headers, **download.headers()}
        with self._http.stream("GET", url, headers=headers, timeout=ANSWER_SECONDS) as response:
            content = response.read() if response.is_error else b""
            with download.begin(response.status_code, response.headers, content) as file:
                if not response.is_error:
                    for chunk in response.iter_bytes():
                        file.write(chunk)

    def _run(self, steps: Steps[Answer]) -> Answer:
        received: Received | Lost | None = None
        try:
            while True:
                match steps.send(received):
                    case Pause(seconds=seconds):
                        time.sleep(seconds)
                        received = None
                    case Send() as send:
                        received = self._send(send)
        except StopIteration as end:
            answer: Answer = end.value
            return answer

    def _send(self, send: Send) -> Received | Lost:
        try:
            response = self._http.request(
                send.method,
                f"{self._url}{send.path}",
                headers={**self._headers, **send.headers},
                content=send.content,
                timeout=send.patience,
            )
        except httpx.TransportError as error:
            return Lost(reason=no_answer(self._url, error))
        return Received(status=response.status_code, headers=response.headers, content=response.content)
