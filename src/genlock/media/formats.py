"""What a file is, by looking at its first bytes, then at what its server says; and photos made to fit."""

import io
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import IO

from PIL import ExifTags, Image, ImageOps

MEGABYTE = 1024 * 1024
#: what Telegram takes by upload, and what it fetches by itself
UPLOAD_BYTES_MAX = 50 * MEGABYTE
PHOTO_BYTES_MAX = 10 * MEGABYTE
PHOTO_FETCH_BYTES_MAX = 5 * MEGABYTE
FETCH_BYTES_MAX = 20 * MEGABYTE
SIDES_MAX = 10_000
RATIO_MAX = 20
#: the longest side of a photo that had to be made smaller; Telegram shows no more than this
LONG_SIDE = 4096
#: a picture that takes more memory than this is not unpacked here; while it is, some decoders keep copies of their own
UNPACKED_BYTES_MAX = 200_000_000
_DECODER_COPIES = {"WEBP": 3, "AVIF": 3, "TIFF": 2}
_ONE_BYTE = frozenset({"1", "L", "P"})
STRIP_ROWS = 64
_ORIENTATION = ExifTags.Base.Orientation
_PAGE = re.compile(rb"(<!doctype html|<html|<head|<body|<script|<title|<\?xml|<error)", re.IGNORECASE)
_JSON = re.compile(rb'[{\[]\s*(["{}\[\]\d-]|true|false|null)')


class Kind(StrEnum):
    """How Telegram shows a file."""

    PHOTO = "photo"
    VIDEO = "video"
    ANIMATION = "animation"
    AUDIO = "audio"
    DOCUMENT = "document"


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    kind: Kind
    suffix: str
    #: what a server must call it before Telegram takes it from there; empty: it takes it by upload only
    types: tuple[str, ...] = ()


class NoMedia(Exception):
    """Where a file was promised there is a page, an error in JSON, or nothing."""


class DoesNotFit(Exception):
    """It cannot be made into a photo that Telegram takes."""


JPEG = Format(kind=Kind.PHOTO, suffix=".jpg", types=("image/jpeg", "image/jpg"))
PNG = Format(kind=Kind.PHOTO, suffix=".png", types=("image/png",))
WEBP = Format(kind=Kind.PHOTO, suffix=".webp")
AVIF = Format(kind=Kind.PHOTO, suffix=".avif")
BMP = Format(kind=Kind.PHOTO, suffix=".bmp")
TIFF = Format(kind=Kind.PHOTO, suffix=".tiff")
GIF = Format(kind=Kind.ANIMATION, suffix=".gif", types=("image/gif",))
MP4 = Format(kind=Kind.VIDEO, suffix=".mp4", types=("video/mp4",))
MOV = Format(kind=Kind.VIDEO, suffix=".mov")
M4A = Format(kind=Kind.AUDIO, suffix=".m4a", types=("audio/mp4", "audio/x-m4a", "audio/m4a"))
MP3 = Format(kind=Kind.AUDIO, suffix=".mp3", types=("audio/mpeg", "audio/mp3"))
OGG = Format(kind=Kind.AUDIO, suffix=".ogg")
WAV = Format(kind=Kind.AUDIO, suffix=".wav")
FLAC = Format(kind=Kind.AUDIO, suffix=".flac")
PDF = Format(kind=Kind.DOCUMENT, suffix=".pdf", types=("application/pdf",))
ZIP = Format(kind=Kind.DOCUMENT, suffix=".zip", types=("application/zip",))
BINARY = Format(kind=Kind.DOCUMENT, suffix=".bin")
#: Telegram plays no other films than MPEG-4
_FILE_ONLY = {".webm": b"\x1a\x45\xdf\xa3", ".7z": b"7z\xbc\xaf", ".gz": b"\x1f\x8b\x08", ".glb": b"glTF"}
_STARTS: tuple[tuple[bytes, Format], ...] = (
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"\xff\xd8\xff", JPEG),
    (b"GIF87a", GIF),
    (b"GIF89a", GIF),
    (b"BM", BMP),
    (b"II*\0", TIFF),
    (b"MM\0*", TIFF),
    (b"ID3", MP3),
    (b"OggS", OGG),
    (b"fLaC", FLAC),
    (b"%PDF-", PDF),
    (b"PK\x03\x04", ZIP),
    *((start, Format(kind=Kind.DOCUMENT, suffix=suffix)) for suffix, start in _FILE_ONLY.items()),
)
_RIFF = {b"WEBP": WEBP, b"WAVE": WAV, b"AVI ": Format(kind=Kind.DOCUMENT, suffix=".avi")}
_BRANDS = {
    b"M4A ": M4A,
    b"M4B ": M4A,
    b"qt  ": MOV,
    b"avif": AVIF,
    b"avis": AVIF,
    b"heic": Format(kind=Kind.DOCUMENT, suffix=".heic"),
    b"heix": Format(kind=Kind.DOCUMENT, suffix=".heic"),
    b"mif1": Format(kind=Kind.DOCUMENT, suffix=".heic"),
}
#: what the server's word is worth where the bytes say nothing
_BY_TYPE = {kind: form for form in (JPEG, PNG, GIF, MP4, MP3, M4A, PDF, ZIP) for kind in form.types} | {
    "text/plain": Format(kind=Kind.DOCUMENT, suffix=".txt"),
    "image/svg+xml": Format(kind=Kind.DOCUMENT, suffix=".svg"),
    "application/x-subrip": Format(kind=Kind.DOCUMENT, suffix=".srt"),
    "text/vtt": Format(kind=Kind.DOCUMENT, suffix=".vtt"),
}


