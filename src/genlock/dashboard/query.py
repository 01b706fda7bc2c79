"""The parameters of a page's address. What cannot be read is named on the page, and the rest still applies."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

from genlock.dashboard.page import PageContext
from genlock.domain.errors import Refusal
from genlock.domain.place import NEWEST, Place, microseconds
from genlock.domain.printable import shown

_LENGTH_MAX = 200
_ID_DIGITS_MAX = 18
_YEARS = range(2000, 2200)
Choice = TypeVar("Choice", bound=StrEnum)


class Query:
    """Reads parameters; `problems` says in the operator's language what could not be read."""

    def __init__(self, context: PageContext, known: Iterable[str]) -> None:
        self._context = context
        self._given = context.request.query_params
        names = list(known)
        self.problems = [self._unknown(name, names) for name in dict.fromkeys(self._given) if name not in names]

    def text(self, name: str) -> str:
        """Return a text without outer spaces; "" if it was not given."""
        found = self._given.get(name, "").replace("\0", "").strip()
        if len(found) > _LENGTH_MAX:
            self._refuse("too_long", name, found)
            return ""
        return found

    def choice(self, name: str, choices: type[Choice], default: Choice) -> Choice:
        found = self.text(name)
        if not found or found in {choice.value for choice in choices}:
            return choices(found) if found else default
        self._refuse("wrong", name, found)
        return default

    def number(self, name: str) -> int | None:
        """Return an id; None if it was not given."""
        found = self.text(name)
        if found and not (found.isascii() and found.isdigit() and len(found) <= _ID_DIGITS_MAX):
            self._refuse("wrong", name, found)
            return None
        return int(found) if found else None

    def day(self, name: str) -> datetime | None:
        """Return the beginning of a day, as YYYY-MM-DD, in the viewer's zone; None if it was not given."""
        found = self.text(name)
        if not found:
            return None
        try:
            day = datetime.strptime(found, "%Y-%m-%d").replace(tzinfo=self._context.zone)
        except ValueError:
            day = None
        if day is None or day.year not in _YEARS:
            self._refuse("wrong", name, found)
            return None
        return day.astimezone(UTC)

    def range(self, since: str = "since", until: str = "until") -> tuple[datetime | None, datetime | None]:
        """Return the beginning of the first day and the end of the last one."""
        first, last = self.day(since), self.day(until)
        end = None if last is None else _next_day(last.astimezone(self._context.zone))
        if first is not None and end is not None and first >= end:
            self._refuse("wrong", until, self.text(until))
            end = None
        return first, end

    def place(self, name: str, until: datetime | None = None) -> Place:
        """Return where a page begins: at a place in the list, or at its end, before `until`."""
        found = self.text(name)
        begin = NEWEST if until is None else Place(microseconds=microseconds(until), key="")
        if not found:
            return begin
        try:
            return Place.parse(found)
        except Refusal:
            self._refuse("wrong", name, found)
            return begin

    def _unknown(self, name: str, known: Sequence[str]) -> str:
        near = next(iter(get_close_matches(name, known, n=1)), "")
        return self._context.t.plain(
            f"dashboard.query.{'mistyped' if near else 'unknown'}", name=shown(name, 60), near=near
        )

    def _refuse(self, problem: str, name: str, given: str) -> None:
        text = self._context.t.plain(f"dashboard.query.{problem}", name=name, value=shown(given, 60))
        self.problems.append(text)


def _next_day(local: datetime) -> datetime:
    """Return the beginning of the next day in the same zone, which may be 23 or 25 hours away."""
    return (local.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=local.tzinfo).astimezone(UTC)
