"""Make playable media for simulated results: an image or video that shows the prompt, or a short melody."""

import io
import math
import textwrap
from array import array
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import av
from PIL import Image, ImageDraw, ImageFont

from genlock.domain.catalog import Output
from genlock.sandbox.kie.landscape import paint

TYPES = {Output.IMAGE: "image/png", Output.VIDEO: "video/mp4", Output.AUDIO: "audio/mpeg", Output.TEXT: "text/plain"}
SIZES = {"1:1": (512, 512), "16:9": (640, 360), "9:16": (360, 640), "4:3": (512, 384), "3:4": (384, 512)}
FONTS = ("DejaVuSans.ttf", "NotoSans-Regular.ttf", "LiberationSans-Regular.ttf", "Arial.ttf")
FRAMES_PER_SECOND = 10
VIDEO_SECONDS = 2
SAMPLES_PER_SECOND = 44100
SAMPLES_PER_FRAME = 1152
AUDIO_SECONDS = 3
#: written on every image: it shows a landscape, not what the prompt asked for
LABEL_NOTE = "simulated"


def make_media(kind: Output, title: str, values: Mapping[str, Any], number: int) -> bytes:
    """Content of one result file. `number` distinguishes the results of one task."""
    match kind:
        case Output.IMAGE:
            return make_image(title, values, number)
        case Output.VIDEO:
            return make_video(title, values, number)
        case Output.AUDIO:
            return make_audio(number)
        case Output.TEXT:
            return make_text(title, values).encode()


def make_text(title: str, values: Mapping[str, Any]) -> str:
    return f"{title} was asked: " + "; ".join(f"{key}: {value}" for key, value in values.items())


def make_image(title: str, values: Mapping[str, Any], number: int) -> bytes:
    file = io.BytesIO()
    draw(title, values, number, 0.0).save(file, "PNG", compress_level=3)
    return file.getvalue()


def make_video(title: str, values: Mapping[str, Any], number: int) -> bytes:
    """H.264 that browsers play, with its index at the start; writing that needs a real file."""
    frames = FRAMES_PER_SECOND * VIDEO_SECONDS
    with NamedTemporaryFile(suffix=".mp4") as file:
        with av.open(file.name, "w", format="mp4", options={"movflags": "faststart"}) as film:
            stream = film.add_stream("libx264", rate=FRAMES_PER_SECOND, options={"preset": "ultrafast", "crf": "30"})
            stream.width, stream.height = _size(values)
            stream.pix_fmt = "yuv420p"
            for place in range(frames):
                picture = draw(title, values, number, place / frames)
                frame = av.VideoFrame.from_image(picture)  # type: ignore[no-untyped-call]
                film.mux(stream.encode(frame))
            film.mux(stream.encode(None))
        return Path(file.name).read_bytes()


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


def draw(title: str, values: Mapping[str, Any], number: int, share: float) -> Image.Image:
    """Return the picture of a result, at the fraction `share` of its video."""
    prompt = str(values.get("prompt") or values.get("text") or "")
    picture = paint(_size(values), f"{title} {prompt} {number}", share)
    lines = [_wrapped(prompt, picture.width, 3)] if prompt else []
    lines.append(f"{title}  ·  {number + 1}  ·  {LABEL_NOTE}")
    _draw_label(picture, "\n".join(lines))
    return picture


def _draw_label(picture: Image.Image, text: str) -> None:
    """Write the text at the bottom of the image."""
    pen = ImageDraw.Draw(picture)
    pen.multiline_text((22, picture.height - 20), text, font=_font(17), fill="#fff6e0", spacing=7, anchor="ld")


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
