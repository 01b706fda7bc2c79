"""Files and credits: the client against both hosts of the simulator."""

from collections.abc import AsyncIterator

import aiohttp
import av
import pytest
from PIL import Image

from genlock.domain.errors import ProviderError
from genlock.providers.kie.client import Kie
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.simulator import KieSimulator
from genlock.sandbox.telegram.media import AGENT
from tests.providers.models import job, order

BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)"}
CONTENT = bytes(range(256)) * 10_000


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers=BROWSER) as session:
        yield session


async def fetch(browser: aiohttp.ClientSession, url: str) -> bytes:
    async with browser.get(url) as response:
        assert response.status == 200
        return await response.read()


async def made(kie: Kie, simulator: KieSimulator, model: str, *faults: Fault, **values: object) -> list[str]:
    simulator.faults.order(*faults)
    ordered = job(model, {"prompt": "лиса в снегу"} | values)
    handle = await kie.create(order(ordered))
    await simulator.service.settled()
    return [piece.value for piece in (await kie.status(handle, order(ordered))).pieces]


# results


async def test_an_image_can_be_decoded(
    kie: Kie, simulator: KieSimulator, browser: aiohttp.ClientSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    [url] = await made(kie, simulator, "z-image", aspect_ratio="16:9")
    file = tmp_path_factory.mktemp("media") / "a.png"
    file.write_bytes(await fetch(browser, url))
    with Image.open(file) as picture:
        picture.load()
        assert (picture.format, picture.size) == ("PNG", (640, 360))
        assert len(picture.getcolors(100_000) or ()) > 10, "it is not a blank image"


async def test_a_video_can_be_played(
    kie: Kie, simulator: KieSimulator, browser: aiohttp.ClientSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    [url] = await made(kie, simulator, "film")
    file = tmp_path_factory.mktemp("media") / "a.mp4"
    file.write_bytes(content := await fetch(browser, url))
    assert content.index(b"moov") < content.index(b"mdat"), "it can be played before it is fully loaded"
    with av.open(str(file)) as film:
        stream = film.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert len(list(film.decode(stream))) == 20


@pytest.mark.parametrize(("model", "tracks"), [("voice", 1), ("suno/generate", 2)])
async def test_a_sound_can_be_played(
    kie: Kie,
    simulator: KieSimulator,
    browser: aiohttp.ClientSession,
    tmp_path_factory: pytest.TempPathFactory,
    model: str,
    tracks: int,
) -> None:
    urls = await made(kie, simulator, model)
    contents = [await fetch(browser, url) for url in urls]
    assert len(set(contents)) == tracks
    file = tmp_path_factory.mktemp("media") / "a.mp3"
    file.write_bytes(contents[0])
    with av.open(str(file)) as sound:
        assert sum(frame.samples for frame in sound.decode(sound.streams.audio[0])) > 100_000


@pytest.mark.parametrize("agent", [None, "", "Python-urllib/3.11", "curl/8"])
async def test_a_client_that_is_no_browser_gets_no_file(kie: Kie, simulator: KieSimulator, agent: str | None) -> None:
    [url] = await made(kie, simulator, "z-image")
    skip = ["User-Agent"] if agent is None else []
    headers = {} if agent is None else {"User-Agent": agent}
    async with (
        aiohttp.ClientSession(headers=headers, skip_auto_headers=skip) as session,
        session.get(url) as response,
    ):
        assert response.status == 403


async def test_telegram_may_fetch_a_result(kie: Kie, simulator: KieSimulator) -> None:
    [url] = await made(kie, simulator, "z-image")
    async with aiohttp.ClientSession(headers={"User-Agent": AGENT}) as session, session.get(url) as response:
        assert (response.status, response.content_type) == (200, "image/png")


async def test_files_expire(kie: Kie, simulator: KieSimulator, browser: aiohttp.ClientSession) -> None:
    [url] = await made(kie, simulator, "z-image")
    simulator.service.files.expire()
    async with browser.get(url) as response:
        assert response.status == 404


async def test_a_file_may_be_missing_or_a_web_page(
    kie: Kie, simulator: KieSimulator, browser: aiohttp.ClientSession
) -> None:
    [gone] = await made(kie, simulator, "z-image", Fault.FILE_GONE)
    async with browser.get(gone) as response:
        assert response.status == 404
    [page] = await made(kie, simulator, "z-image", Fault.FILE_HTML)
    assert (await fetch(browser, page)).startswith(b"<!doctype html>")


# uploads


async def chunks() -> AsyncIterator[bytes]:
    for start in range(0, len(CONTENT), 10_000):
        yield CONTENT[start : start + 10_000]


async def test_a_file_is_uploaded_while_it_is_read(
    kie: Kie, simulator: KieSimulator, browser: aiohttp.ClientSession
) -> None:
    url = await kie.upload(chunks(), "a.bin", "in")
    assert url == f"{simulator.files_url}/kieai/1/in/a.bin"
    assert await fetch(browser, url) == CONTENT


async def test_a_refused_upload_is_a_provider_error(kie: Kie) -> None:
    with pytest.raises(ProviderError, match="Missing required parameter: uploadPath"):
        await kie.upload(chunks(), "a.bin", "")


# the account


async def test_credits_are_deducted_at_once_and_refunded_on_failure(kie: Kie, simulator: KieSimulator) -> None:
    start = await kie.credits()
    await made(kie, simulator, "z-image")
    assert await kie.credits() == start - 800
    simulator.faults.order(Fault.TASK_FAIL)
    simulator.service.hold_tasks()
    await kie.create(order(job()))
    assert await kie.credits() == start - 1600
    simulator.service.release_tasks()
    await simulator.service.settled()
    assert await kie.credits() == start - 800
