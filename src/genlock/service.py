"""The process of `genlock serve`: starts one instance, waits for a signal, and stops it."""

import asyncio
import errno
import gc
import logging
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from time import CLOCK_BOOTTIME, clock_gettime, monotonic
from typing import NoReturn

import uvloop
from prometheus_client import CollectorRegistry

from genlock.app.compose import App, compose
from genlock.app.instance_parts import Process
from genlock.channels.telegram.caller import Caller, Priority
from genlock.channels.telegram.errors import TokenRefused
from genlock.domain.doctor_phase import Phase
from genlock.domain.errors import ChannelError, GenlockError, Refusal
from genlock.domain.events import Event
from genlock.domain.printable import escape_unprintable
from genlock.engine.job_events import JobEventRecorder
from genlock.log import LogObserver, Mask, set_up_logging
from genlock.media.transfers import Transfers
from genlock.metrics import MetricsObserver, Observers
from genlock.settings import LogFormat, ServiceSettings, unknown_settings
from genlock.web.server import allow_open_files, serving

#: how long a start waits for Telegram to check the token; without an answer the service starts anyway
TOKEN_CHECK_SECONDS = 5.0
#: a stop interrupts transfers of files that take longer: other instances begin them again
TRANSFER_SECONDS = 2.0
#: a stop that takes longer is aborted: platforms kill the process soon after
STOP_SECONDS_MAX = 19.0
#: why the service cannot listen, and what to do, by the number of the system's error
_LISTENING = {
    errno.EADDRINUSE: "another program uses this port; stop it, or choose another port",
    errno.EACCES: "this user may not use this port; choose one above 1023, with a proxy in front",
    errno.EADDRNOTAVAIL: "this machine has no such address; choose one that it has, or 0.0.0.0 for all of them",
}
_STAT = Path("/proc/self/stat")
_LOADED = monotonic()
_log = logging.getLogger("genlock")


class Service:
    """Starts and stops one instance."""

    def __init__(self, settings: ServiceSettings, mask: Mask) -> None:
        self._settings = settings
        self._mask = mask
        self.instance = secrets.token_hex(8)
        self._metrics = MetricsObserver(CollectorRegistry())
        as_json = settings.log_format is LogFormat.JSON
        log = LogObserver(logging.getLogger("genlock"), as_json=as_json, instance=self.instance)
        self.observer = Observers(log, self._metrics)
        self._job_events = JobEventRecorder(self.instance, self.observer, mask) if settings.keep_events_days else None
        if self._job_events:
            self.observer = Observers(log, self._metrics, self._job_events)
        self._open = False
        self._closing = AsyncExitStack()
        self._transfers = Transfers()

    async def start(self) -> str:
        """Start the instance and return the URL it listens on. Raises Refusal for wrong settings."""
        try:
            app = await self._compose()
            await self._check_token(app.caller)
            url = await self._listen(app)
            await app.engine.start(app.periodic_tasks)
        except BaseException:
            await self._closing.aclose()
            raise
        self._closing.push_async_callback(app.engine.stop)
        self._closing.push_async_callback(app.alarms.stop)  # before the leader resigns: the next one writes there too
        self._open = True
        return url

    async def stop(self) -> None:
        """Accept no more work, pass on leadership at once, then finish or hand over the running work."""
        self._open = False
        self.observer.event(Event.STOPPING, instance=self.instance)
        asyncio.get_running_loop().call_later(TRANSFER_SECONDS, self._transfers.interrupt)
        await self._closing.aclose()
        self.observer.event(Event.STOPPED, instance=self.instance)

    async def _compose(self) -> App:
        process = Process(
            instance=self.instance,
            observer=self.observer,
            metrics=self._metrics,
            job_events=self._job_events,
            mask=self._mask,
            is_open=lambda: self._open,
            closing=self._closing,
            transfers=self._transfers,
            examine=self._examine,
        )
        return await compose(self._settings, process)

    def _examine(self) -> AsyncIterator[Phase]:
        from genlock.doctor.in_thread import examine_in_thread  # noqa: PLC0415 - rarely used, and takes memory

        return examine_in_thread(self._settings)

    async def _check_token(self, caller: Caller) -> None:
        try:
            async with asyncio.timeout(TOKEN_CHECK_SECONDS):
                await caller.call(caller.bot.get_me, chat=None, priority=Priority.RESULT)
        except TokenRefused:
            raise Refusal(
                "Telegram does not know the token in GENLOCK_TELEGRAM_TOKEN: copy it from @BotFather again "
                "(it changes when it is revoked there)"
            ) from None
        except (ChannelError, TimeoutError) as error:
            reason = f"{type(error).__name__}: {str(error) or 'no answer in time'}"
            self.observer.event(Event.CHANNEL_UNREACHABLE, step="check the token", error=reason)

    async def _listen(self, app: App) -> str:
        settings = self._settings
        try:
            return await self._closing.enter_async_context(serving(app.web, settings.host, settings.port))
        except OSError as error:
            reason = _LISTENING.get(error.errno or 0, error.strerror or str(error))
            raise Refusal(
                f"cannot listen on {settings.host}:{settings.port}: {reason}. "
                "GENLOCK_HOST and GENLOCK_PORT set where the service listens"
            ) from None


