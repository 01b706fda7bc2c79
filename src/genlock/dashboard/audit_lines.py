"""How a page shows a line of the audit log: in words, with a link, without what the viewer may not read."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from genlock.domain.audit import AuditLine
from genlock.i18n.audit_words import Described, describe
from genlock.i18n.translator import Translator

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
class ShownLine:
    line: AuditLine
    #: the line in words
    described: Described
    #: the page about the subject, below `/dashboard`; "" if there is none
    subject_path: str


#: names of values that repeat what users wrote or were sent
_TEXTS = frozenset({"text"})
_HIDDEN = "…"


def without_texts(line: AuditLine) -> AuditLine:
    """Return a line without the texts that were searched for or sent, for viewers who may not read what users wrote."""
    try:
        read = json.loads(line.detail)
    except (ValueError, RecursionError):  # a long detail is cut, so that it cannot be read any more
        return replace(line, detail=_HIDDEN) if line.detail.startswith("{") else line
    return replace(line, detail=json.dumps(_hide(read), ensure_ascii=False)) if isinstance(read, dict) else line


def _hide(read: Any) -> Any:
    if not isinstance(read, dict):
        return read
    return {name: _HIDDEN if name in _TEXTS else _hide(item) for name, item in read.items()}


def show_line(line: AuditLine, t: Translator) -> ShownLine:
    return ShownLine(line=line, described=describe(line, t), subject_path=_subject_path(line))


def _subject_path(line: AuditLine) -> str:
    if job := _JOB.fullmatch(line.subject):
        return f"/jobs/{job[1]}"
    if line.action in _ACCOUNT_ACTIONS and _ACCOUNT.fullmatch(line.subject):
        return f"/users/{line.subject}"
    return ""
