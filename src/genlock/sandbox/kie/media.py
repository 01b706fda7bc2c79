"""Make playable media for simulated results: what was sent, changed; else a landscape; or a short melody."""

import io
import math
import textwrap
from array import array
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import av
from PIL import Image, ImageDraw, ImageFont

from genlock.domain.catalog import Output
from genlock.sandbox.kie.edits import changed_frames, changed_picture
from genlock.sandbox.kie.landscape import paint
from genlock.sandbox.kie.source import FRAMES_PER_SECOND, Source

TYPES = {Output.IMAGE: "image/png", Output.VIDEO: "video/mp4", Output.AUDIO: "audio/mpeg", Output.TEXT: "text/plain"}
SIZES = {"1:1": (512, 512), "16:9": (640, 360), "9:16": (360, 640), "4:3": (512, 384), "3:4": (384, 512)}
FONTS = ("DejaVuSans.ttf", "NotoSans-Regular.ttf", "LiberationSans-Regular.ttf", "Arial.ttf")
VIDEO_SECONDS = 2
SAMPLES_PER_SECOND = 44100
SAMPLES_PER_FRAME = 1152
AUDIO_SECONDS = 3
#: written on the images: they show no more than a landscape, or what was sent
LABEL_NOTE = "simulated"
STRIP = "#1d1a2b"


def make_media(kind: Output, title: str, values: Mapping[str, Any], number: int, source: Source | None = None) -> bytes:
    """Content of one result file. `number` distinguishes the results of one task."""
    match kind:
        case Output.IMAGE:
            return make_image(title, values, number, source)
        case Output.VIDEO:
            return make_video(title, values, number, source)
        case Output.AUDIO:
            return make_audio(number)
        case Output.TEXT:
            return make_text(title, values).encode()


def make_text(title: str, values: Mapping[str, Any]) -> str:
    return f"{title} was asked: " + "; ".join(f"{key}: {value}" for key, value in values.items())


def make_image(title: str, values: Mapping[str, Any], number: int, source: Source | None = None) -> bytes:
    file = io.BytesIO()
    prompt = _prompt(values)
    if source is None:
        picture = draw(title, values, number, 0.0)
    else:
        picture = changed_picture(source, prompt, f"{title} {prompt} {number}")
        if picture.mode == "RGB":  # a cut-out stays as it is: it shows what was sent
            _draw_label(picture, title, prompt, number, strip=True)
    picture.save(file, "PNG", compress_level=3)
    return file.getvalue()


def make_video(title: str, values: Mapping[str, Any], number: int, source: Source | None = None) -> bytes:
    """H.264 that browsers play, with its index at the start; writing that needs a real file."""
    frames = _frames(title, values, number, source)
    first = next(frames)
    with NamedTemporaryFile(suffix=".mp4") as file:
        with av.open(file.name, "w", format="mp4", options={"movflags": "faststart"}) as film:
            stream = film.add_stream("libx264", rate=FRAMES_PER_SECOND, options={"preset": "ultrafast", "crf": "30"})
            stream.width, stream.height = first.size
            stream.pix_fmt = "yuv420p"
            for picture in chain([first], frames):
                frame = av.VideoFrame.from_image(picture)  # type: ignore[no-untyped-call]
                film.mux(stream.encode(frame))
            film.mux(stream.encode(None))
        return Path(file.name).read_bytes()


def _frames(title: str, values: Mapping[str, Any], number: int, source: Source | None) -> Iterator[Image.Image]:
    if source is None:
        count = FRAMES_PER_SECOND * VIDEO_SECONDS
        yield from (draw(title, values, number, place / count) for place in range(count))
        return
    prompt = _prompt(values)
    for picture in changed_frames(source, prompt, f"{title} {prompt} {number}"):
        _draw_label(picture, title, prompt, number, strip=True)
        yield picture


@cache
def make_audio(number: int) -> bytes:
    """Return an MP3 with three fading notes, higher for each `number`."""
    file = io.BytesIO()
    samples = _melody(number)
    with av.open(file, "w", format="mp3") as sound:
        stream = sound.add_stream("libmp3lame", rate=SAMPLES_PER_SECOND, layout="mono")
        for start in range(0, len(samples) - SAMPLES_PER_FRAME, SAMPLES_PER_FRAME):
            frame = av.AudioFrame(format="s16p", layout="mono", samples=SAMPLES_PER_FRAME)
            frame.planes[0].update(samples[start : start + SAMPLES_PER_FRAME].tobytes())
            frame.sample_rate, frame.pts = SAMPLES_PER_SECOND, start
            sound.mux(stream.encode(frame))
        sound.mux(stream.encode(None))
    return file.getvalue()


def _melody(number: int) -> "array[int]":
    samples = array("h")
    for place, step in enumerate((0, 4, 7)):
        pitch = 220 * 2 ** ((step + 2 * number) / 12)
        for tick in range(SAMPLES_PER_SECOND * AUDIO_SECONDS // 3):
            time = tick / SAMPLES_PER_SECOND
            samples.append(int(13000 * math.sin(2 * math.pi * pitch * (time + place)) * math.exp(-3 * time)))
    return samples


def _size(values: Mapping[str, Any]) -> tuple[int, int]:
    asked = str(values.get("aspect_ratio") or values.get("aspectRatio") or values.get("size") or "1:1")
    return SIZES.get(asked, (512, 512))


def _prompt(values: Mapping[str, Any]) -> str:
    return str(values.get("prompt") or values.get("text") or "")


def draw(title: str, values: Mapping[str, Any], number: int, share: float) -> Image.Image:
    """Return the landscape of a result, at the fraction `share` of its video."""
    prompt = _prompt(values)
    picture = paint(_size(values), f"{title} {prompt} {number}", share)
    _draw_label(picture, title, prompt, number, strip=False)
    return picture


def _draw_label(picture: Image.Image, title: str, prompt: str, number: int, *, strip: bool) -> None:
    """Write the prompt and the model at the bottom, on a dark strip where the picture may be of any colour."""
    last = f"{title}  ·  {number + 1}  ·  {LABEL_NOTE}"
    size = _strip_text_size(picture, last) if strip else 17
    first = _wrapped(prompt, picture.width * 17 // size, 3) or (
        f"{picture.width} \N{MULTIPLICATION SIGN} {picture.height}" if strip else ""
    )
    text = f"{first}\n{last}" if first else last
    pen = ImageDraw.Draw(picture)
    place, font = (size * 1.3, picture.height - size * 1.2), _font(size)
    if strip:
        top = pen.multiline_textbbox(place, text, font=font, spacing=size * 0.4, anchor="ld")[1] - size * 0.8
        pen.rectangle((0, top, picture.width, picture.height), fill=STRIP)
    pen.multiline_text(place, text, font=font, fill="#fff6e0", spacing=size * 0.4, anchor="ld")


def _strip_text_size(picture: Image.Image, line: str) -> int:
    """Return a size that suits the picture, and in which the line fits."""
    size = max(11, min(17 * min(picture.size) // 384, 48))
    width = _font(size).getlength(line) + size * 2.6
    return max(8, int(size * min(1.0, picture.width / width)))


def _wrapped(text: str, width: int, lines: int) -> str:
    return "\n".join(textwrap.wrap(text, max(10, width // 11), max_lines=lines, placeholder=" …"))


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return a font with more than Latin letters if the machine has one."""
    for name in FONTS:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)
