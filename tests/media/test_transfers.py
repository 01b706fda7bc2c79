"""A stop interrupts transfers of files, and nothing else."""

import asyncio

import pytest
from aiohttp import web

from genlock.domain.errors import ChannelBusy
from genlock.media.download import Downloads
from genlock.media.transfers import Transfers
from tests.media.file_server import running_file_server


async def test_a_stop_interrupts_the_transfers_that_run_and_those_that_begin_later() -> None:
    transfers, running = Transfers(), asyncio.Event()

    async def transfer() -> None:
        async with transfers.interruptible():
            running.set()
            await asyncio.Event().wait()

    first = asyncio.create_task(transfer())
    await running.wait()
    transfers.interrupt()
    for attempt in (first, transfer()):
        with pytest.raises(ChannelBusy) as busy:
            await attempt
        assert (busy.value.after, busy.value.failed) == (0.0, False), "another instance goes on at once"


async def test_a_transfer_that_has_ended_is_not_interrupted() -> None:
    transfers = Transfers()
    async with transfers.interruptible():
        await asyncio.sleep(0)
    transfers.interrupt()
    await asyncio.sleep(0)  # an interruption would arrive here


async def test_a_time_limit_inside_a_transfer_keeps_its_meaning() -> None:
    with pytest.raises(TimeoutError):
        async with Transfers().interruptible(), asyncio.timeout(0):
            await asyncio.Event().wait()


async def test_a_cancelled_transfer_stays_cancelled() -> None:
    transfers = Transfers()

    async def transfer() -> None:
        async with transfers.interruptible():
            await asyncio.Event().wait()

    task = asyncio.create_task(transfer())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_stop_interrupts_a_download_that_hangs_and_no_result_counts_as_wrong() -> None:
    asked = asyncio.Event()

    async def hang(_: web.Request) -> web.StreamResponse:
        asked.set()
        await asyncio.Event().wait()
        return web.Response()

    async with running_file_server() as files:
        downloads, url = Downloads(private=[files.host]), files.serve("film.mp4", hang)

        async def fetch() -> None:
            async with downloads.fetch(url, 1000):
                pass

        for attempt in (fetch(), downloads.peek(url)):
            task = asyncio.ensure_future(attempt)
            await asked.wait()
            downloads.transfers.interrupt()
            with pytest.raises(ChannelBusy):
                await task
        await downloads.close()
