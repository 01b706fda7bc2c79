"""Input files of a simulated task, decoded within limits, so that its result shows what was sent."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import av
from PIL import Image, ImageOps

from genlock.domain.catalog import Category, Model, Output
from genlock.domain.field import FieldType
from genlock.sandbox.kie.files import FileHost

BYTES_MAX = 60_000_000
PIXELS_MAX = 60_000_000
SIDE_MAX = 2048  #: longer sides are reduced when a picture is decoded
FRAME_SIDE_MAX = 640
FRAMES_PER_SECOND = 10
FRAMES_MAX = 40
PICTURES_MAX = 4
#: what Pillow raises for content that is no picture, or a malicious one
NOT_A_PICTURE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning)


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a result is made from: pictures, or the frames of a video, and what the model does with them."""

    category: Category
    pictures: tuple[Image.Image, ...] = ()
    frames: tuple[Image.Image, ...] = ()
    #: the result is the video and its continuation
    continued: bool = False

    @property
    def picture(self) -> Image.Image:
        """The first picture, or the last frame, which a continuation begins with."""
        return self.pictures[0] if self.pictures else self.frames[-1]


def read_source(model: Model, urls: Mapping[FieldType, list[str]], files: FileHost) -> Source | None:
    """Decode the inputs that this host has; None if no picture and no frame is among them."""
    continued = model.operation == "extend" or any("clip" in field.name for field in model.fields)
    if model.outputs[0] is Output.VIDEO:
        frames = next((found for url in urls[FieldType.VIDEO] if (found := _frames(_content(files, url)))), ())
        if frames:
            return Source(category=model.category, frames=frames, continued=continued)
    contents = (_content(files, url) for url in urls[FieldType.IMAGE][:PICTURES_MAX])
    pictures = tuple(picture for content in contents if (picture := decode_picture(content)))
    return Source(category=model.category, pictures=pictures) if pictures else None


def _content(files: FileHost, url: str) -> bytes:
    file = files.find(url)
    content = file.read() if file and file.available else b""
    return content if len(content) <= BYTES_MAX else b""


def decode_picture(content: bytes) -> Image.Image | None:
    """Return the picture upright, with transparency if it has some, and no side longer than SIDE_MAX."""
    try:
        with Image.open(io.BytesIO(content)) as opened:
            if opened.width * opened.height > PIXELS_MAX:
                return None
            opened.draft("RGB", (SIDE_MAX, SIDE_MAX))
            opened.thumbnail((SIDE_MAX, SIDE_MAX))
            upright = ImageOps.exif_transpose(opened)
            return upright.convert("RGBA" if upright.has_transparency_data else "RGB")
    except NOT_A_PICTURE:
        return None


def _frames(content: bytes) -> tuple[Image.Image, ...]:
    """Return the first frames of a video, FRAMES_PER_SECOND for each second, reduced to FRAME_SIDE_MAX."""
    if not content:
        return ()
    try:
        with av.open(io.BytesIO(content), "r") as film:
            return tuple(_sampled(film))
    except (av.error.FFmpegError, OSError, ValueError):
        return ()


def _sampled(film: "av.container.InputContainer") -> Iterator[Image.Image]:
    stream = next(iter(film.streams.video), None)
    if stream is None or stream.codec_context.width * stream.codec_context.height > PIXELS_MAX:
        return
    taken = 0
    for number, frame in enumerate(film.decode(stream)):
        at = number / FRAMES_PER_SECOND if frame.pts is None else frame.time
        if at * FRAMES_PER_SECOND < taken:
            continue
        picture: Image.Image = frame.to_image()  # type: ignore[no-untyped-call]
        picture.thumbnail((FRAME_SIDE_MAX, FRAME_SIDE_MAX))
        yield picture
        taken += 1
        if taken == FRAMES_MAX:
            return
