"""Files whose content may be hostile are read in a process that can be killed, and that knows no secret."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pytest
from PIL import Image

from genlock.domain.errors import ChannelBusy
from genlock.media import sniff
from genlock.media.budget import TooComplex
from genlock.media.photo import NotUsableAsPhoto
from genlock.media.process import MediaProcess
from genlock.media.transfers import Transfers
from tests.changes import PATIENCE_SECONDS, poll_until
from tests.media.samples import SECONDS, encode_audio, image

pytestmark = pytest.mark.process


@pytest.fixture
async def reader() -> AsyncIterator[MediaProcess]:
    process = MediaProcess()
    yield process
    await process.close()


def file_of(content: bytes) -> IO[bytes]:
    file = TemporaryFile()  # noqa: SIM115 - the test closes it
    file.write(content)
    return file


def of_process(pid: int | None, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8")


def bomb_of_ogg_packets() -> bytes:
    """More packets than any honest file has, with nothing else wrong."""
    first = b"OggS\0\2" + bytes(20) + b"\2\x08\x08" + b"OpusHeadOpusTags"
    return first + (b"OggS\0\0" + bytes(20) + b"\xff" + bytes(255)) * 4000


async def test_one_process_measures_one_file_after_the_other(reader: MediaProcess) -> None:
    voice = encode_audio("ogg", "libopus", "s16")
    assert reader.pid is None, "it starts with the first file"
    with file_of(voice) as file, file_of(b"no media") as other:
        lengths = await asyncio.gather(reader.measure(file), reader.measure(other), reader.measure(file))
        first = reader.pid
        assert await reader.measure(file) == lengths[0]
    assert lengths[0] == pytest.approx(SECONDS, abs=0.3)
    assert [*lengths[1:]] == [None, lengths[0]]
    assert reader.pid == first


async def test_an_image_is_converted_and_an_unusable_one_refused(reader: MediaProcess) -> None:
    with file_of(image((300, 200), form="WEBP")) as file, file_of(image()) as fitting, file_of(b"BMbroken") as broken:
        photo = await reader.fit_photo(file, 1, sniff.WEBP)
        assert photo is not None
        with photo, Image.open(photo) as opened:
            assert (opened.format, opened.size) == ("JPEG", (300, 200))
        assert await reader.fit_photo(fitting, 1, sniff.PNG) is None
        with pytest.raises(NotUsableAsPhoto):
            await reader.fit_photo(broken, 1, sniff.BMP)


async def test_a_file_with_too_many_elements_is_refused_and_the_process_goes_on(reader: MediaProcess) -> None:
    with file_of(bomb_of_ogg_packets()) as file, file_of(encode_audio("ogg", "libopus", "s16")) as voice:
        with pytest.raises(TooComplex):
            await reader.measure(file)
        first = reader.pid
        assert await reader.measure(voice) == pytest.approx(SECONDS, abs=0.3)
        assert reader.pid == first


async def test_a_process_that_hangs_is_killed_and_replaced() -> None:
    reader = MediaProcess(seconds_max=5.0)
    with file_of(encode_audio("ogg", "libopus", "s16")) as voice:
        assert await reader.measure(voice)
        hanging = reader.pid
        assert hanging is not None
        os.kill(hanging, signal.SIGSTOP)
        with pytest.raises(TooComplex):
            await reader.measure(voice)
        assert reader.pid is None
        assert await reader.measure(voice) == pytest.approx(SECONDS, abs=0.3)
        assert reader.pid != hanging
    await reader.close()


async def test_a_process_that_dies_refuses_the_file_and_is_replaced(reader: MediaProcess) -> None:
    with file_of(encode_audio("ogg", "libopus", "s16")) as voice:
        assert await reader.measure(voice)
        assert reader.pid is not None
        os.kill(reader.pid, signal.SIGKILL)
        with pytest.raises(TooComplex):
            await reader.measure(voice)
        assert await reader.measure(voice)


async def test_a_cancelled_request_leaves_no_answer_for_the_next_one(reader: MediaProcess) -> None:
    with file_of(encode_audio("ogg", "libopus", "s16")) as voice, file_of(b"no media") as other:
        assert await reader.measure(voice)
        assert reader.pid is not None
        os.kill(reader.pid, signal.SIGSTOP)
        waiting = asyncio.create_task(reader.measure(voice))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await reader.measure(other) is None


async def test_the_process_ends_when_there_is_nothing_to_do() -> None:
    reader = MediaProcess(idle_seconds=0.0)
    with file_of(b"no media") as file:
        assert await reader.measure(file) is None
        await asyncio.sleep(0.01)  # a timer of zero seconds runs before this one
        assert reader.pid is None
        assert await reader.measure(file) is None
    await reader.close()
    await reader.close()


async def test_the_process_has_no_secrets_and_ends_by_no_signal_meant_for_the_service(
    reader: MediaProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENLOCK_TELEGRAM_TOKEN", "42:secret")
    with file_of(b"no media") as file:
        assert await reader.measure(file) is None
        first = reader.pid
        assert first is not None
        assert "42:secret" not in of_process(first, "environ")
        os.kill(first, signal.SIGTERM)
        os.kill(first, signal.SIGINT)
        assert await reader.measure(file) is None
        assert reader.pid == first


async def test_each_file_has_limits_of_time_and_memory(reader: MediaProcess) -> None:
    with file_of(b"no media") as file:
        await reader.measure(file)
    limits = of_process(reader.pid, "limits").splitlines()
    soft = {line[:25].strip(): line[26:47].strip() for line in limits}
    assert int(soft["Max cpu time"]) <= 10
    assert int(soft["Max address space"]) <= 512 * 1024 * 1024


async def test_a_stop_interrupts_a_file_that_hangs_and_those_that_wait_for_it_and_kills_the_process() -> None:
    transfers = Transfers()
    reader = MediaProcess(transfers)
    with file_of(encode_audio("ogg", "libopus", "s16")) as file:
        await reader.measure(file)
        hanging = reader.pid
        assert hanging is not None
        os.kill(hanging, signal.SIGSTOP)
        requests = [asyncio.ensure_future(reader.measure(file)) for _ in range(8)]
        await asyncio.sleep(0)
        transfers.interrupt()
        async with asyncio.timeout(PATIENCE_SECONDS):
            results = await asyncio.gather(*requests, return_exceptions=True)
    assert {type(result) for result in results} == {ChannelBusy}
    assert reader.pid is None
    await poll_until(lambda: not Path(f"/proc/{hanging}/exe").exists())
    await reader.close()
