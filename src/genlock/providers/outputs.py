"""The results in a model's output, whose shape differs from model to model: files first, then text."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from genlock.domain.result import PartKind, Piece
from genlock.providers.json_values import PIECES_MAX, PLACES_MAX, TEXT_CHARS_MAX, clean, read_url

#: where the result is, the best place first; other keys may repeat the input or hold masks and thumbnails
FILE_KEYS = (
    "images",
    "image",
    "videos",
    "video",
    "audios",
    "audio",
    "audio_file",
    "audio_url",
    "video_url",
    "image_url",
    "file",
    "files",
    "url",
)
TEXT_KEYS = ("text", "output", "transcription", "transcript", "response", "answer", "result")


def read_output(output: Any) -> tuple[Piece, ...]:
    """Return the results: a URL, a list of URLs, an object with files, a text, or a list of pieces of text."""
    files = tuple(dict.fromkeys(_files(output)))[:PIECES_MAX]
    if files:
        return files
    text = clean(_text(output))[:TEXT_CHARS_MAX]
    return (Piece(kind=PartKind.TEXT, value=text),) if text.strip() else ()


def _files(value: Any) -> Iterator[Piece]:
    """Yield the files at the first place that has any."""
    if isinstance(value, dict):
        for key in FILE_KEYS:
            found = list(_files(value[key])) if key in value else []
            if found:
                yield from found
                return
        yield from (piece for item in islice(value.values(), PLACES_MAX) for piece in _urls(item))
    else:
        yield from _urls(value)


def _urls(value: Any) -> Iterator[Piece]:
    """Yield a URL, the URL of a file object, or those of a list of either."""
    for item in value[:PLACES_MAX] if isinstance(value, list) else [value]:
        url = read_url(item.get("url") if isinstance(item, dict) else item)
        if url:
            yield Piece(value=url)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(item for item in value if isinstance(item, str))
    if isinstance(value, dict):
        return next((text for key in TEXT_KEYS if (text := _text(value.get(key))).strip()), "")
    return ""
