"""Telegram's limits for photos, and images made to fit them."""

import io
from typing import IO

from PIL import ExifTags, Image, ImageOps

from genlock.media.sniff import JPEG, PNG, Format

PHOTO_BYTES_MAX = 10 * 1024 * 1024
#: width and height together
SIDES_MAX = 10_000
RATIO_MAX = 20
#: the longest side of an image that had to be scaled down; Telegram shows no more than this
LONG_SIDE = 4096
#: an image that needs more memory than this is not decoded here; some decoders hold copies of their own meanwhile
DECODED_BYTES_MAX = 200_000_000
#: other formats are converted to JPEG
_TAKEN_AS_THEY_ARE = frozenset({JPEG, PNG})
_DECODER_COPIES = {"WEBP": 3, "AVIF": 3, "TIFF": 2}
_ONE_BYTE_MODES = frozenset({"1", "L", "P"})
_STRIP_ROWS = 64
_ORIENTATION = ExifTags.Base.Orientation
_UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning)


class NotUsableAsPhoto(Exception):
    """The image cannot be converted into a photo that Telegram accepts."""


def photo_fits(head: bytes) -> bool:
    """Whether the sides of an image are within Telegram's limits, read from its first bytes."""
    try:
        with Image.open(io.BytesIO(head)) as image:
            return _fits(*image.size)
    except _UNREADABLE:
        return False


def _fits(width: int, height: int) -> bool:
    return width + height <= SIDES_MAX and max(width, height) <= RATIO_MAX * min(width, height)


def fit_photo(file: IO[bytes], size: int, format_: Format) -> IO[bytes] | None:
    """Convert an image that Telegram would refuse as a photo into a JPEG; return None if Telegram takes it as it is.

    Blocks the thread. Raises NotUsableAsPhoto.
    """
    try:
        with Image.open(file) as image:
            width, height = image.size
            if max(width, height) > RATIO_MAX * min(width, height):
                raise NotUsableAsPhoto("the image is too long and narrow")
            if format_ in _TAKEN_AS_THEY_ARE and _fits(width, height) and size <= PHOTO_BYTES_MAX:
                image.verify()
                return None
            image.draft("RGB", (LONG_SIDE, LONG_SIDE))  # a JPEG is scaled down while it is decoded
            if _decoded_bytes(image) > DECODED_BYTES_MAX:
                raise NotUsableAsPhoto("the image is too large to be decoded")
            return _to_jpeg(image)
    except _UNREADABLE as error:
        raise NotUsableAsPhoto(f"the image cannot be decoded: {error}") from error


def _decoded_bytes(image: Image.Image) -> int:
    """Return the memory that decoding takes. Pillow uses four bytes for every colour pixel."""
    width, height = image.size
    return width * height * (1 if image.mode in _ONE_BYTE_MODES else 4) * _DECODER_COPIES.get(image.format or "", 1)


def _shrink(image: Image.Image) -> Image.Image:
    """Scale an image down on a white background, strip by strip, so that memory holds the whole only once."""
    width, height = image.size
    factor = -(-max(width, height) // LONG_SIDE)
    small = Image.new("RGB", (-(-width // factor), -(-height // factor)))
    for top in range(0, height, _STRIP_ROWS * factor):
        strip = image.crop((0, top, width, min(top + _STRIP_ROWS * factor, height)))
        if strip.has_transparency_data:
            strip = Image.alpha_composite(Image.new("RGBA", strip.size, "white"), strip.convert("RGBA"))
        small.paste(strip.convert("RGB").reduce(factor), (0, top // factor))
    return small


def _to_jpeg(image: Image.Image) -> IO[bytes]:
    if getattr(image, "n_frames", 1) > 1:
        raise NotUsableAsPhoto("the image is animated")
    small = _shrink(image)
    small.getexif()[_ORIENTATION] = image.getexif().get(_ORIENTATION, 1)
    ImageOps.exif_transpose(small, in_place=True)
    for quality in (92, 80, 60):
        jpeg = io.BytesIO()
        small.save(jpeg, "JPEG", quality=quality)
        if jpeg.tell() <= PHOTO_BYTES_MAX:
            jpeg.seek(0)
            return jpeg
    raise NotUsableAsPhoto("the image is too large even at the lowest quality")
