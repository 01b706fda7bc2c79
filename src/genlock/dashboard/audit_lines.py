"""How a line of the audit log is shown: what was changed, from what to what."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from genlock.dashboard.formats import shown
from genlock.domain.audit import AuditLine, read_changes

#: changed values that one line shows
CHANGES_MAX = 40
_VALUE_LENGTH_MAX = 300
_JOB = re.compile(r"#([0-9]{1,18})")
_ACCOUNT = re.compile(r"[0-9]{1,18}")
#: actions whose subject is the number of a user's account
_ACCOUNT_ACTIONS = frozenset(
    {"credit", "debit", "ban", "unban", "free runs", "message", "message not delivered", "erasure"}
    | {
        "create_api_key",
        "revoke_api_key",
        "test_webhook",
        "enable_webhook",
        "disable_webhook",
        "redeliver_webhook",
        "redeliver_webhooks",
    }
)


@dataclass(frozen=True, kw_only=True)
class Change:
    #: the changed field; "" if the value has no fields
    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, kw_only=True)
class ShownLine:
    line: AuditLine
    changes: tuple[Change, ...]
    #: the detail as it is, if it is not a change
    text: str
    #: the page about the subject, below `/dashboard`; "" if there is none
    subject_path: str


#: names of values that repeat what users wrote or were sent
_TEXTS = frozenset({"text"})
_HIDDEN = "…"


def without_texts(line: AuditLine) -> AuditLine:
    """Return a line without the texts that were looked for or sent, for who may not read what users wrote."""
    try:
        read = json.loads(line.detail)
    except (ValueError, RecursionError):  # a long detail is cut, so that it cannot be read any more
        return replace(line, detail=_HIDDEN) if line.detail.startswith("{") else line
    return replace(line, detail=json.dumps(_hide(read), ensure_ascii=False)) if isinstance(read, dict) else line


def _hide(read: Any) -> Any:
    if not isinstance(read, dict):
        return read
    return {name: _HIDDEN if name in _TEXTS else _hide(one) for name, one in read.items()}


def show_line(line: AuditLine) -> ShownLine:
    changes = _changes(line.detail)
    return ShownLine(
        line=line,
        changes=() if changes is None else changes[:CHANGES_MAX],
        text=line.detail if changes is None else "",
        subject_path=_subject_path(line),
    )


def _subject_path(line: AuditLine) -> str:
    if job := _JOB.fullmatch(line.subject):
        return f"/jobs/{job[1]}"
    if line.action in _ACCOUNT_ACTIONS and _ACCOUNT.fullmatch(line.subject):
        return f"/users/{line.subject}"
    return ""


def _changes(detail: str) -> tuple[Change, ...] | None:
    changes = read_changes(detail)
    if changes is None:
        return None
    return tuple(Change(name=shown(name, 60), before=_text(old), after=_text(new)) for name, old, new in changes)


def _text(one: Any) -> str | None:
    if one is None:
        return None
    return shown(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False), _VALUE_LENGTH_MAX)
