"""How far each part of a result has come on its way into the chat."""

import json
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from json.encoder import encode_basestring as _quote

from genlock.domain.result import PartKind, Piece
from genlock.domain.value import value

PARTS_MAX = 10


class Level(StrEnum):
    """Ways of showing one part, best first. Each is an edit of the same message; we only go down."""

    ADDRESS = "address"
    BYTES = "bytes"
    DOCUMENT = "document"
    TEXT = "text"


_BELOW = {Level.ADDRESS: Level.BYTES, Level.BYTES: Level.DOCUMENT, Level.DOCUMENT: Level.TEXT}


class Step(StrEnum):
    """What may be on the wire for a part. Written before the call, read by whoever takes over."""

    PUT = "put"  #: only edits, which may be repeated → DONE by the deliverer
    SEND = "send"  #: a send that replaces a deleted message may have been made: never repeat it
    DONE = "done"  #: the channel confirmed it


@value
class Part:
    kind: PartKind
    value: str = ""
    level: Level = Level.ADDRESS
    step: Step = Step.PUT
    #: the message that becomes, or is, this part; None until one has been placed
    message: str | None = None
    #: the channel's own copy of the file, once it has one
    file: str | None = None
    #: the channel has refused to edit the message: the part may only be sent
    gone: bool = False

    def lower(self) -> "Part | None":
        """The same part without the channel's copy, if that was tried, else one level down; None below the last."""
        if self.file is not None:
            return replace(self, file=None)
        below = _BELOW.get(self.level)
        return replace(self, level=below) if below else None


def plan(pieces: Iterable[Piece]) -> tuple[Part, ...]:
    """The parts of a result. The first will take the placeholder, the others get messages of their own."""
    return tuple(Part(kind=piece.kind, value=piece.value) for piece in pieces if piece.value.strip())[:PARTS_MAX]


def message_instead(part: Part) -> Part:
    """Our own words on the message of a part that is no result."""
    return Part(kind=PartKind.MESSAGE, level=Level.TEXT, message=part.message, gone=part.gone)


#: The single part of a job that ended without a result: words on its placeholder.
MESSAGE_ONLY: tuple[Part, ...] = (Part(kind=PartKind.MESSAGE, level=Level.TEXT),)


def again(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts, to be shown anew on messages of their own: what an operator's resend asks for."""
    return tuple(replace(part, step=Step.PUT, message=None, gone=False) for part in parts)


def dump_parts(parts: Iterable[Part]) -> str:
    return f"[{','.join([_dump(part) for part in parts])}]"


def _dump(part: Part) -> str:
    """By hand: every life does it twice, and the encoder of the standard library is made anew for each call."""
    row = f'{{"kind":"{part.kind}","value":{_quote(part.value)},"level":"{part.level}","step":"{part.step}"'
    if part.message is not None:
        row += f',"message":{_quote(part.message)}'
    if part.file is not None:
        row += f',"file":{_quote(part.file)}'
    return row + (',"gone":true}' if part.gone else "}")


def load_parts(text: str) -> tuple[Part, ...]:
    if text == "[]":
        return ()
    return tuple(
        Part(
            kind=PartKind(row["kind"]),
            value=row["value"],
            level=Level(row["level"]),
            step=Step(row["step"]),
            message=row.get("message"),
            file=row.get("file"),
            gone=row.get("gone", False),
        )
        for row in json.loads(text)
    )
