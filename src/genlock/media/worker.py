"""The process that reads users' files: `MediaProcess` starts it, and kills it when a file takes too long.

It has no secrets, no database and no network connection of the service, and each file has limits of time and memory.
"""

import json
import math
import os
import resource
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import process_time
from typing import IO, Any

from genlock.media.budget import TooComplex
from genlock.media.duration import file_duration

REQUEST_BYTES_MAX = 4096
FILES_MAX = 2
MEASURE_CPU_SECONDS, MEASURE_BYTES = 5, 256 * 1024 * 1024
PHOTO_CPU_SECONDS, PHOTO_BYTES = 20, 400 * 1024 * 1024
_STATM = Path("/proc/self/statm")


def main() -> None:
    """Answer requests until the service closes the connection."""
    for ignored in (signal.SIGINT, signal.SIGTERM):  # sent to all processes of a service; it decides when to stop
        signal.signal(ignored, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        while True:
            request, descriptors, _, _ = socket.recv_fds(connection, REQUEST_BYTES_MAX, FILES_MAX)
            if not request:
                return
            with ExitStack() as closing:
                files = [closing.enter_context(os.fdopen(descriptor, "r+b")) for descriptor in descriptors]
                answer = _answer(json.loads(request), files)
            connection.sendall(json.dumps(answer).encode() + b"\n")


def _answer(request: dict[str, Any], files: Sequence[IO[bytes]]) -> dict[str, Any]:
    try:
        if request["task"] == "measure":
            _limit(MEASURE_CPU_SECONDS, MEASURE_BYTES)
            return {"seconds": file_duration(files[0])}
        return _fit_photo(request, *files)
    except TooComplex as error:
        return {"too_complex": str(error)}
    except MemoryError:
        return {"too_complex": "reading the file needs too much memory"}
    except Exception as error:  # noqa: BLE001 - whatever a file causes here, it is refused
        return {"too_complex": f"the file could not be read: {type(error).__name__}"}


def _fit_photo(request: dict[str, Any], file: IO[bytes], result: IO[bytes]) -> dict[str, Any]:
    from genlock.media.photo import DECODERS, NotUsableAsPhoto, fit_photo  # noqa: PLC0415 - measuring does not need it

    _limit(PHOTO_CPU_SECONDS, PHOTO_BYTES)
    file.seek(0)
    try:
        [format_] = [decoder for decoder in DECODERS if decoder.suffix == request["suffix"]]
        photo = fit_photo(file, request["size"], format_)
    except NotUsableAsPhoto as error:
        return {"not_usable": str(error)}
    if photo is not None:
        shutil.copyfileobj(photo, result)
    return {"converted": photo is not None}


def _limit(cpu_seconds: int, memory: int) -> None:
    """Limit the time and the memory of the next request, beyond what this process has used so far."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(process_time()) + cpu_seconds, hard))
    if _STATM.exists():
        used = int(_STATM.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, hard))


if __name__ == "__main__":
    main()