def run(settings: ServiceSettings) -> int:
    """Serve until SIGTERM or Ctrl-C, and return the exit status."""
    mask = Mask(settings.secrets())
    set_up_logging(mask, as_json=settings.log_format is LogFormat.JSON, stream=sys.stdout)
    allow_open_files()
    try:
        return uvloop.run(_serve(settings, mask))
    except GenlockError as error:
        sys.stderr.write(escape_unprintable(mask(f"{error}\n"), keep="\n"))
        return 1
    except Exception:  # noqa: BLE001 - the log masks the secrets that a bare traceback would show
        _log.exception("the service ended with an unexpected error")
        return 1


async def _serve(settings: ServiceSettings, mask: Mask) -> int:
    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, _request_stop, stop_requested)
    service = Service(settings, mask)
    for unknown, nearest in unknown_settings():
        service.observer.event(Event.SETTING_UNKNOWN, name=unknown, nearest=nearest)
    address = await service.start()
    _freeze_garbage_collector()
    mode = "webhook" if settings.public_url else "polling"
    service.observer.event(
        Event.READY, instance=service.instance, address=address, mode=mode, seconds=round(process_age(), 2)
    )
    await stop_requested.wait()
    return await _stop(service)


async def _stop(service: Service) -> int:
    stopping = asyncio.get_running_loop().create_task(service.stop())
    await asyncio.wait([stopping], timeout=STOP_SECONDS_MAX)
    if not stopping.done():  # the database does not answer: other instances take over as after a crash
        service.observer.event(Event.STAGE_ERROR, step="stop", error=f"not finished after {STOP_SECONDS_MAX:g} s")
        _exit_now(1)
    await stopping
    return 0


def _request_stop(stop_requested: asyncio.Event) -> None:
    """Stop gracefully at the first signal and at once at the second: other instances take over as after a crash."""
    if stop_requested.is_set():
        _exit_now(1)
    stop_requested.set()


def _exit_now(status: int) -> NoReturn:
    """End the process at once, after flushing the log."""
    for handler in logging.getLogger().handlers:
        handler.flush()
    os._exit(status)


def _freeze_garbage_collector() -> None:
    """Exclude everything loaded so far from garbage collection: it lives as long as the process.

    The rest is searched often enough that a flood of requests leaves no more than a few megabytes of garbage.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 5, 5)


def process_age() -> float:
    """Return the seconds since the process started, or where that is unknown, since this module was loaded."""
    if not _STAT.exists():
        return monotonic() - _LOADED
    ticks = int(_STAT.read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    return clock_gettime(CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
