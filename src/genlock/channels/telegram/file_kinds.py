"""How Telegram shows each file format, and its limits for files."""

from enum import StrEnum

from genlock.domain.media_format import Format
from genlock.media import sniff

_MEGABYTE = 1024 * 1024
UPLOAD_BYTES_MAX = 50 * _MEGABYTE
#: what Telegram downloads itself when it is given a URL
PHOTO_FETCH_BYTES_MAX = 5 * _MEGABYTE
FETCH_BYTES_MAX = 20 * _MEGABYTE


class FileKind(StrEnum):
    """The value is the name of the field in a message and of the argument of the Bot API method."""

    PHOTO = "photo"
    VIDEO = "video"
    ANIMATION = "animation"
    AUDIO = "audio"
    DOCUMENT = "document"


#: every other format is a document; of all video formats Telegram plays MPEG-4 only
_KINDS: dict[Format, FileKind] = {
    **dict.fromkeys((sniff.JPEG, sniff.PNG, sniff.WEBP, sniff.AVIF, sniff.BMP, sniff.TIFF), FileKind.PHOTO),
    **dict.fromkeys((sniff.MP4, sniff.MOV), FileKind.VIDEO),
    **dict.fromkeys((sniff.MP3, sniff.M4A, sniff.OGG, sniff.WAV, sniff.FLAC), FileKind.AUDIO),
    sniff.GIF: FileKind.ANIMATION,
}
#: formats that Telegram accepts by URL, if their server sends the right Content-Type
_FETCHED_BY_URL = frozenset(
    {sniff.JPEG, sniff.PNG, sniff.GIF, sniff.MP4, sniff.M4A, sniff.MP3, sniff.PDF, sniff.ZIP},
)


def kind_of(format_: Format) -> FileKind:
    return _KINDS.get(format_, FileKind.DOCUMENT)


def can_fetch(format_: Format, content_type: str, size: int | None) -> bool:
    """Whether Telegram can download a file itself from its URL."""
    limit = PHOTO_FETCH_BYTES_MAX if kind_of(format_) is FileKind.PHOTO else FETCH_BYTES_MAX
    by_url = format_ in _FETCHED_BY_URL and content_type in format_.mime_types
    return by_url and size is not None and 0 < size <= limit
