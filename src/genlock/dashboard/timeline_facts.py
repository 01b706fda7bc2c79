"""The details of a timeline entry in the viewer's language: what events name by their fields."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from genlock.domain.printable import shown
from genlock.i18n.translator import Translator

_NAME = "dashboard.job.fact."
_LENGTH_MAX = 500
#: where the words of a value are, by the name of its field
_VALUES = {
    "arrival": "dashboard.job.arrival.",
    "delivery": "dashboard.jobs.delivery.",
    "hold_state": "dashboard.jobs.hold.",
    "kind": "dashboard.job.update_kind.",
    "level": "dashboard.job.level.",
    "levels": "dashboard.job.level.",
    "outcome": "dashboard.job.outcome.",
    "state": "dashboard.job.fact_state.",
    "verdict": "dashboard.job.verdict.",
}


@dataclass(frozen=True, kw_only=True)
class Fact:
    name: str
    value: str
    #: whether it has a name of its own; otherwise it is shown as the log has it
    is_known: bool


def fact_in_words(name: str, value: Any, t: Translator, provider_title: Callable[[str], str]) -> Fact:
    """Return a detail with its name; what providers and errors said stays as it is."""
    key = f"{_NAME}{name}"
    if key not in t:
        return Fact(name=shown(name, 40), value=shown(str(_rounded(value)), _LENGTH_MAX), is_known=False)
    return Fact(name=t.plain(key), value=shown(_value(name, value, t, provider_title), _LENGTH_MAX), is_known=True)


def _value(name: str, value: Any, t: Translator, provider_title: Callable[[str], str]) -> str:
    if name == "seconds" and isinstance(value, int | float):
        return t.plain("dashboard.job.seconds", n=t.number(_rounded(value)))
    if name == "provider":
        return provider_title(str(value))
    if name in _VALUES:
        return ", ".join(dict.fromkeys(_known(_VALUES[name], word, t) for word in str(value).split(",")))
    return str(_rounded(value))


def _known(section: str, word: str, t: Translator) -> str:
    return t.plain(f"{section}{word}") if f"{section}{word}" in t else word


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
