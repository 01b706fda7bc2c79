"""The process of `genlock serve`: it starts, says so, and ends when it is asked to."""

import asyncio
import gc
import logging
import os
import signal
import sys
from pathlib import Path
from time import CLOCK_BOOTTIME, clock_gettime, monotonic
from typing import NoReturn

import uvloop

from genlock.domain.errors import GenlockError
from genlock.domain.events import Event
from genlock.log import Mask, set_up_logging
from genlock.service import Service
from genlock.settings import LogFormat, ServiceSettings, unknown_settings

#: an end that takes longer is no end: whoever asked for it kills us soon
STOP_SECONDS_MAX = 19.0
_STAT = Path("/proc/self/stat")
_LOADED = monotonic()
_log = logging.getLogger("genlock")


def run(settings: ServiceSettings) -> int:
    """Serve until SIGTERM or Ctrl-C; returns the exit status."""
    mask = Mask(settings.secrets())
    set_up_logging(mask, as_json=settings.log_format is LogFormat.JSON, stream=sys.stdout)
    try:
        return uvloop.run(_serve(settings, mask))
    except GenlockError as error:
        sys.stderr.write(mask(f"{error}\n"))
        return 1
    except Exception:  # noqa: BLE001 - the last line of a process that ends should be readable, and masked
        _log.exception("the service ended unforeseen")
        return 1


async def _serve(settings: ServiceSettings, mask: Mask) -> int:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, _ask_to_end, asked)
    service = Service(settings, mask)
    for unknown, nearest in unknown_settings():
        service.observer.event(Event.SETTING_UNKNOWN, name=unknown, nearest=nearest)
    address = await service.start()
    _rest()
    mode = "webhook" if settings.public_url else "polling"
    service.observer.event(
        Event.READY, instance=service.engine.ctx.instance, address=address, mode=mode, seconds=round(process_age(), 2)
    )
    await asked.wait()
    stopping = loop.create_task(service.stop())
    await asyncio.wait([stopping], timeout=STOP_SECONDS_MAX)
    if not stopping.done():  # the database is away: nothing can be handed over, others take over as after a crash
        service.observer.event(Event.STAGE_ERROR, step="stop", error=f"not done after {STOP_SECONDS_MAX:g} s")
        _leave(1)
    await stopping
    return 0


def _ask_to_end(asked: asyncio.Event) -> None:
    """The first time in order, the second time at once: others take over as after a crash."""
    if asked.is_set():
        _leave(1)
    asked.set()


def _leave(status: int) -> NoReturn:
    """End the process now, with all it has said."""
    for handler in logging.getLogger().handlers:
        handler.flush()
    os._exit(status)


def _rest() -> None:
    """What has been loaded stays: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def process_age() -> float:
    """Seconds since this process began, interpreter and all; where that cannot be told, since this was loaded."""
    if not _STAT.exists():
        return monotonic() - _LOADED
    ticks = int(_STAT.read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    return clock_gettime(CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
