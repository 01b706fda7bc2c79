"""The filters of the list of orders as an address has them. A part that means nothing is named, never dropped."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from typing import Any, TypeVar

from genlock.domain.job import OPEN, Delivery, State
from genlock.domain.job_search import FILTER_LENGTH_MAX, JobFilter
from genlock.domain.money import HoldState

#: short words for several states
STATE_GROUPS: dict[str, tuple[State, ...]] = {"open": OPEN, "unsuccessful": (State.FAILED, State.EXPIRED)}
DELIVERY_GROUPS: dict[str, tuple[Delivery, ...]] = {"waiting": (Delivery.PENDING, Delivery.SENDING)}
HOLD_GROUPS: dict[str, tuple[HoldState, ...]] = {}
PERIODS = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
TEXT_FILTERS = {"model": "model", "provider": "provider", "error": "error_code", "task": "task_id", "text": "text"}
#: every filter, in the order of the page
NAMES = ("state", "delivery", "hold", "attention", "model", "provider", "user", "period", "since", "until", "error",
         "task", "text")  # fmt: skip
#: parameters of the page that are no filters
OTHER_NAMES = frozenset({"before", "found", "ids"})
_VALUES_MAX = 20
_NAMED_MAX = 40

Member = TypeVar("Member", State, Delivery, HoldState)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A part of the address that has no effect: the key of the text that says why, and the values of that text."""

    key: str
    name: str
    value: str = ""
    #: the filter that was probably meant
    near: str = ""


@dataclass(frozen=True, kw_only=True)
class JobQuery:
    """What an address asks for."""

    filters: JobFilter = field(default_factory=JobFilter)
    #: the filters as they were written, by name
    written: dict[str, str] = field(default_factory=dict)
    #: the text that names a user; resolved by the page
    user: str = ""
    problems: tuple[Problem, ...] = ()

    @property
    def is_understood(self) -> bool:
        """Whether every part of the address has its effect, so that "all that match" is what the operator meant."""
        return not self.problems

    def with_problem(self, key: str, name: str, value: str = "") -> "JobQuery":
        return replace(self, problems=(*self.problems, Problem(key=key, name=name, value=value)))


def read_query(pairs: Iterable[tuple[str, str]], *, zone: tzinfo, now: datetime, see_prompts: bool = True) -> JobQuery:
    """Return what the parameters of an address mean. A filter may be given several times, or with commas."""
    reader = _Reader(zone=zone, now=now, see_prompts=see_prompts)
    for name, text in pairs:
        reader.add(name[:_NAMED_MAX], text.replace("\0", "").strip()[: FILTER_LENGTH_MAX + 1])
    return reader.query()


class _Reader:
    def __init__(self, *, zone: tzinfo, now: datetime, see_prompts: bool) -> None:
        self._zone = zone
        self._now = now
        self._see_prompts = see_prompts
        self._values: dict[str, Any] = {}
        self._written: dict[str, str] = {}
        self._problems: list[Problem] = []
        self._readers: dict[str, Callable[[str, str], None]] = {
            "state": lambda name, text: self._choices(name, text, "states", State, STATE_GROUPS),
            "delivery": lambda name, text: self._choices(name, text, "deliveries", Delivery, DELIVERY_GROUPS),
            "hold": lambda name, text: self._choices(name, text, "holds", HoldState, HOLD_GROUPS),
            "attention": self._attention,
            "period": self._period,
            "since": self._time,
            "until": self._time,
            "user": self._user,
            **dict.fromkeys(TEXT_FILTERS, self._text),
        }

    def add(self, name: str, text: str) -> None:
        if not text or name in OTHER_NAMES:
            return
        read = self._readers.get(name)
        if read is None:
            self._written[name] = text
            near = next(iter(get_close_matches(name, self._readers, n=1)), "")
            self._problem("mistyped_filter" if near else "unknown_filter", name, text, near)
            return
        if len(text) > FILTER_LENGTH_MAX:
            self._problem("too_long", name, f"{text[:_NAMED_MAX]}…")
            return
        self._written[name] = f"{self._written[name]},{text}" if name in self._written else text
        read(name, text)

    def query(self) -> JobQuery:
        since, until = self._values.get("since"), self._values.get("until")
        if since is not None and until is not None and since >= until:
            self._problem("empty_range", "until", self._written.get("until", ""))
        user = self._written.get("user", "")
        filters = JobFilter(**self._values)
        return JobQuery(filters=filters, written=self._written, user=user, problems=tuple(self._problems))

    def _problem(self, key: str, name: str, value: str, near: str = "") -> None:
        if len(self._problems) < _VALUES_MAX:
            self._problems.append(Problem(key=key, name=name, value=value, near=near))

    def _choices(
        self, name: str, text: str, attribute: str, kind: type[Member], groups: dict[str, tuple[Member, ...]]
    ) -> None:
        known = {member.value: member for member in kind}
        chosen: list[Member] = list(self._values.get(attribute, ()))
        for word in text.split(",")[:_VALUES_MAX]:
            if word in groups:
                chosen += groups[word]
            elif word in known:
                chosen.append(known[word])
            elif word:
                self._problem("unknown_value", name, word[:_NAMED_MAX])
        self._values[attribute] = tuple(dict.fromkeys(chosen))

    def _attention(self, name: str, text: str) -> None:
        if text == "1":
            self._values["attention"] = True
        else:
            self._problem("unknown_value", name, text)

    def _text(self, name: str, text: str) -> None:
        if name == "text" and not self._see_prompts:
            self._problem("hidden_prompts", name, text)
            return
        self._values[TEXT_FILTERS[name]] = text

    def _user(self, name: str, text: str) -> None:
        """Leave the user to the page, which looks for the account."""

    def _period(self, name: str, text: str) -> None:
        if text not in PERIODS:
            self._problem("unknown_value", name, text)
        elif "since" not in self._values:
            self._values["since"] = self._now - PERIODS[text]

    def _time(self, name: str, text: str) -> None:
        """A time without a zone is in the viewer's: that is what a browser's input sends."""
        try:
            at = datetime.fromisoformat(text)
            at = at.replace(tzinfo=self._zone) if at.tzinfo is None else at
            at.astimezone(UTC).astimezone(self._zone)  # as pages write it; the first and last years have no such time
            self._values[name] = at.astimezone(UTC)
        except (ValueError, OverflowError):
            self._problem("unknown_time", name, text)


def local_input(at: datetime | None, zone: tzinfo) -> str:
    """Return a time as an input of a browser has it, in the viewer's zone."""
    return "" if at is None else f"{at.astimezone(zone):%Y-%m-%dT%H:%M}"
