"""How a line of the audit log is shown: what was changed, from what to what."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from genlock.dashboard.audit_words import AuditWords
from genlock.domain.audit import AuditLine, read_changes
from genlock.i18n.translator import Translator

#: changed values that one line shows
CHANGES_MAX = 40
#: what the end of bulk work writes down
_BULK_COUNTS = frozenset({"jobs", "done", "left_out"})
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
    #: what it was done to, in words
    subject: str
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


def show_line(line: AuditLine, t: Translator) -> ShownLine:
    words = AuditWords(t)
    changes = _changes(line, words)
    return ShownLine(
        line=line,
        changes=() if changes is None else changes[:CHANGES_MAX],
        text=words.sentence(line.action, line.detail) if changes is None else "",
        subject=words.subject(line),
        subject_path=_subject_path(line),
    )


def _subject_path(line: AuditLine) -> str:
    if job := _JOB.fullmatch(line.subject):
        return f"/jobs/{job[1]}"
    if line.action in _ACCOUNT_ACTIONS and _ACCOUNT.fullmatch(line.subject):
        return f"/users/{line.subject}"
    return ""


def _changes(line: AuditLine, words: AuditWords) -> tuple[Change, ...] | None:
    """Return what a detail with `before` and `after` says, or the counts of bulk work; None if it has neither."""
    changes = read_changes(line.detail)
    if changes is None:
        changes = _counts(line)
    return None if changes is None else tuple(_change(line.action, *one, words) for one in changes)


def _change(action: str, name: str, before: Any, after: Any, words: AuditWords) -> Change:
    if not name:
        was, now = words.change(action, before, after)
        return Change(name="", before=was, after=now)
    was, now = (words.value(action, name, one) for one in (before, after))
    return Change(name=words.field(action, name), before=was, after=now)


def _counts(line: AuditLine) -> list[tuple[str, Any, Any]] | None:
    """Return how many orders bulk work did, which has nothing before it."""
    try:
        read = json.loads(line.detail)
    except (ValueError, RecursionError):
        return None
    is_count = isinstance(read, dict) and read.keys() == _BULK_COUNTS and line.action.startswith("bulk_")
    return [(name, None, number) for name, number in read.items()] if is_count else None
