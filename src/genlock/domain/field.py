"""Fields: one input of a model, its limits, and how text typed by a user is converted to it."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from genlock.domain.errors import InvalidInput

Number = int | float
Scalar = str | int | float | bool

ADDRESS_LENGTH = 2048
NUMBER_LENGTH = 40  #: longer texts are rejected before parsing, which would take too long
TASK_LENGTH = 100
JSON_LENGTH = 20_000  #: of a list of objects as text, and of each object: nothing else limits what is stored of it
CHOICES_SHOWN = 30

YES = frozenset({"true", "yes", "on", "1", "да", "вкл"})
NO = frozenset({"false", "no", "off", "0", "нет", "выкл"})


class FieldType(StrEnum):
    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    IMAGE = "image"  #: the URL of an image
    VIDEO = "video"  #: the URL of a video
    AUDIO = "audio"  #: the URL of a sound file
    TASK = "task"  #: the provider's id of an earlier task
    OBJECTS = "objects"  #: a list of objects, each with the members named


FILES = frozenset({FieldType.IMAGE, FieldType.VIDEO, FieldType.AUDIO})
SAMPLES = {
    FieldType.IMAGE: "https://example.com/sample.png",
    FieldType.VIDEO: "https://example.com/sample.mp4",
    FieldType.AUDIO: "https://example.com/sample.mp3",
    FieldType.TASK: "0123456789abcdef0123456789abcdef",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    name: str
    type: FieldType
    many: bool = False  #: a list of such values
    required: bool = False
    choices: tuple[Scalar, ...] = ()
    #: readable names of choices, by language
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: properties of choices that a list of them is filtered by: the sex and the language of a voice
    traits: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    default: object = None  #: None: the provider decides
    min: Number | None = None
    max: Number | None = None
    step: Number | None = None
    min_length: int = 0
    max_length: int | None = None
    min_count: int = 0
    max_count: int | None = None
    max_mb: Number | None = None  #: largest size of a file
    max_seconds: Number | None = None  #: greatest length of a video or sound; assumed in prices when unknown
    members: tuple[str, ...] = ()  #: the keys that each of `objects` must have
    sample: object = None  #: a valid value, when none can be derived from the other attributes
    advanced: bool = False  #: the wizard does not ask for it
    internal: bool = False  #: never shown to users
    unit: str | None = None  #: what a number of it counts: a text `unit.short_…`
    about: Mapping[str, str] = field(default_factory=dict)  #: a short description by language

    def clean(self, value: object) -> object:
        """Return the value as the provider expects it. Raises InvalidInput."""
        if not self.many:
            return self._one(value)
        if self.type is FieldType.OBJECTS:
            items = self._objects(value)
        elif isinstance(value, str) and self.type in FILES:
            items = list(value.split())
        else:
            items = list(value) if isinstance(value, list | tuple) else [value]
        return self._counted(items)

    def _counted(self, items: list[object]) -> list[object]:
        low, high = max(self.min_count, 1 if self.required else 0), self.max_count
        if len(items) < low or (high is not None and len(items) > high):
            allowed = f"at least {low}" if high is None else f"{low} to {high}" if low != high else f"exactly {low}"
            raise self.refused(
                f"needs {allowed} of them, not {len(items)}", "count", min=low, max=high, given=len(items)
            )
        return [self._one(item) for item in items]

    def _one(self, value: object) -> object:
        take: Callable[[object], object] = {
            FieldType.TEXT: self._text,
            FieldType.NUMBER: self._number,
            FieldType.INTEGER: self._number,
            FieldType.BOOLEAN: self._boolean,
            FieldType.CHOICE: self._choice,
            FieldType.TASK: self._task,
            FieldType.OBJECTS: self._object,
        }.get(self.type, self._address)
        return take(value)

    def refused(self, message: str, problem: str, **allowed: object) -> InvalidInput:
        return InvalidInput(self.name, message, problem=problem, allowed=allowed)

    def _valid_text(self, value: object) -> str:
        """Return the value as text without NUL and surrogates, which databases and JSON cannot hold."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.refused("must be text", "type", type="text")
        text = str(value).strip()
        try:
            text.encode()
        except UnicodeEncodeError:
            text = "\x00"
        if "\x00" in text:
            raise self.refused("contains characters that are not text", "type", type="text")
        return text

    def _text(self, value: object) -> str:
        text = self._valid_text(value)
        low, high = self.min_length, self.max_length
        if len(text) < low or (high is not None and len(text) > high):
            allowed = (
                f"{low} to {high}" if high is not None and low else f"at most {high}" if high else f"at least {low}"
            )
            raise self.refused(
                f"must have {allowed} characters, not {len(text)}", "length", min=low, max=high, given=len(text)
            )
        return text

    def _number(self, value: object) -> Number:
        number = self._parsed(value)
        if (self.min is not None and number < self.min) or (self.max is not None and number > self.max):
            raise self._not_a_number("range")
        if self.step is not None and not _on_step(number - (self.min or 0), self.step):
            raise self.refused(f"must go in steps of {self.step:.15g}", "step", step=self.step)
        return number

    def _parsed(self, value: object) -> Number:
        whole = self.type is FieldType.INTEGER
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self._not_a_number("type")
        text = str(value).strip().replace(",", ".") if not isinstance(value, int) or abs(value) < 2**64 else ""
        try:
            number = float(text if len(text) <= NUMBER_LENGTH else "")
        except ValueError:
            raise self._not_a_number("type") from None
        if not math.isfinite(number) or (whole and number != int(number)):
            raise self._not_a_number("type")
        if number == int(number) and abs(number) < 2**53:
            return int(number)
        if whole:
            raise self._not_a_number("range")
        return number

    def _not_a_number(self, problem: str) -> InvalidInput:
        kind = "a whole number" if self.type is FieldType.INTEGER else "a number"
        low, high = self.min, self.max
        match low is not None, high is not None:
            case True, True:
                kind += f" from {low:.15g} to {high:.15g}"
            case True, False:
                kind += f" of {low:.15g} or more"
            case False, True:
                kind += f" of {high:.15g} or less"
        return self.refused(f"must be {kind}", problem, type=self.type.value, min=low, max=high)

    def _boolean(self, value: object) -> bool:
        word = str(value).strip().lower() if isinstance(value, str | int) else ""
        if word in YES:
            return True
        if word in NO:
            return False
        raise self.refused("must be yes or no", "type", type="boolean")

    def _choice(self, value: object) -> Scalar:
        if isinstance(value, str | int | float):
            word = str(value).strip().lower()
            for choice in self.choices:
                if word in {name.lower() for name in (str(choice), *self.labels.get(str(choice), {}).values())}:
                    return choice
        shown = [self.labels.get(str(choice), {}).get("en", str(choice)) for choice in self.choices]
        more = f" and {len(shown) - CHOICES_SHOWN} more" if len(shown) > CHOICES_SHOWN else ""
        raise self.refused(
            f"must be one of {', '.join(shown[:CHOICES_SHOWN])}{more}", "choice", choices=list(self.choices)
        )

    def _task(self, value: object) -> str:
        text = self._valid_text(value)
        if not text or len(text) > TASK_LENGTH or any(char.isspace() for char in text):
            raise self.refused("must be the id of an earlier task", "type", type="task")
        return text

    def _address(self, value: object) -> str:
        text = self._valid_text(value)
        try:
            parts = urlsplit(text)
            good = parts.scheme in {"http", "https"} and bool(parts.hostname)
        except ValueError:
            good = False
        if not good or len(text) > ADDRESS_LENGTH or any(char.isspace() for char in text):
            raise self.refused(f"must be the http(s) address of {_an(self.type)}", "address", type=self.type.value)
        return text

    def _objects(self, value: object) -> list[object]:
        if isinstance(value, str) and len(value) <= JSON_LENGTH:
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                value = None
        if not isinstance(value, list | tuple):
            raise self._not_objects()
        return list(value)

    def _object(self, value: object) -> dict[str, object]:
        if not isinstance(value, Mapping) or not set(self.members) <= set(value):
            raise self._not_objects()
        try:
            text = json.dumps(dict(value), allow_nan=False)
            plain = json.loads(text)
            self._check_texts(plain)
        except (TypeError, ValueError, RecursionError):
            raise self._not_objects() from None
        if len(text) > JSON_LENGTH:
            raise self.refused(
                f"must have at most {JSON_LENGTH} characters each", "length", min=0, max=JSON_LENGTH, given=len(text)
            )
        assert isinstance(plain, dict)
        return plain

    def _check_texts(self, value: object) -> None:
        """Check every text inside the value, keys included."""
        if isinstance(value, str):
            self._valid_text(value)
        elif isinstance(value, dict):
            self._check_texts([*value, *value.values()])
        elif isinstance(value, list):
            for text in value:
                self._check_texts(text)

    def _not_objects(self) -> InvalidInput:
        members = ", ".join(self.members)
        with_members = f" with {members}" if members else ""
        return self.refused(f"must be a list of objects{with_members}", "type", type="objects", members=members)

    def least(self) -> object:
        """Return the smallest valid value."""
        if self.sample is not None:
            return self.sample
        if self.default is not None:
            return self.default
        sample = self._sample(most=False)
        return [sample] * max(self.min_count, 1) if self.many else sample

    def most(self) -> object:
        """Return the largest valid value."""
        if self.sample is not None:
            return self.sample
        sample = self._sample(most=True)
        return [sample] * (self.max_count or max(self.min_count, 2)) if self.many else sample

    def _sample(self, *, most: bool) -> object:
        match self.type:
            case FieldType.TEXT:
                return _sample_text(self.max_length or 500 if most else max(self.min_length, 1))
            case FieldType.NUMBER | FieldType.INTEGER:
                low = self.min if self.min is not None else min(1, self.max if self.max is not None else 1)
                return (self.max if self.max is not None else low) if most else low
            case FieldType.BOOLEAN:
                return most
            case FieldType.CHOICE:
                return self.choices[-1 if most else 0]
            case FieldType.OBJECTS:
                return dict.fromkeys(self.members, "sample")
            case _:
                return SAMPLES[self.type]


def _sample_text(length: int) -> str:
    sentence = "A cat in a space suit, looking at the blue planet. "
    return (sentence * (length // len(sentence) + 1))[:length].strip().ljust(length, ".")


def _on_step(distance: Number, step: Number) -> bool:
    steps = distance / step
    return abs(steps - round(steps)) < 1e-6  # noqa: PLR2004 - binary fractions are never exact


def _an(kind: FieldType) -> str:
    return {FieldType.IMAGE: "an image", FieldType.VIDEO: "a video", FieldType.AUDIO: "a sound file"}[kind]
