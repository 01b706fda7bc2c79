"""The parts of a result, and how far the delivery of each has come."""

import json
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from json.encoder import encode_basestring as _quote

from genlock.domain.result import PartKind, Piece
from genlock.domain.value import value

PARTS_MAX = 10


class Level(StrEnum):
    """Ways of showing a part, best first. Each is an edit of the same message; a delivery only goes down."""

    ADDRESS = "address"  #: the channel fetches the file from its URL
    BYTES = "bytes"  #: the file is uploaded
    DOCUMENT = "document"  #: the file is uploaded and shown as a document
    TEXT = "text"  #: a text with the link to the file


_BELOW = {Level.ADDRESS: Level.BYTES, Level.BYTES: Level.DOCUMENT, Level.DOCUMENT: Level.TEXT}


class Step(StrEnum):
    """Which call may have been made for a part. Written before the call, read by the instance that takes over."""

    PUT = "put"  #: only edits, which can be repeated → done by the deliver stage
    SEND = "send"  #: a send in place of a deleted message may have been made: it must not be repeated
    DONE = "done"  #: the channel confirmed the part


@value
class Part:
    """One file or text of a result, or our own message, and how far its delivery has come."""

    kind: PartKind
    #: the URL of a file, or the text itself
    value: str = ""
    #: how the channel shows it now
    level: Level = Level.ADDRESS
    #: the engine's journal of calls
    step: Step = Step.PUT
    #: the message that shows, or will show, this part; None until it exists
    message: str | None = None
    #: the channel's file id, once it has the file
    file: str | None = None
    #: the message was deleted: the part can only be sent
    gone: bool = False
    #: it was shown before, and is delivered again
    repeated: bool = False

    def lower(self) -> "Part | None":
        """Return the part without its file id if it has one, else one level lower; None below the last level."""
        if self.file is not None:
            return replace(self, file=None)
        below = _BELOW.get(self.level)
        return replace(self, level=below) if below else None


def plan(pieces: Iterable[Piece]) -> tuple[Part, ...]:
    """Return the parts of a result. The first takes the placeholder, the others get messages of their own."""
    return tuple(Part(kind=piece.kind, value=piece.value) for piece in pieces if piece.value.strip())[:PARTS_MAX]


#: The single part of a job that ended without a result: a message on its placeholder.
MESSAGE_ONLY: tuple[Part, ...] = (Part(kind=PartKind.MESSAGE, level=Level.TEXT),)


def message_instead(part: Part) -> Part:
    """Return the part that shows our own message in place of another part."""
    return Part(kind=PartKind.MESSAGE, level=Level.TEXT, message=part.message, gone=part.gone)


def without_invalid(parts: tuple[Part, ...], index: int) -> tuple[Part, ...]:
    """Return the parts without an invalid one, and with one message about it at the end.

    The next part that has no message in the chat yet takes over the one of the invalid part.
    """
    invalid, rest = parts[index], [*parts[:index], *parts[index + 1 :]]
    if all(part.kind is not PartKind.MESSAGE for part in rest):
        rest += MESSAGE_ONLY
    for place, part in enumerate(rest):
        if part.step is not Step.DONE and part.message is None:
            rest[place] = replace(part, message=invalid.message, gone=invalid.gone)
            break
    return tuple(rest)


def shown_results(parts: Iterable[Part]) -> int:
    """Return how many parts of a result the channel has confirmed; our own messages do not count."""
    return sum(part.step is Step.DONE and part.kind is not PartKind.MESSAGE for part in parts)


def again(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts as not shown yet, to be delivered again on new messages.

    A file that was shown as a link is a file again: what kept the channel from showing it may be over.
    """
    return tuple(
        replace(part, step=Step.PUT, message=None, gone=False, repeated=True, level=_level_again(part))
        for part in parts
    )


def _level_again(part: Part) -> Level:
    return Level.ADDRESS if part.kind is PartKind.FILE and part.level is Level.TEXT else part.level


def dump_parts(parts: Iterable[Part]) -> str:
    return f"[{','.join([_dump(part) for part in parts])}]"


def _dump(part: Part) -> str:
    """Encode by hand: every job does it twice, and json.dumps would create an encoder for each call."""
    row = f'{{"kind":"{part.kind}","value":{_quote(part.value)},"level":"{part.level}","step":"{part.step}"'
    if part.message is not None:
        row += f',"message":{_quote(part.message)}'
    if part.file is not None:
        row += f',"file":{_quote(part.file)}'
    if part.repeated:
        row += ',"repeated":true'
    return row + (',"gone":true}' if part.gone else "}")


_KINDS = {word.value: word for word in PartKind}
_LEVELS = {word.value: word for word in Level}
_STEPS = {word.value: word for word in Step}


def load_parts(text: str) -> tuple[Part, ...]:
    if text == "[]":
        return ()
    return tuple(
        Part(
            kind=_KINDS[row["kind"]],
            value=row["value"],
            level=_LEVELS[row["level"]],
            step=_STEPS[row["step"]],
            message=row.get("message"),
            file=row.get("file"),
            gone=row.get("gone", False),
            repeated=row.get("repeated", False),
        )
        for row in json.loads(text)
    )
