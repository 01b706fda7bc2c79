"""The audit log in the viewer's language: translates what the service wrote, not what operators and users wrote."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genlock.domain.audit import AuditLine, read_changes
from genlock.domain.job_search import CountKind
from genlock.domain.money import read_amount
from genlock.domain.printable import shown
from genlock.i18n.translator import Translator

#: changed values that one line shows
CHANGES_MAX = 40
_VALUE_LENGTH_MAX = 300
#: operators without a number of their own: the command line, who logged in with the token, and Telegram
_NAMED_ACTORS = frozenset({"command", "token", "telegram"})
_TEXT = "dashboard.audit."
#: actions on one order, which write down its state before and after
_JOB_ACTIONS = frozenset({"retry", "resend", "cancel", "refund", "handled"})
#: what the end of bulk work writes down
_BULK_COUNTS = frozenset({"jobs", "done", "left_out"})
#: actions on the settings of a model
_MODEL_ACTIONS = frozenset({"edit model", "undo model edit", "take over from provider"})
#: actions whose subject is one of our words
_NAMED_SUBJECTS = {
    "export_jobs": ("jobs",),
    "ledger check": ("all",),
    "maintenance": ("on", "off"),
    "open refunds asked again": ("telegram",),
    "reconciliation": ("telegram",),
    "refunds.retry": ("refunds",),
    "restore": ("database",),
    "run_doctor": ("doctor",),
}
_NUMBERED_SUBJECT = re.compile(r"(bulk|update|callback|anomaly|anomalie|model|provider) (.+)")
_NUMBERED_ACTIONS = re.compile(r"bulk_.*|(updates|callbacks|anomalies|costs)\..*|reset_provider")
#: whole details, and the name of the text that says the same
_SENTENCES = {
    "requested": re.compile("requested"),
    "moved": re.compile(r"(?P<credits>[0-9.]+): (?P<reason>.*)", re.DOTALL),
    "credits": re.compile(r"(?:refunded )?(?P<credits>[0-9.]+)(?: credits)?"),
    "order": re.compile(r"order (?P<number>[0-9]+)"),
    "refunded_outside": re.compile(
        r"(?P<stars>[0-9]+) ⭐, account (?P<account>[0-9]+): (?P<taken>\S+) credits deducted, (?P<owed>\S+) owed"
    ),
    "payload": re.compile(r"payload (?P<payload>.*)", re.DOTALL),
    "restored": re.compile(r"restored from the backup of (?P<at>.*)"),
}
#: actions whose detail may be such a sentence; the details of the others are the words of operators
_SENTENCE_ACTIONS = {
    "erasure": ("requested",),
    "credit": ("moved",),
    "debit": ("moved",),
    "refund": ("credits",),
    "costs.handled": ("order",),
    "refund by Telegram": ("refunded_outside",),
    "strange payment": ("payload",),
    "restore": ("restored",),
}
#: where the words of a value are, by the name of its field
_VALUES = {"role": "dashboard.role.", "state": "dashboard.money.payment.", "scopes": "dashboard.api_keys.scope."}
_MODEL_VALUES = {"status": "dashboard.models.status."}


@dataclass(frozen=True, kw_only=True)
class Change:
    #: the changed field; "" if the value has no fields
    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, kw_only=True)
class Described:
    """A line of the audit log in words. It has changes, or a text, or neither."""

    action: str
    #: whether the action has a name of its own; otherwise `action` is the code
    action_is_known: bool
    subject: str
    changes: tuple[Change, ...]
    text: str

    @property
    def detail(self) -> str:
        """Return the changes in one line, with arrows, or the text."""
        return ", ".join(_in_one_line(change) for change in self.changes) or self.text


def describe(line: AuditLine, t: Translator) -> Described:
    """Return what was done, to what, and what that changed, as every page and chat names it."""
    words = AuditWords(t)
    changes = _changes(line, words)
    key = f"{_TEXT}action.{line.action.replace(' ', '_').replace('.', '_')}"
    return Described(
        action=t.plain(key) if key in t else shown(line.action, 60),
        action_is_known=key in t,
        subject=words.subject(line),
        changes=() if changes is None else changes[:CHANGES_MAX],
        text=words.sentence(line.action, line.detail) if changes is None else "",
    )


def actor_in_words(actor: str, t: Translator) -> str:
    """Return who did it: a name, if the service has one for this actor, or the number of the operator."""
    return t.plain(f"{_TEXT}actor_{actor}") if actor in _NAMED_ACTORS else shown(actor, 60)


def change_in_words(fields: Mapping[str, Any], t: Translator) -> str:
    """Return what an action on an order changed, as its timeline keeps it."""
    words, action = AuditWords(t), str(fields.get("action", ""))
    if "detail" in fields:
        return words.sentence(action, str(fields["detail"]))
    was, now = words.change(action, fields.get("before"), fields.get("after"))
    return _in_one_line(Change(name="", before=was, after=now))


def seen_in_words(seen: str, t: Translator) -> str:
    """Return the state of an order that a form remembered, as pages name it."""
    state, delivery, hold, *_ = [*seen.split("/"), "", "", ""]
    keys = (f"dashboard.jobs.state.{state}", f"dashboard.jobs.delivery.{delivery}", f"dashboard.jobs.hold.{hold}")
    return ", ".join(t.plain(key) for key in keys if key in t) or "—"


def _in_one_line(change: Change) -> str:
    values = " → ".join(text for text in (change.before, change.after) if text is not None)
    return f"{change.name}: {values}" if change.name else values


def _changes(line: AuditLine, words: "AuditWords") -> tuple[Change, ...] | None:
    """Return what a detail with `before` and `after` says, or the counts of bulk work; None if it has neither."""
    changes = read_changes(line.detail)
    if changes is None:
        changes = _counts(line)
    return None if changes is None else tuple(_change(line.action, *change, words) for change in changes)


def _change(action: str, name: str, before: Any, after: Any, words: "AuditWords") -> Change:
    if not name:
        was, now = words.change(action, before, after)
        return Change(name="", before=was, after=now)
    was, now = (words.value(action, name, value) for value in (before, after))
    return Change(name=words.field(action, name), before=was, after=now)


def _counts(line: AuditLine) -> list[tuple[str, Any, Any]] | None:
    """Return how many orders bulk work did, which has nothing before it."""
    try:
        read = json.loads(line.detail)
    except (ValueError, RecursionError):
        return None
    is_count = isinstance(read, dict) and read.keys() == _BULK_COUNTS and line.action.startswith("bulk_")
    return [(name, None, number) for name, number in read.items()] if is_count else None


class AuditWords:
    def __init__(self, t: Translator) -> None:
        self._t = t

    def subject(self, line: AuditLine) -> str:
        if line.action == "login":
            return self._known("dashboard.system.login_by.", line.subject)
        if line.subject in _NAMED_SUBJECTS.get(line.action, ()):
            return self._t.plain(f"{_TEXT}named.{line.subject}")
        numbered = _NUMBERED_SUBJECT.fullmatch(line.subject)
        if numbered is None or not _NUMBERED_ACTIONS.fullmatch(line.action):
            return line.subject
        kind = "anomaly" if numbered[1] == "anomalie" else numbered[1]
        return self._t.plain(f"{_TEXT}numbered.{kind}", name=shown(numbered[2], 80))

    def field(self, action: str, name: str) -> str:
        key = f"{_TEXT}field.{name.replace(' ', '_')}"
        if action in _MODEL_ACTIONS:
            key = f"dashboard.models.field.{name}"
        return self._t.plain(key) if key in self._t else shown(name, 60)

    def value(self, action: str, name: str, value: object) -> str | None:
        """Return a value of a change in words; as it is if it is not one of ours."""
        match value:
            case None:
                return None
            case bool():
                return self._t.plain("dashboard.models.yes" if value else "dashboard.models.no")
            case str():
                return shown(self._words(action, name, value), _VALUE_LENGTH_MAX)
            case list() if name in _VALUES:
                return shown(", ".join(self._words(action, name, str(item)) for item in value), _VALUE_LENGTH_MAX)
        return shown(json.dumps(value, ensure_ascii=False), _VALUE_LENGTH_MAX)

    def change(self, action: str, before: object, after: object) -> tuple[str | None, str | None]:
        """Return what a whole value was and is; of the state of an order, only the words that changed.

        A sentence says what was done, and takes the place of no state.
        """
        was, now = (self.value(action, "", value) for value in (before, after))
        if not (isinstance(before, str) and isinstance(after, str) and _is_seen_state(action, before)):
            return was, now
        if not _is_seen_state(action, after) or before.split("/")[:3] == after.split("/")[:3]:
            return None, now
        pairs = list(zip(before.split("/"), after.split("/"), strict=True))
        old, new = ("/".join(pair[side] if pair[0] != pair[1] else "" for pair in pairs) for side in (0, 1))
        return seen_in_words(old, self._t), seen_in_words(new, self._t)

    def sentence(self, action: str, detail: str) -> str:
        """Return a detail of one sentence in words."""
        for name in _SENTENCE_ACTIONS.get(action, ()):
            if found := _SENTENCES[name].fullmatch(detail):
                return self._t.plain(f"{_TEXT}sentence.{name}", **self._in_credits(found.groupdict()))
        return detail

    def _in_credits(self, values: dict[str, str]) -> dict[str, str]:
        amount = read_amount(values.get("credits", ""))
        return values | {"credits": self._t.credits(amount)} if amount else values

    def _words(self, action: str, name: str, value: str) -> str:
        if not name:
            return seen_in_words(value, self._t) if _is_seen_state(action, value) else self.sentence(action, value)
        if name == "expected":
            return self._expected(value)
        known: Mapping[str, str] = _MODEL_VALUES if action in _MODEL_ACTIONS else _VALUES
        return self._known(known[name], value) if name in known else value

    def _expected(self, value: str) -> str:
        """Return the count with which bulk work began, such as `about 1200`."""
        kind, _, number = value.partition(" ")
        if kind not in set(CountKind) or not (number.isascii() and number.isdigit()):
            return value
        return self._t.plain(f"dashboard.jobs.count.{kind}", n=int(number))

    def _known(self, section: str, value: str) -> str:
        key = f"{section}{value}"
        return self._t.plain(key) if key in self._t else value


def _is_seen_state(action: str, value: str) -> bool:
    parts: Sequence[str] = value.split("/")
    return action in _JOB_ACTIONS and len(parts) == 4  # noqa: PLR2004 - as `seen_state` writes it
