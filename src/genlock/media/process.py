"""Reads files from outside in a process of its own, so that no file can stop the service or fill its memory."""

import asyncio
import json
import os
import socket
import sys
from tempfile import TemporaryFile
from typing import IO, Any

from genlock.domain.media_format import Format
from genlock.media.budget import TooComplex
from genlock.media.photo import NotUsableAsPhoto
from genlock.media.transfers import Transfers

#: a busy machine needs several times the CPU seconds that the process limits itself to
SECONDS_MAX = 60.0
#: the process ends after this time without a file
IDLE_SECONDS = 60.0
ANSWER_BYTES_MAX = 4096
#: the environment of the service holds its secrets: the process gets only what Python needs
_ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")


class MediaProcess:
    """Starts the process when a file comes, gives it one file after the other, and kills it when one takes too long."""

    def __init__(
        self,
        transfers: Transfers | None = None,
        *,
        seconds_max: float = SECONDS_MAX,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._transfers = transfers or Transfers()
        self._seconds_max = seconds_max
        self._idle_seconds = idle_seconds
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._connection: socket.socket | None = None
        self._idle: asyncio.TimerHandle | None = None
        #: processes that were killed and may not have ended yet
        self._killed: list[asyncio.subprocess.Process] = []

    @property
    def pid(self) -> int | None:
        """The id of the running process; None while there is none."""
        return self._process.pid if self._process else None

    async def measure(self, file: IO[bytes]) -> float | None:
        seconds = (await self._request({"task": "measure"}, file))["seconds"]
        return None if seconds is None else float(seconds)

    async def fit_photo(self, file: IO[bytes], size: int, format_: Format) -> IO[bytes] | None:
        result = TemporaryFile()  # noqa: SIM115 - the caller closes it
        try:
            answer = await self._request({"task": "photo", "size": size, "suffix": format_.suffix}, file, result)
            if answer.get("converted"):
                result.seek(0)
                return result
        except BaseException:
            result.close()
            raise
        result.close()
        if "not_usable" in answer:
            raise NotUsableAsPhoto(answer["not_usable"])
        return None

    async def close(self) -> None:
        """End the process. A request that runs ends with TooComplex."""
        process = self._process
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()
        if not self._lock.locked():
            self._kill()
        for killed in self._killed:
            await killed.wait()

    async def _request(self, request: dict[str, Any], *files: IO[bytes]) -> dict[str, Any]:
        """Let the process read files. Raises TooComplex if it dies or takes too long: the file is not tried again.

        Raises ChannelBusy if the instance stops meanwhile.
        """
        async with self._transfers.interruptible(), self._lock:
            if self._idle is not None:
                self._idle.cancel()
            try:
                async with asyncio.timeout(self._seconds_max):
                    answer = await self._exchange(json.dumps(request).encode(), files)
            except (TimeoutError, ConnectionError) as error:
                self._kill()
                raise TooComplex("reading the file takes too much time or memory") from error
            except BaseException:  # it would answer the next request with this one's answer
                self._kill()
                raise
            self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, self._kill)
        if "too_complex" in answer:
            raise TooComplex(answer["too_complex"])
        return answer

    async def _exchange(self, request: bytes, files: tuple[IO[bytes], ...]) -> dict[str, Any]:
        connection = self._connection or await self._start()
        for file in files:
            file.flush()
        # A request is a few bytes and the process waits for it: sending does not block.
        socket.send_fds(connection, [request], [file.fileno() for file in files])
        loop, answer = asyncio.get_running_loop(), b""
        while not answer.endswith(b"\n"):
            received = await loop.sock_recv(connection, ANSWER_BYTES_MAX)
            if not received:
                raise ConnectionResetError("the process has ended")
            answer += received
        found: dict[str, Any] = json.loads(answer)
        return found

    async def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        try:
            ours.settimeout(0)
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-P", "-m", "genlock.media.worker", str(theirs.fileno())),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._connection = ours
        return ours

    def _kill(self) -> None:
        """End the process, whatever it does; the next request starts another."""
        if self._idle is not None:
            self._idle.cancel()
        connection, self._connection = self._connection, None
        process, self._process = self._process, None
        if connection is not None:
            connection.close()
        if process is not None and process.returncode is None:
            process.kill()
            self._killed = [process, *(other for other in self._killed if other.returncode is None)]
