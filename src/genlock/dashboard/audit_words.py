"""The audit log in the viewer's language: translates what the service wrote, not what operators and users wrote."""

import json
import re
from collections.abc import Mapping, Sequence

from genlock.dashboard.formats import shown
from genlock.dashboard.job_actions import JobAction, seen_in_words
from genlock.domain.audit import AuditLine
from genlock.domain.job_search import CountKind
from genlock.i18n.translator import Translator

_VALUE_LENGTH_MAX = 300
_TEXT = "dashboard.audit."
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
    "refunded": re.compile(r"refunded (?P<credits>\S+) credits"),
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
    "refund": ("refunded",),
    "costs.handled": ("order",),
    "refund by Telegram": ("refunded_outside",),
    "strange payment": ("payload",),
    "restore": ("restored",),
}
#: where the words of a value are, by the name of its field
_VALUES = {"role": "dashboard.role.", "state": "dashboard.money.payment.", "scopes": "dashboard.api_keys.scope."}
_MODEL_VALUES = {"status": "dashboard.models.status."}


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
                return shown(", ".join(self._words(action, name, str(one)) for one in value), _VALUE_LENGTH_MAX)
        return shown(json.dumps(value, ensure_ascii=False), _VALUE_LENGTH_MAX)

    def change(self, action: str, before: object, after: object) -> tuple[str | None, str | None]:
        """Return what a whole value was and is; of the state of an order, only the words that changed.

        A sentence says what was done, and takes the place of no state.
        """
        was, now = (self.value(action, "", one) for one in (before, after))
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
                return self._t.plain(f"{_TEXT}sentence.{name}", **found.groupdict())
        return detail

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
    return action in set(JobAction) and len(parts) == 4  # noqa: PLR2004 - as `seen_state` writes it
