"""The file of a message, and whether Telegram's own figures allow it."""

from dataclasses import dataclass, replace
from typing import Any

from telegram import Message, PhotoSize

from genlock.bot.order.draft import Problem
from genlock.domain.field import Field, FieldType
from genlock.domain.media_format import MediaType
from genlock.media.sniff import choose_suffix, media_type_of

#: the largest file that Telegram lets bots download
BYTES_MAX = 20_000_000
MEGABYTE = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Attachment:
    """A file in a message."""

    #: None if no model takes such files
    kind: FieldType | None
    file: str
    size: int | None
    #: as the sender's client says: used to refuse early, never for a price
    seconds: float | None
    extension: str
    #: width divided by height of a picture
    aspect: float | None = None
    #: id that the messages of one album share
    album: str | None = None


def attachment(message: Message) -> Attachment | None:
    """Return the file of a message, if there is one."""
    found = _find_attachment(message)
    return replace(found, album=message.media_group_id) if found else None


def _find_attachment(message: Message) -> Attachment | None:
    if sizes := message.photo or (message.live_photo and message.live_photo.photo):
        photo = sizes[-1]
        return Attachment(
            kind=FieldType.IMAGE,
            file=photo.file_id,
            size=photo.file_size,
            seconds=None,
            extension="jpg",
            aspect=_aspect(photo),
        )
    for video in (message.animation, message.video, message.video_note):
        if video is not None:
            return _video(video)
    for sound in (message.audio, message.voice):
        if sound is not None:
            extension = _extension(getattr(sound, "file_name", None), sound.mime_type, FieldType.AUDIO)
            return Attachment(
                kind=FieldType.AUDIO,
                file=sound.file_id,
                size=sound.file_size,
                seconds=_seconds(sound.duration),
                extension=extension,
            )
    if message.document is not None:
        kind = _kind(message.document.mime_type)
        return Attachment(
            kind=kind,
            file=message.document.file_id,
            size=message.document.file_size,
            seconds=None,
            extension=_extension(message.document.file_name, message.document.mime_type, kind),
            aspect=_aspect(message.document.thumbnail),
        )
    return None


def _video(film: Any) -> Attachment:
    kind = _kind(getattr(film, "mime_type", None)) or FieldType.VIDEO
    return Attachment(
        kind=kind,
        file=film.file_id,
        size=film.file_size,
        seconds=_seconds(film.duration) if kind is FieldType.VIDEO else None,
        extension=_extension(getattr(film, "file_name", None), getattr(film, "mime_type", None), kind),
    )


def _aspect(picture: PhotoSize | None) -> float | None:
    return picture.width / picture.height if picture and picture.width > 0 and picture.height > 0 else None


def _seconds(duration: Any) -> float | None:
    """Return the length in seconds; None if unknown. Telegram gives whole seconds, 0 for shorter files."""
    seconds = duration.total_seconds() if hasattr(duration, "total_seconds") else float(duration or 0)
    return seconds or None


def _kind(mime: str | None) -> FieldType | None:
    media = media_type_of(mime)
    return FieldType(media.value) if media else None


def _extension(name: str | None, mime: str | None, kind: FieldType | None) -> str:
    return choose_suffix(name, mime, MediaType(kind.value) if kind else None)


def file_limits(target: Field | None, sent: Attachment) -> Problem | None:
    """Return what is wrong if the file is too large or too long, by the figures Telegram gives."""
    size = sent.size or 0
    if size > BYTES_MAX:
        return Problem(name="too_big_for_telegram")
    if target is None:
        return None
    if target.max_mb is not None and size > target.max_mb * MEGABYTE:
        return Problem(name="too_big", allowed={"given": size, "most": target.max_mb * MEGABYTE})
    if target.max_seconds is not None and sent.seconds is not None and sent.seconds > target.max_seconds:
        return Problem(name="too_long", allowed={"given": sent.seconds, "most": target.max_seconds})
    return None
