"""The draft of a user in a chat: the step of the order wizard and the values given so far."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from dataclasses import field as dataclass_field
from enum import StrEnum
from typing import Any

from genlock.domain.field import FieldType

#: problems with files that another model may have a field for
MISPLACED = ("no_place_", "wrong_kind_")


class Step(StrEnum):
    HOME = "home"  #: no order in progress; a text is a prompt
    LIST = "list"  #: the model list; a text is a search
    ASK = "ask"  #: a field is asked for; a text is its value
    EDIT = "edit"  #: the same, opened from the options and returning to them
    OPTIONS = "options"  #: the list of all fields that can be changed
    CONFIRM = "confirm"  #: the order is complete; a button press orders it
    ORDERED = "ordered"  #: this draft has become a job
    PROMO = "promo"  #: a promo code is asked for
    STYLE = "style"  #: a style is chosen for a complete order
    IMPROVE = "improve"  #: the price of improving the prompt of a complete order is shown


@dataclass(frozen=True, kw_only=True, slots=True)
class SentFile:
    """A file of the user, uploaded to the provider."""

    kind: FieldType
    url: str
    #: the measured length in seconds; None if it could not be measured
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Why the last answer was refused, as data; the screen translates it."""

    name: str
    field: str = ""
    allowed: Mapping[str, Any] = dataclass_field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class PartialText:
    """A text that may continue in the next message, and the step it answered.

    Telegram clients split a text that is too long for one message.
    """

    text: str
    #: when its last message was sent, in seconds since the epoch
    sent: int
    step: Step = Step.HOME
    category: str = ""
    field: str = ""
    path: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sale:
    """A sale that was begun with the draft. From then on its message belongs to the job, even if nothing else is saved.

    A press that is handled again continues it with the same idempotency keys.
    """

    #: the version of the draft that is part of the idempotency keys
    version: int
    #: the version on the pressed button
    pressed: int
    #: the pressed message, which becomes the result
    message: int | None
    #: the idempotency key of the first order
    key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    #: grows with every change, so that outdated buttons are recognised
    version: int = 0
    #: the last update that changed it: handled again after a crash, it changes nothing
    update: int = 0
    #: the place of that update in the user's update queue
    place: int = 0
    #: the message that shows it, the chat's screen; never one that was given to a job
    message: int | None = None
    #: the sale that was begun with it and whose outcome has not been saved
    sale: Sale | None = None
    step: Step = Step.HOME
    category: str = ""
    #: the entry of the menu that the model list or the order began with
    wish: str = ""
    #: whether the model list is the short one
    popular: bool = False
    query: str = ""
    page: int = 0
    model: str = ""
    field: str = ""
    #: fields asked before this one, for going back
    path: tuple[str, ...] = ()
    #: fields that are not asked any more: answered or skipped
    settled: tuple[str, ...] = ()
    values: Mapping[str, Any] = dataclass_field(default_factory=dict)
    #: measured lengths of files by URL
    seconds: Mapping[str, float] = dataclass_field(default_factory=dict)
    #: width divided by height of pictures by URL
    aspects: Mapping[str, float] = dataclass_field(default_factory=dict)
    #: a text and files that wait until the user chooses a model
    text: str = ""
    sent: tuple[SentFile, ...] = ()
    #: further files of which each becomes an order like this one
    others: tuple[SentFile, ...] = ()
    #: how often the order is made, and with which seeds
    copies: int = 1
    seeds: tuple[int, ...] = ()
    problem: Problem | None = None
    partial_text: PartialText | None = None
    #: the price that the confirmation shows
    price: int | None = None
    #: the prices of the orders with the further files
    other_prices: tuple[int, ...] = ()
    job: int | None = None
    #: the key of the next step that the order is, if it began with a result or a captioned file
    next_step: str = ""
    #: the key of the style that is added to the prompt
    style: str = ""
    #: which voices the list shows, by trait; and the voice that is played
    filters: Mapping[str, str] = dataclass_field(default_factory=dict)
    played: str = ""
    #: the job that improves the prompt
    improving: int | None = None
    #: whether the order was suggested for a typed text: the user may have wished for something else
    suggested: bool = False

    @property
    def in_progress(self) -> bool:
        """Whether an order is in progress."""
        return self.step in (Step.ASK, Step.EDIT, Step.OPTIONS, Step.CONFIRM, Step.STYLE, Step.IMPROVE)

    def is_shown_by(self, message: int | None, version: int | None) -> bool:
        """Whether a button of this version on this message belongs to the draft, or to the sale begun with it."""
        if self.sale is not None and version == self.sale.pressed:
            return message == self.sale.message
        return version == self.version and message == self.message

    def cleared(self) -> "Draft":
        """Return an empty draft with the same version and screen."""
        return Draft(version=self.version, update=self.update, place=self.place, message=self.message)

    def keeping_input(self) -> "Draft":
        """Return an empty draft that keeps the text and files waiting for a model."""
        return replace(self.cleared(), text=self.text, sent=self.sent, aspects=self.aspects)


def dump(draft: Draft) -> str:
    """Return the draft as JSON, without defaults and without the members that have columns of their own."""
    plain = Draft()
    body = {
        field.name: getattr(draft, field.name)
        for field in fields(Draft)
        if field.name not in ("version", "message") and getattr(draft, field.name) != getattr(plain, field.name)
    }
    if draft.sale:
        body["sale"] = asdict(draft.sale)
    if draft.problem:
        body["problem"] = asdict(draft.problem)
    for name, files in (("sent", draft.sent), ("others", draft.others)):
        if files:
            body[name] = [_dump_file(file) for file in files]
    if draft.partial_text:
        body["partial_text"] = asdict(draft.partial_text)
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


# The URL is stored as `address`: instances of an older version read the same drafts.
def _dump_file(file: SentFile) -> dict[str, Any]:
    return {"kind": file.kind, "address": file.url, "seconds": file.seconds}


def _load_file(stored: Mapping[str, Any]) -> SentFile:
    return SentFile(kind=FieldType(stored["kind"]), url=stored["address"], seconds=stored["seconds"])


def file_urls(draft: Draft) -> tuple[str, ...]:
    """Return the URLs of all files that the draft uses."""
    given = [
        item for value in draft.values.values() for item in (value if isinstance(value, list | tuple) else [value])
    ]
    urls = [item for item in given if isinstance(item, str) and item.startswith(("https://", "http://"))]
    return tuple(dict.fromkeys([*(file.url for file in (*draft.sent, *draft.others)), *draft.seconds, *urls]))


def load(body: str, *, version: int, message: int | None) -> Draft:
    values = json.loads(body)
    known = {field.name for field in fields(Draft)}
    values = {name: value for name, value in values.items() if name in known}
    for table in (values, values.get("partial_text") or {}):
        if "step" in table:
            table["step"] = Step(table["step"])
        for name in ("path", "settled"):
            if name in table:
                table[name] = tuple(table[name])
    if values.get("partial_text"):
        values["partial_text"] = PartialText(**values["partial_text"])
    if values.get("sale"):
        values["sale"] = Sale(**values["sale"])
    if values.get("problem"):
        values["problem"] = Problem(**values["problem"])
    for name in {"sent", "others"} & set(values):
        values[name] = tuple(_load_file(file) for file in values[name])
    for name in ("other_prices", "seeds"):
        values[name] = tuple(values.get(name, ()))
    return Draft(**values, version=version, message=message)
