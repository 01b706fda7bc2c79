"""Telegram's limits for photos, and images made to fit them."""

import io
from collections.abc import Iterator
from typing import IO

from PIL import ExifTags, Image, ImageOps

from genlock.domain.media_format import Format
from genlock.media.image_head import read_image_head
from genlock.media.sniff import AVIF, BMP, GIF, JPEG, PNG, TIFF, WEBP

PHOTO_BYTES_MAX = 10 * 1024 * 1024
#: width and height together
SIDES_MAX = 10_000
RATIO_MAX = 20
#: the longest side of an image that had to be scaled down; Telegram shows no more than this
LONG_SIDE = 4096
#: the memory for a decoded image, with the copies that its decoder holds meanwhile
DECODED_BYTES_MAX = 200_000_000
#: the decoder of each format; no other decoder is tried, whatever the content looks like to it
DECODERS = {JPEG: "JPEG", PNG: "PNG", WEBP: "WEBP", AVIF: "AVIF", BMP: "BMP", TIFF: "TIFF", GIF: "GIF"}
#: other formats are converted to JPEG
_TAKEN_AS_THEY_ARE = frozenset({JPEG, PNG})
#: how often the decoder holds the whole image beside the result
_DECODER_COPIES = {"WEBP": 2, "AVIF": 2, "TIFF": 1}
_BYTES_PER_PIXEL = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2, "LA": 4, "PA": 4}
#: the coefficients of one pixel of each component, which a JPEG with several passes keeps until the last
_COEFFICIENT_BYTES = 2
_START_OF_SCAN, _SEGMENTS_MAX = 0xDA, 1000
#: pixels that are converted at a time: several copies in full colour are made of them
_STRIP_PIXELS = 2_000_000
#: the alpha value of an opaque pixel
OPAQUE = 255
_ORIENTATION = ExifTags.Base.Orientation


class NotUsableAsPhoto(Exception):
    """The image cannot be converted into a photo that Telegram accepts."""


def photo_fits(head: bytes) -> bool:
    """Whether an image is certainly opaque and within Telegram's limits for sides, read from its first bytes."""
    image = read_image_head(head)
    return image is not None and image.is_opaque and _fits(image.width, image.height)


def sides_too_long(head: bytes) -> bool:
    """Whether the first bytes of an image say that its sides are above Telegram's limits."""
    image = read_image_head(head)
    return image is not None and not _fits(image.width, image.height)


def _fits(width: int, height: int) -> bool:
    return width + height <= SIDES_MAX and max(width, height) <= RATIO_MAX * min(width, height)


def fit_photo(file: IO[bytes], size: int, format_: Format) -> IO[bytes] | None:
    """Convert an image that Telegram would refuse as a photo into a JPEG; return None if Telegram takes it as it is.

    May take seconds and much memory: see `MediaProcess`. Raises NotUsableAsPhoto, also for a transparent image, whose
    transparency a photo would lose.
    """
    try:
        return _fit_photo(file, size, format_)
    except NotUsableAsPhoto:
        raise
    except Exception as error:
        # Decoders raise errors of any kind for damaged images.
        raise NotUsableAsPhoto(f"the image cannot be decoded: {error}") from error


def _fit_photo(file: IO[bytes], size: int, format_: Format) -> IO[bytes] | None:
    with Image.open(file, formats=[DECODERS[format_]]) as image:
        width, height = image.size
        if max(width, height) > RATIO_MAX * min(width, height):
            raise NotUsableAsPhoto("the image is too long and narrow")
        fits = format_ in _TAKEN_AS_THEY_ARE and _fits(width, height) and size <= PHOTO_BYTES_MAX
        if fits and not image.has_transparency_data:
            image.verify()
            return None
        kept = _coefficient_bytes(image, file)
        image.draft("RGB", (LONG_SIDE, LONG_SIDE))  # a JPEG is scaled down while it is decoded
        if kept + _decoded_bytes(image) > DECODED_BYTES_MAX:
            raise NotUsableAsPhoto("the image is too large to be decoded")
        if getattr(image, "is_animated", False):
            raise NotUsableAsPhoto("the image is animated")
        if _is_transparent(image):
            raise NotUsableAsPhoto("the image is transparent")
        return None if fits else _to_jpeg(image)


def _strips(image: Image.Image, factor: int = 1) -> Iterator[tuple[int, Image.Image]]:
    """Yield the position and the content of strips, so that memory holds few copies of them at a time."""
    width, height = image.size
    rows = max(1, _STRIP_PIXELS // (width * factor)) * factor
    for top in range(0, height, rows):
        yield top, image.crop((0, top, width, min(top + rows, height)))


def _is_transparent(image: Image.Image) -> bool:
    """Whether any pixel is not opaque. Many images have an alpha channel that they do not use."""
    return image.has_transparency_data and any(
        strip.convert("RGBA").getchannel("A").histogram()[OPAQUE] < strip.width * strip.height
        for _, strip in _strips(image)
    )


def _coefficient_bytes(image: Image.Image, file: IO[bytes]) -> int:
    """Return what a decoder of JPEG keeps of the whole image, at its full size, if it has to read several passes."""
    if image.format != "JPEG" or not ("progressive" in image.info or _has_several_passes(image, file)):
        return 0
    width, height = image.size
    return width * height * len(image.getbands()) * _COEFFICIENT_BYTES


def _has_several_passes(image: Image.Image, file: IO[bytes]) -> bool:
    """Whether the first pass of a JPEG does not hold all components. The position in the file stays the same."""
    before = file.tell()
    file.seek(2)
    try:
        for _ in range(_SEGMENTS_MAX):
            head = file.read(5)
            if len(head) < 5 or head[0] != 0xFF:  # noqa: PLR2004 - a marker, a length, the first byte of the content
                return True
            if head[1] == _START_OF_SCAN:
                return head[4] < len(image.getbands())
            file.seek(int.from_bytes(head[2:4]) - 3, io.SEEK_CUR)
        return True
    finally:
        file.seek(before)


def _decoded_bytes(image: Image.Image) -> int:
    """Return the memory that decoding takes. Pillow uses four bytes for a pixel of most modes."""
    width, height = image.size
    copies = 1 + _DECODER_COPIES.get(image.format or "", 0)
    return width * height * _BYTES_PER_PIXEL.get(image.mode, 4) * copies


def _shrink(image: Image.Image) -> Image.Image:
    """Scale an image down, strip by strip, so that memory holds the whole only once."""
    width, height = image.size
    factor = -(-max(width, height) // LONG_SIDE)
    small = Image.new("RGB", (-(-width // factor), -(-height // factor)))
    for top, strip in _strips(image, factor):
        small.paste(strip.convert("RGB").reduce(factor), (0, top // factor))
    return small


def _to_jpeg(image: Image.Image) -> IO[bytes]:
    small = _shrink(image)
    small.getexif()[_ORIENTATION] = image.getexif().get(_ORIENTATION, 1)
    image.close()  # its pixels are not needed any more
    ImageOps.exif_transpose(small, in_place=True)
    for quality in (92, 80, 60):
        jpeg = io.BytesIO()
        small.save(jpeg, "JPEG", quality=quality)
        if jpeg.tell() <= PHOTO_BYTES_MAX:
            jpeg.seek(0)
            return jpeg
    raise NotUsableAsPhoto("the image is too large even at the lowest quality")
