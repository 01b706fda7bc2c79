"""What the parts of a finished order are: a picture, a video, sound or text."""

import mimetypes
from urllib.parse import urlsplit

from genlock.bot.context import CHANNEL
from genlock.domain.catalog import Model, Output
from genlock.domain.delivery import Part
from genlock.domain.field import FieldType
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.media.sniff import media_type_of

#: by the kind of the channel's file
_FILES = {
    "photo": FieldType.IMAGE,
    "video": FieldType.VIDEO,
    "animation": FieldType.VIDEO,
    "audio": FieldType.AUDIO,
}
_OUTPUTS = {
    Output.IMAGE: FieldType.IMAGE,
    Output.VIDEO: FieldType.VIDEO,
    Output.AUDIO: FieldType.AUDIO,
    Output.TEXT: FieldType.TEXT,
}


def kind_of_part(part: Part, model: Model | None) -> FieldType | None:
    """Return what a part is: by the channel's file, else by its URL, else by what its model makes."""
    if part.kind is not PartKind.FILE:
        return FieldType.TEXT if part.kind is PartKind.TEXT else None
    shown, _, _ = (part.file or "").partition(":")
    if shown in _FILES:
        return _FILES[shown]
    try:
        path = urlsplit(part.value).path
    except ValueError:
        path = ""
    media = media_type_of(mimetypes.guess_type(path)[0])
    if media is not None:
        return FieldType(media.value)
    return _OUTPUTS[model.outputs[0]] if model else None


def is_sent_to_chat(job: Job) -> bool:
    """Whether the order's result goes to a chat: the orders of a user's own programs are the account's, too."""
    return job.channel == CHANNEL


def file_id(part: Part) -> str | None:
    """Return the channel's id of a part's file, which does not expire; None if the channel has no such file."""
    return part.file.partition(":")[2] or None if part.file else None


def is_document(part: Part) -> bool:
    """Whether the channel shows the file unchanged."""
    return (part.file or "").startswith("document:")


def part_of(job: Job, index: int) -> Part | None:
    """Return a part of a result; None if the order has no such part."""
    return job.parts[index] if job.has_result and 0 <= index < len(job.parts) else None
