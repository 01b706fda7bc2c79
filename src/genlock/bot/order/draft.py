"""A draft: where a person stands in a chat, and what they have said of the order so far."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from dataclasses import field as made
from enum import StrEnum
from typing import Any

from genlock.domain.field import FieldType

#: problems with a file that another order may have a place for
MISPLACED = ("no_place_", "wrong_kind_")


class At(StrEnum):
    HOME = "home"  #: nothing has been begun; a text is a prompt
    LIST = "list"  #: before a shelf; a text is a search
    ASK = "ask"  #: an input is asked for; a text is its value
    EDIT = "edit"  #: the same, come from the options and going back there
    OPTIONS = "options"  #: the list of everything that can be changed
    CONFIRM = "confirm"  #: all is said; a press orders it
    ORDERED = "ordered"  #: this draft has become a job
    PROMO = "promo"  #: a promo code is asked for


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A file a person has sent, as the provider can fetch it."""

    kind: FieldType
    address: str
    #: how long it plays, where that could be measured
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Why the last answer was not taken, as data: the words depend on the language."""

    name: str
    field: str = ""
    allowed: Mapping[str, Any] = made(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A text that may go on: clients send one that is too long for a message as several. And where it was said."""

    text: str
    #: when its last message was sent, in seconds
    sent: int
    at: At = At.HOME
    category: str = ""
    field: str = ""
    path: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    #: grows with every change and never goes back, so an old button can be told from a new one
    version: int = 0
    #: the last update that changed it: a repeated one changes nothing
    update: int = 0
    #: the message that shows it
    message: int | None = None
    at: At = At.HOME
    category: str = ""
    query: str = ""
    page: int = 0
    model: str = ""
    field: str = ""
    #: the fields asked before this one, for the way back
    path: tuple[str, ...] = ()
    #: what needs no asking any more: answered or left out
    settled: tuple[str, ...] = ()
    values: Mapping[str, Any] = made(default_factory=dict)
    #: measured lengths of files by address
    seconds: Mapping[str, float] = made(default_factory=dict)
    #: a text and files that wait for a model to be chosen
    text: str = ""
    sent: tuple[Sent, ...] = ()
    problem: Problem | None = None
    part: Part | None = None
    #: what the person saw as the price
    price: int | None = None
    job: int | None = None

    @property
    def begun(self) -> bool:
        """Whether an order waits to be gone on with."""
        return self.at in (At.ASK, At.EDIT, At.OPTIONS, At.CONFIRM)

    def emptied(self) -> "Draft":
        """The same place in the store with nothing in it."""
        return Draft(version=self.version, update=self.update, message=self.message)

    def carrying(self) -> "Draft":
        """Emptied, but for the text and files that wait for a model."""
        return replace(self.emptied(), text=self.text, sent=self.sent)


def dump(draft: Draft) -> str:
    """Without what the row's own columns say, and without what is as always."""
    plain = Draft()
    body = {
        one.name: getattr(draft, one.name)
        for one in fields(Draft)
        if one.name not in ("version", "message") and getattr(draft, one.name) != getattr(plain, one.name)
    }
    if draft.problem:
        body["problem"] = asdict(draft.problem)
    if draft.sent:
        body["sent"] = [asdict(one) for one in draft.sent]
    if draft.part:
        body["part"] = asdict(draft.part)
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def file_addresses(draft: Draft) -> tuple[str, ...]:
    """The addresses of all files that the draft uses."""
    given = [one for value in draft.values.values() for one in (value if isinstance(value, list | tuple) else [value])]
    addresses = [one for one in given if isinstance(one, str) and one.startswith(("https://", "http://"))]
    return tuple(dict.fromkeys([*(one.address for one in draft.sent), *draft.seconds, *addresses]))


def load(body: str, *, version: int, message: int | None) -> Draft:
    said = json.loads(body)
    known = {one.name for one in fields(Draft)}
    said = {name: value for name, value in said.items() if name in known}
    for place in (said, said.get("part") or {}):
        if "at" in place:
            place["at"] = At(place["at"])
        for name in ("path", "settled"):
            if name in place:
                place[name] = tuple(place[name])
    if said.get("part"):
        said["part"] = Part(**said["part"])
    if said.get("problem"):
        said["problem"] = Problem(**said["problem"])
    if "sent" in said:
        said["sent"] = tuple(Sent(**{**one, "kind": FieldType(one["kind"])}) for one in said["sent"])
    return Draft(**said, version=version, message=message)
