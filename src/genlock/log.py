"""Events as log lines: `[correlation id] [EVENT] key=value`, or JSON. Secrets are masked and controls escaped."""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from datetime import UTC, datetime
from time import monotonic
from typing import Any, TextIO
from urllib.parse import quote

from genlock.domain.api_key import PREFIX as API_KEY_PREFIX
from genlock.domain.api_key import mask_api_secrets
from genlock.domain.events import Event
from genlock.domain.printable import escape_unprintable

_LEVELS = {
    Event.RESULT_CONTRADICTION: logging.ERROR,
    Event.RESULT_WRONG_TASK: logging.ERROR,
    Event.STAGE_ERROR: logging.ERROR,
    Event.WEBHOOK_SECRETS_LOST: logging.ERROR,
    Event.ALARM: logging.ERROR,
    Event.ATTENTION: logging.WARNING,
    Event.INSTANCE_DEAD: logging.WARNING,
    Event.PROVIDER_SILENT: logging.WARNING,
    Event.STORE_RETRY: logging.WARNING,
    Event.STORE_TIMEOUT: logging.WARNING,
    Event.CHANNEL_UNREACHABLE: logging.WARNING,
    Event.UNKNOWN_STATE: logging.WARNING,
    Event.CALLBACK_UNREADABLE: logging.WARNING,
    Event.CALLBACK_REFUSED: logging.WARNING,
    Event.UPDATE_REFUSED: logging.WARNING,
    Event.UPDATE_FAIL: logging.WARNING,
    Event.UPDATE_DEAD: logging.ERROR,
    Event.POLL_CONFLICT: logging.WARNING,
    Event.SETTING_UNKNOWN: logging.WARNING,
    Event.PLUGIN_LEFT_OUT: logging.ERROR,
    Event.POISON_SUSPECTED: logging.WARNING,
    Event.CATALOG_EDIT_LEFT_OUT: logging.WARNING,
}
#: events that any sender can cause without a secret, and how many lines per event and status are written in a minute
_REFUSALS = frozenset({Event.CALLBACK_REFUSED, Event.UPDATE_REFUSED})
REFUSALS_PER_MINUTE = 60
_MINUTE = 60.0
_encode = json.JSONEncoder(default=str, ensure_ascii=False).encode
#: the form of a bot token, ours or another: libraries put URLs that contain it into their errors
_TOKEN = re.compile(r"\b(bot)?[0-9]{5,20}(:|%3A)[A-Za-z0-9_-]{30,}", re.IGNORECASE)
#: every bot token contains this: a search for it is faster, and most lines have none
_TOKEN_SIGN = re.compile(r"[0-9](?::|%3[Aa])[A-Za-z0-9_-]{30}")
_MASK = "***"
#: shorter secrets are not masked: they would match ordinary words
_SECRET_LENGTH_MIN = 6


class RefusalLines:
    """Limits the lines about refused requests: any sender could fill the disk with them. Metrics count all of them."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        #: by event and status: when the minute began, the lines since then, and how many were left out
        self._minutes: dict[tuple[Event, object], tuple[float, int, int]] = {}

    def left_out_before(self, event: Event, status: object) -> int | None:
        """Return how many lines were left out before this one; None if this one is left out, too."""
        now = self._clock()
        began, lines, left_out = self._minutes.get((event, status), (now, 0, 0))
        if now - began >= _MINUTE:
            began, lines = now, 0
        is_written = lines < REFUSALS_PER_MINUTE
        self._minutes[event, status] = (began, lines + is_written, 0 if is_written else left_out + 1)
        return left_out if is_written else None


class LogObserver:
    """Writes events to a logger. Counts are not logged; they are metrics."""

    ignores_counts = True

    def __init__(self, logger: logging.Logger, *, as_json: bool, instance: str | None = None) -> None:
        self._logger = logger
        self._as_json = as_json
        self._instance = instance
        self._refusals = RefusalLines()

    def event(self, event: Event, correlation_id: str = "", /, **fields: Any) -> None:
        level = _LEVELS.get(event, logging.INFO)
        if not self._logger.isEnabledFor(level):
            return
        if event in _REFUSALS:
            left_out = self._refusals.left_out_before(event, fields.get("status"))
            if left_out is None:
                return
            if left_out:
                fields["left_out"] = left_out
        if self._as_json:
            line = json_line(event, correlation_id, fields, self._instance)
        else:
            line = human_line(event, correlation_id, fields)
        # A record made here: `Logger.log` would search the stack for the caller, which no line names.
        self._logger.handle(logging.LogRecord(self._logger.name, level, "", 0, line, None, None))

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Ignore counts."""


