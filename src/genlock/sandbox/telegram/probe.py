"""Detect what a file is by decoding it, and make the sizes of a photo."""

import io
import warnings
import zlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from PIL import Image, UnidentifiedImageError


def _codecs() -> Any:
    """PyAV is an optional extra; without it videos and audio are detected by their first bytes."""
    try:
        return import_module("av")
    except ImportError:
        return None


AV = _codecs()

PIXELS_MAX = 60_000_000
LONG_SIDES = (90, 320, 800, 1280)
THUMBNAIL_SIDE_MAX = 320
PHOTO_FORMATS = {"JPEG", "PNG", "WEBP", "BMP", "TIFF"}
#: container names of libav, and their MIME subtypes
CONTAINERS = {"mp4": "mp4", "matroska": "webm", "ogg": "ogg", "mp3": "mpeg", "wav": "wav", "flac": "flac", "aac": "aac"}


class NotMedia(Exception):
    """The content cannot be decoded."""


@dataclass(frozen=True, kw_only=True)
class Probe:
    kind: str  #: photo, animation, video, audio or document
    type: str = ""
    width: int = 0
    height: int = 0
    seconds: float = 0.0
    sound: bool = False
    #: of a song, from its tags
    title: str = ""
    performer: str = ""


def probe_content(content: bytes) -> Probe:
    return _as_picture(content) or _as_stream(content) or Probe(kind="document", type=_plain_type(content))


def _as_picture(content: bytes) -> Probe | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content)) as picture:
                kind = "animation" if picture.format == "GIF" else "photo"
                known = picture.format == "GIF" or picture.format in PHOTO_FORMATS
                if not known:
                    return None
                return Probe(
                    kind=kind, type=picture.get_format_mimetype() or "", width=picture.width, height=picture.height
                )
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError):
        return None


def _as_stream(content: bytes) -> Probe | None:
    if AV is None:
        return _by_first_bytes(content)
    try:
        with AV.open(io.BytesIO(content)) as media:
            names = media.format.name.split(",")
            container = next((CONTAINERS[name] for name in names if name in CONTAINERS), "")
            seconds = (media.duration or 0) / 1_000_000
            if not container or not (media.streams.video or media.streams.audio):
                return None
            pictures = [stream for stream in media.streams.video if stream.codec_context.width and container != "mpeg"]
            if pictures:
                return Probe(
                    kind="video",
                    type=f"video/{container}",
                    width=pictures[0].codec_context.width,
                    height=pictures[0].codec_context.height,
                    seconds=seconds,
                    sound=bool(media.streams.audio),
                )
            title, performer = (media.metadata.get(name, "") for name in ("title", "artist"))
            return Probe(
                kind="audio",
                type=f"audio/{container}",
                seconds=seconds,
                sound=True,
                title=title,
                performer=performer,
            )
    except (AV.FFmpegError, OSError, ValueError):
        return None


def _by_first_bytes(content: bytes) -> Probe | None:
    if content[4:8] == b"ftyp":
        return Probe(kind="video", type="video/mp4", width=320, height=240, sound=True)
    if content[:3] == b"ID3" or content[:2] in {b"\xff\xfb", b"\xff\xf3"}:
        return Probe(kind="audio", type="audio/mpeg", sound=True)
    if content[:4] == b"OggS":
        return Probe(kind="audio", type="audio/ogg", sound=True)
    return None


def _plain_type(content: bytes) -> str:
    if content[:2] == b"\x1f\x8b":
        return "application/x-tgsticker" if _unpacked(content).startswith(b"{") else "application/gzip"
    return {b"%PDF": "application/pdf", b"PK\x03\x04": "application/zip"}.get(content[:4], "")


def _unpacked(content: bytes) -> bytes:
    """Return the first bytes of a gzip file."""
    try:
        return zlib.decompressobj(wbits=31).decompress(content, 64)
    except zlib.error:
        return b""


@lru_cache(maxsize=16)  # every delivery attempt sends the same bytes
def make_sizes(content: bytes) -> list[tuple[int, int, bytes]]:
    """Sizes of a photo as Telegram stores them: JPEGs, the largest last, none larger than the original."""
    try:
        with Image.open(io.BytesIO(content)) as opened:
            if opened.width * opened.height > PIXELS_MAX:
                raise NotMedia
            whole = opened.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise NotMedia from error
    longest = max(whole.size)
    sides = [side for side in LONG_SIDES if side < longest] + [min(longest, LONG_SIDES[-1])]
    return [_jpeg(whole, side) for side in dict.fromkeys(sides)]


def _jpeg(whole: Image.Image, side: int) -> tuple[int, int, bytes]:
    picture = whole
    if max(whole.size) > side:
        picture = whole.copy()
        picture.thumbnail((side, side), Image.Resampling.BILINEAR)
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=87, progressive=True, optimize=True)
    return picture.width, picture.height, file.getvalue()


@lru_cache(maxsize=16)
def make_thumbnail(content: bytes) -> tuple[int, int, bytes] | None:
    """Return the thumbnail that Telegram makes of a picture or a video: a JPEG. None for other content.

    Filter and encoding give the sizes in bytes that tests of client libraries expect from the real server.
    """
    try:
        frame = _first_frame(content)
    except NotMedia:
        return None
    frame.thumbnail((THUMBNAIL_SIDE_MAX, THUMBNAIL_SIDE_MAX), Image.Resampling.BOX)
    file = io.BytesIO()
    frame.save(file, "JPEG", quality=85, optimize=True, icc_profile=frame.info.get("icc_profile"))
    return frame.width, frame.height, file.getvalue()


def _first_frame(content: bytes) -> Image.Image:
    """Return a picture, or the first one of an animation or a video. Raises NotMedia."""
    try:
        with Image.open(io.BytesIO(content)) as opened:
            if opened.width * opened.height > PIXELS_MAX:
                raise NotMedia
            opened.draft("RGB", (THUMBNAIL_SIDE_MAX, THUMBNAIL_SIDE_MAX))  # decode a JPEG at a smaller size
            return _on_white(opened) if opened.has_transparency_data else opened.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return _first_video_frame(content)


def _on_white(transparent: Image.Image) -> Image.Image:
    whole = Image.new("RGB", transparent.size, "white")
    picture = transparent.convert("RGBA")
    whole.paste(picture, mask=picture)
    whole.info = transparent.info
    return whole


def _first_video_frame(content: bytes) -> Image.Image:
    if AV is None:
        raise NotMedia
    try:
        with AV.open(io.BytesIO(content)) as media:
            frame: Image.Image = next(media.decode(video=0)).to_image()
    except (AV.FFmpegError, StopIteration, IndexError, OSError, ValueError) as error:
        raise NotMedia from error
    return frame
