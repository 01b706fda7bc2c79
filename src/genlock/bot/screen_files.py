"""Files that screens show: a sample on a model's card, the sheet of styles, a result in the gallery."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from telegram import InputFile

from genlock.channels.telegram.content import Media, from_reference
from genlock.channels.telegram.file_kinds import FileKind

_KINDS = {
    ".jpg": FileKind.PHOTO,
    ".jpeg": FileKind.PHOTO,
    ".png": FileKind.PHOTO,
    ".webp": FileKind.PHOTO,
    ".mp3": FileKind.AUDIO,
    ".m4a": FileKind.AUDIO,
    ".ogg": FileKind.AUDIO,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenFile:
    """A file by the channel's reference, or by its content until the channel has it."""

    #: the channel's reference, as results have it; empty: the content is uploaded
    reference: str = ""
    #: identifies the content, so that it is uploaded once; empty for a file that the channel has
    key: str = ""
    kind: FileKind = FileKind.PHOTO
    name: str = ""
    #: the title of a sound file
    title: str = ""
    read: Callable[[], bytes] | None = None

    def media(self, reference: str, content: bytes | None) -> Media:
        """Return the file for a call, by a reference or by its content."""
        if content is None:
            return from_reference(reference)
        options = {"title": self.title} if self.title and self.kind is FileKind.AUDIO else {}
        upload = InputFile(content, filename=self.name, attach=True)
        return Media(kind=self.kind, file=upload, uploads=True, options=options)


def by_path(path: str, *, title: str = "") -> ScreenFile | None:
    """Return a file of the machine; None if it is gone. A changed file, or one with another title, is another one."""
    place = Path(path)
    try:
        state = place.stat()
    except OSError:
        return None
    return ScreenFile(
        key=content_key(path, str(state.st_mtime_ns), str(state.st_size), title),
        kind=_KINDS.get(place.suffix.lower(), FileKind.DOCUMENT),
        name=place.name,
        title=title,
        read=place.read_bytes,
    )


def content_key(*parts: str) -> str:
    """Return the key under which the channel's reference of an uploaded file is kept."""
    return f"file:{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}"