def recognise(head: bytes, content_type: str = "") -> Format:
    """What a file is, by its first bytes and, where they say nothing, its server's word. Raises NoMedia."""
    kind = content_type.partition(";")[0].strip().lower()
    if not head:
        raise NoMedia("the file is empty")
    if found := _by_bytes(head):
        return found
    _check_page(head, kind)
    return _BY_TYPE.get(kind, BINARY)


def _by_bytes(head: bytes) -> Format | None:
    for start, found in _STARTS:
        if head.startswith(start):
            return found
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], MP4)
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2:  # noqa: PLR2004 - MPEG audio, layer III
        return MP3
    return None


def _check_page(head: bytes, kind: str) -> None:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:512]
    if (kind == "text/html" or _PAGE.match(start)) and b"<svg" not in head[:4096]:
        raise NoMedia("it is an HTML page")
    if kind.endswith("json") or (_JSON.match(start) and _is_json(head)):
        raise NoMedia("it is a JSON answer")


def _is_json(head: bytes) -> bool:
    """Whether it reads as JSON up to where it was cut off."""
    try:
        json.JSONDecoder().raw_decode(head.decode("utf-8", "ignore").lstrip("\ufeff \t\r\n"))
    except json.JSONDecodeError as error:
        return error.pos > len(head) // 2 or error.msg.startswith("Unterminated string")
    except RecursionError:  # as deep as nothing but JSON is
        return True
    return True


# photos


def photo_fits(head: bytes) -> bool:
    """Whether the picture's sides are within Telegram's limits, as far as its first bytes tell."""
    try:
        with Image.open(io.BytesIO(head)) as picture:
            return _fits(*picture.size)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning):
        return False


def _fits(width: int, height: int) -> bool:
    return width + height <= SIDES_MAX and max(width, height) <= RATIO_MAX * min(width, height)


def make_photo(file: IO[bytes], size: int, form: Format) -> IO[bytes] | None:
    """A JPEG made from a picture that Telegram would not take as a photo; None if it takes it. Blocks.

    Raises DoesNotFit.
    """
    try:
        with Image.open(file) as picture:
            width, height = picture.size
            if max(width, height) > RATIO_MAX * min(width, height):
                raise DoesNotFit("the picture is too long and narrow")
            if form.types and _fits(width, height) and size <= PHOTO_BYTES_MAX:
                picture.verify()
                return None
            picture.draft("RGB", (LONG_SIDE, LONG_SIDE))  # a JPEG need not be unpacked whole to be made smaller
            if _unpacked(picture) > UNPACKED_BYTES_MAX:
                raise DoesNotFit("the picture is too large to be opened")
            return _encode(picture)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DoesNotFit(f"the picture cannot be opened: {error}") from error


def _unpacked(picture: Image.Image) -> int:
    """Bytes of memory it takes to unpack. Pillow keeps every colour in four."""
    width, height = picture.size
    return width * height * (1 if picture.mode in _ONE_BYTE else 4) * _DECODER_COPIES.get(picture.format or "", 1)


def _shrink(picture: Image.Image) -> Image.Image:
    """Small enough, on white. Strip by strip: the whole is in memory only once."""
    width, height = picture.size
    factor = -(-max(width, height) // LONG_SIDE)
    small = Image.new("RGB", (-(-width // factor), -(-height // factor)))
    for top in range(0, height, STRIP_ROWS * factor):
        strip = picture.crop((0, top, width, min(top + STRIP_ROWS * factor, height)))
        if strip.has_transparency_data:
            strip = Image.alpha_composite(Image.new("RGBA", strip.size, "white"), strip.convert("RGBA"))
        small.paste(strip.convert("RGB").reduce(factor), (0, top // factor))
    return small


def _encode(picture: Image.Image) -> IO[bytes]:
    if getattr(picture, "n_frames", 1) > 1:
        raise DoesNotFit("the picture moves")
    small = _shrink(picture)
    small.getexif()[_ORIENTATION] = picture.getexif().get(_ORIENTATION, 1)
    ImageOps.exif_transpose(small, in_place=True)
    for quality in (92, 80, 60):
        made = io.BytesIO()
        small.save(made, "JPEG", quality=quality)
        if made.tell() <= PHOTO_BYTES_MAX:
            made.seek(0)
            return made
    raise DoesNotFit("the picture stays too large")
