"""Results of the Kie.ai simulator show the file that was sent, changed."""

import io
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import av
import pytest
from PIL import Image, ImageChops

from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from genlock.sandbox.telegram.voice import sample_voice

BROWSER = {"User-Agent": "Mozilla/5.0"}


def photo(size: tuple[int, int] = (400, 300), kind: str = "PNG", **more: Any) -> bytes:
    """A picture whose left half is red and whose right half is blue."""
    picture = Image.new("RGB", size, (200, 30, 30))
    picture.paste((30, 30, 200), (size[0] // 2, 0, *size))
    file = io.BytesIO()
    picture.save(file, kind, **more)
    return file.getvalue()


def huge() -> bytes:
    """A small file of more pixels than any photo has."""
    file = io.BytesIO()
    Image.new("1", (12_000, 12_000)).save(file, "PNG")
    return file.getvalue()


def is_red_and_blue(picture: Image.Image) -> bool:
    """Tell whether the left side has more red than blue, compared with the right one."""
    red, _, blue = picture.convert("RGB").split()
    excess = ImageChops.subtract(red, blue, scale=2, offset=128)
    left, right = (excess.getpixel((excess.width * part // 8, excess.height // 3)) for part in (3, 5))
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    return left > right + 20


def frames(film: bytes) -> list[Image.Image]:
    with av.open(io.BytesIO(film), "r") as opened:
        return [frame.to_image() for frame in opened.decode(video=0)]  # type: ignore[no-untyped-call]


class Customer:
    """Uploads files, orders, and downloads the results."""

    def __init__(self, kie: KieSimulator, session: aiohttp.ClientSession) -> None:
        self.kie = kie
        self._session = session

    async def upload(self, content: bytes, name: str = "photo.png") -> str:
        form = aiohttp.FormData({"uploadPath": "images", "fileName": name})
        form.add_field("file", content, filename=name)
        answer = await self._post("/api/file-stream-upload", data=form)
        return str(answer["data"]["downloadUrl"])

    async def order(self, model: str, **values: Any) -> str:
        answer = await self._post("/api/v1/jobs/createTask", json={"model": model, "input": values})
        assert answer["code"] == 200, answer
        return str(self.kie.service.tasks[answer["data"]["taskId"]].results[0])

    async def download(self, url: str) -> bytes:
        async with self._session.get(url, headers=BROWSER) as response:
            assert response.status == 200
            return await response.read()

    async def result(self, model: str, **values: Any) -> bytes:
        return await self.download(await self.order(model, **values))

    async def picture(self, model: str, **values: Any) -> Image.Image:
        return Image.open(io.BytesIO(await self.result(model, **values)))

    async def _post(self, path: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.kie.key}"}
        async with self._session.post(self.kie.url + path, headers=headers, **more) as response:
            return await response.json(content_type=None)


@pytest.fixture
async def customer() -> AsyncIterator[Customer]:
    async with running_kie(speed=1000, create_limit=(1000, 1.0)) as kie, aiohttp.ClientSession() as session:
        yield Customer(kie, session)


async def test_an_edit_shows_the_photo_in_other_colours_and_an_edit_of_it_shows_both(customer: Customer) -> None:
    sent = await customer.upload(photo())
    edited = await customer.order("google/nano-banana-edit", prompt="make it winter", image_urls=[sent])
    picture = Image.open(io.BytesIO(await customer.download(edited)))
    assert picture.size == (400, 300)
    assert is_red_and_blue(picture)
    assert picture.tobytes() != Image.open(io.BytesIO(photo())).tobytes()
    other = await customer.picture("google/nano-banana-edit", prompt="as a night", image_urls=[sent])
    assert picture.tobytes() != other.tobytes(), "another wish makes another picture"
    again = await customer.picture("google/nano-banana-edit", prompt="add a moon", image_urls=[edited, sent])
    assert is_red_and_blue(again)


@pytest.mark.slow
async def test_an_animation_moves_the_photo_and_changes_and_continuations_show_the_video(customer: Customer) -> None:
    sent = await customer.upload(photo((300, 400)))
    film = await customer.order("bytedance/v1-pro-fast-image-to-video", prompt="it moves", image_url=sent)
    shown = frames(await customer.download(film))
    assert shown[0].size == (300, 400)
    assert is_red_and_blue(shown[0])
    assert shown[0].tobytes() != shown[-1].tobytes(), "the picture moves"
    edited = frames(await customer.result("wan/2-7-videoedit", prompt="at night", video_url=film))
    assert is_red_and_blue(edited[0])
    longer = frames(await customer.result("wan/2-7-image-to-video", prompt="goes on", first_clip_url=film))
    assert len(longer) > len(shown)
    assert is_red_and_blue(longer[0])
    assert is_red_and_blue(longer[-1])
    larger = frames(await customer.result("topaz/video-upscale", video_url=film))
    assert larger[0].size == (600, 800)


async def test_an_upscale_is_larger_and_a_cut_out_is_transparent_around_the_middle(customer: Customer) -> None:
    sent = await customer.upload(photo())
    larger = await customer.picture("recraft/crisp-upscale", image=sent)
    assert larger.size == (800, 600)
    assert is_red_and_blue(larger)
    cut = await customer.order("recraft/remove-background", image=sent)
    picture = Image.open(io.BytesIO(await customer.download(cut)))
    assert picture.mode == "RGBA"
    assert (picture.getchannel("A").getpixel((0, 0)), picture.getchannel("A").getpixel((200, 150))) == (0, 255)
    placed = await customer.picture("google/nano-banana-edit", prompt="at the sea", image_urls=[cut])
    assert placed.mode == "RGB"
    assert is_red_and_blue(placed)


async def test_a_photo_lying_on_its_side_is_shown_upright(customer: Customer) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    sent = await customer.upload(photo(kind="JPEG", exif=exif), "photo.jpg")
    picture = await customer.picture("google/nano-banana-edit", prompt="x", image_urls=[sent])
    assert picture.size == (300, 400)


@pytest.mark.slow
async def test_large_and_broken_inputs_are_bounded(customer: Customer) -> None:
    large = await customer.upload(photo((3000, 1500)))
    picture = await customer.picture("google/nano-banana-edit", prompt="x", image_urls=[large])
    assert picture.size == (2048, 1024)
    thin = await customer.upload(photo((3000, 2)))
    broken = [await customer.upload(content) for content in (b"", b"<html>", photo()[:60], huge())]
    for sent in (*broken, "https://example.com/elsewhere.png"):
        shown = await customer.picture("google/nano-banana-edit", prompt="x", image_urls=[sent])
        assert shown.size == (512, 512), "a landscape, as without a file"
    film = await customer.result("bytedance/v1-pro-fast-image-to-video", prompt="x", image_url=thin)
    assert frames(film)[0].height >= 32
    assert frames(await customer.result("topaz/video-upscale", video_url=large)), "a picture instead of a video"


async def test_an_input_that_has_expired_is_not_shown(customer: Customer) -> None:
    sent = await customer.upload(photo())
    customer.kie.service.files.expire()
    picture = await customer.picture("google/nano-banana-edit", prompt="x", image_urls=[sent])
    assert not is_red_and_blue(picture)


@pytest.mark.parametrize(("language", "text"), [("ru", "Рыжая лиса"), ("en", "A red fox"), ("", "A red fox")])
async def test_a_recording_is_transcribed_in_the_language_of_who_recorded_it(
    customer: Customer, language: str, text: str
) -> None:
    sent = await customer.upload(sample_voice(language), "voice.ogg")
    assert (await customer.order("elevenlabs/speech-to-text", audio_url=sent)).startswith(text)