class Silent:
    """An observer that ignores everything."""

    def event(self, event: Event, correlation_id: str = "", /, **fields: Any) -> None: ...

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None: ...


def human_line(event: Event, correlation_id: str, fields: dict[str, Any]) -> str:
    pairs = " ".join(f"{key}={_plain(value)}" for key, value in fields.items() if value is not None)
    return f"[{correlation_id or '-'}] [{event}] {pairs}".rstrip()


def json_line(event: Event, correlation_id: str, fields: dict[str, Any], instance: str | None = None) -> str:
    line = {"event": event.value, "correlation_id": correlation_id, **fields}
    return _encode(line if instance is None else {"at": _now(), "instance": instance, **line})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _plain(value: Any) -> str:
    """Return the value as one word, quoted if needed, so that it cannot begin a new line or key."""
    text = str(value)
    return text if text and text.isprintable() and " " not in text and '"' not in text else _encode(text)


class Mask:
    """Replaces known secrets, and everything that looks like a bot token or an API key, in a text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        #: each secret as it is, in JSON and in a URL; the longest first
        self._forms: list[str] = []
        self._known: re.Pattern[str] | None = None
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        forms = set(self._forms)
        for secret in secrets:
            if len(secret) >= _SECRET_LENGTH_MIN:
                forms |= {secret, _encode(secret)[1:-1], quote(secret, safe="")}
        self._forms = sorted(forms, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, self._forms))) if forms else None

    def __call__(self, text: str) -> str:
        if self._known is not None and any(form in text for form in self._forms):
            text = self._known.sub(_MASK, text)
        if API_KEY_PREFIX in text:
            text = mask_api_secrets(text)
        return _TOKEN.sub(_MASK, text) if _TOKEN_SIGN.search(text) else text


class MaskingFormatter(logging.Formatter):
    """Masks secrets and escapes what does not print, in every line: ours, those of libraries, and tracebacks."""

    def __init__(self, mask: Mask, *, as_json: bool) -> None:
        super().__init__("%(message)s")
        self._mask = mask
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        if record.name == "genlock" and record.exc_info is None:
            return escape_unprintable(self._mask(record.getMessage()))
        line = super().format(record)
        if record.name != "genlock" or record.exc_info:  # not an event
            line = self._library_line(record, line)
        return escape_unprintable(self._mask(line))

    def _library_line(self, record: logging.LogRecord, line: str) -> str:
        if self._as_json:
            fields = {"event": "LOG", "logger": record.name, "level": record.levelname, "text": line}
            return _encode({"at": _now(), **fields})
        return f"[-] [LOG] logger={record.name} level={record.levelname} text={_plain(line)}"


class BufferedHandler(logging.StreamHandler[TextIO]):
    """Writes the lines of one iteration of the event loop together; without a loop, each line at once."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.append(self.format(record) + self.terminator)
            if len(self._lines) > 1:
                return  # the first line has already scheduled the flush
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:
                self.flush()
        except Exception:  # noqa: BLE001 - a failed log line must not stop the code that logs
            self.handleError(record)

    def flush(self) -> None:
        with self.lock or nullcontext():
            lines, self._lines = self._lines, []
            if lines:
                self.stream.write("".join(lines))
            super().flush()


def set_up_logging(mask: Mask, *, as_json: bool, stream: TextIO, level: int = logging.INFO) -> None:
    """Send all log lines of the process through one handler that masks secrets."""
    # No line names a thread or a process, and finding them out is half of the cost of a record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = BufferedHandler(stream)
    handler.setFormatter(MaskingFormatter(mask, as_json=as_json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("genlock").setLevel(level)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # its warnings are about malformed requests from anywhere
    logging.getLogger("asyncpg").setLevel(logging.ERROR)  # its warnings are retried and reported by the store
