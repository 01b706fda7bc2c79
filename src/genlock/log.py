"""Events as log lines: `[correlation] [EVENT] key=value`, or JSON. No line ever shows a secret."""

import asyncio
import json
import logging
import re
from collections.abc import Iterable
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any, TextIO
from urllib.parse import quote

from genlock.domain.events import Event

_LOUD = {
    Event.RESULT_CONTRADICTION: logging.ERROR,
    Event.RESULT_WRONG_TASK: logging.ERROR,
    Event.STAGE_ERROR: logging.ERROR,
    Event.ALARM: logging.ERROR,
    Event.ATTENTION: logging.WARNING,
    Event.INSTANCE_DEAD: logging.WARNING,
    Event.STORE_RETRY: logging.WARNING,
    Event.CHANNEL_UNREACHABLE: logging.WARNING,
    Event.UNKNOWN_STATE: logging.WARNING,
    Event.CALLBACK_UNREADABLE: logging.WARNING,
    Event.CALLBACK_REFUSED: logging.WARNING,
    Event.UPDATE_REFUSED: logging.WARNING,
    Event.UPDATE_FAIL: logging.WARNING,
    Event.UPDATE_DEAD: logging.ERROR,
    Event.POLL_CONFLICT: logging.WARNING,
    Event.SETTING_UNKNOWN: logging.WARNING,
    Event.POISON_SUSPECTED: logging.WARNING,
}
_encode = json.JSONEncoder(default=str, ensure_ascii=False).encode
#: what looks like a bot's token, ours or not: the addresses that libraries put into their errors hold it
_TOKEN = re.compile(r"\b(bot)?[0-9]{5,20}(:|%3A)[A-Za-z0-9_-]{30,}", re.IGNORECASE)
_MASK = "***"
#: shorter ones are words that stand everywhere
_SECRET_LEAST = 6


class LogObserver:
    """Writes events to a logger. Counts are for metrics; a log line for each would tell nobody anything."""

    def __init__(self, logger: logging.Logger, *, as_json: bool, instance: str | None = None) -> None:
        self._logger = logger
        self._as_json = as_json
        self._instance = instance

    def event(self, event: Event, correlation_id: str = "", /, **facts: Any) -> None:
        level = _LOUD.get(event, logging.INFO)
        if not self._logger.isEnabledFor(level):
            return
        if self._as_json:
            self._logger.log(level, "%s", json_line(event, correlation_id, facts, self._instance))
        else:
            self._logger.log(level, "%s", human_line(event, correlation_id, facts))

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Not for the log."""


class Silent:
    """An observer that keeps nothing."""

    def event(self, event: Event, correlation_id: str = "", /, **facts: Any) -> None: ...

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None: ...


def human_line(event: Event, correlation_id: str, facts: dict[str, Any]) -> str:
    told = " ".join(f"{key}={_plain(value)}" for key, value in facts.items() if value is not None)
    return f"[{correlation_id or '-'}] [{event}] {told}".rstrip()


def json_line(event: Event, correlation_id: str, facts: dict[str, Any], instance: str | None = None) -> str:
    told = {"event": event.value, "correlation_id": correlation_id, **facts}
    return _encode(told if instance is None else {"at": _now(), "instance": instance, **told})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _plain(value: Any) -> str:
    """One word, whatever it holds: a line stays a line."""
    text = str(value)
    return text if text and text.isprintable() and " " not in text and '"' not in text else _encode(text)


class Mask:
    """Takes the secrets it knows, and whatever looks like a bot's token, out of a text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms: set[str] = set()
        self._known: re.Pattern[str] | None = None
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        for secret in secrets:
            if len(secret) >= _SECRET_LEAST:
                self._forms |= {secret, _encode(secret)[1:-1], quote(secret, safe="")}
        longest_first = sorted(self._forms, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(_MASK, text)
        return _TOKEN.sub(_MASK, text) if ":" in text or "%3" in text else text


class Masking(logging.Formatter):
    """Takes every secret out of every line, whoever wrote it: ours, a library's, a traceback's."""

    def __init__(self, mask: Mask, *, as_json: bool) -> None:
        super().__init__("%(message)s")
        self._mask = mask
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        if record.name != "genlock":  # a library's: give it the form of ours
            line = self._strange(record, line)
        return self._mask(line)

    def _strange(self, record: logging.LogRecord, line: str) -> str:
        if self._as_json:
            told = {"event": "LOG", "logger": record.name, "level": record.levelname, "text": line}
            return _encode({"at": _now(), **told})
        return f"[-] [LOG] logger={record.name} level={record.levelname} text={_plain(line)}"


class Gathering(logging.StreamHandler[TextIO]):
    """Lines of one turn of the event loop are written together; outside of a loop, each at once."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.append(self.format(record) + self.terminator)
            if len(self._lines) > 1:
                return  # whoever wrote the first one sees to it
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:
                self.flush()
        except Exception:  # noqa: BLE001 - a line that cannot be written must not end what it tells of
            self.handleError(record)

    def flush(self) -> None:
        with self.lock or nullcontext():
            lines, self._lines = self._lines, []
            if lines:
                self.stream.write("".join(lines))
            super().flush()


def set_up_logging(mask: Mask, *, as_json: bool, stream: TextIO, level: int = logging.INFO) -> None:
    """All lines of the process go through one handler, and through the mask."""
    handler = Gathering(stream)
    handler.setFormatter(Masking(mask, as_json=as_json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("genlock").setLevel(level)
    logging.getLogger("asyncpg").setLevel(logging.ERROR)  # what it warns of, at length, is tried again and told by us
