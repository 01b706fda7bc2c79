"""Runs the doctor beside a running service, in a thread with an event loop of its own."""

import asyncio
import threading
from collections.abc import AsyncIterator

from genlock.doctor.doctor import Doctor
from genlock.domain.doctor_phase import Phase
from genlock.settings import Settings


async def examine_in_thread(settings: Settings) -> AsyncIterator[Phase]:
    """Yield each phase as soon as it has ended. The checks never block the event loop of the caller.

    The thread ends with the process: a stop does not wait for it, and the checks leave nothing behind.
    """
    loop, phases = asyncio.get_running_loop(), asyncio.Queue[Phase | BaseException | None]()

    def hand_over(item: Phase | BaseException | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(phases.put_nowait, item)

    async def examine() -> None:
        async for phase in Doctor(settings).phases():
            hand_over(phase)

    def run() -> None:
        try:
            asyncio.run(examine())
        except Exception as error:  # noqa: BLE001 - raised again by the caller
            hand_over(error)
        else:
            hand_over(None)

    threading.Thread(target=run, name="genlock-doctor", daemon=True).start()
    while (item := await phases.get()) is not None:
        if isinstance(item, BaseException):
            raise item
        yield item
