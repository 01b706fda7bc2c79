"""Events as log lines: `[correlation] [EVENT] key=value`, or JSON."""

import json
import logging
from typing import Any

from genlock.domain.events import Event

_LOUD = {
    Event.RESULT_CONTRADICTION: logging.ERROR,
    Event.STAGE_ERROR: logging.ERROR,
    Event.ATTENTION: logging.WARNING,
    Event.PEER_DEAD: logging.WARNING,
    Event.STORE_RETRY: logging.WARNING,
    Event.UNKNOWN_STATE: logging.WARNING,
    Event.CALLBACK_UNREADABLE: logging.WARNING,
    Event.CALLBACK_REFUSED: logging.WARNING,
    Event.CHANNEL_STRANGE: logging.WARNING,
}
_encode = json.JSONEncoder(default=str, ensure_ascii=False).encode


class LogObserver:
    """Writes events to a logger. Counts are for metrics; a log line for each would tell nobody anything."""

    def __init__(self, logger: logging.Logger, *, as_json: bool) -> None:
        self._logger = logger
        self._line = json_line if as_json else human_line

    def event(self, event: Event, correlation: str = "", /, **facts: Any) -> None:
        level = _LOUD.get(event, logging.INFO)
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", self._line(event, correlation, facts))

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Not for the log."""


def human_line(event: Event, correlation: str, facts: dict[str, Any]) -> str:
    told = " ".join(f"{key}={_plain(value)}" for key, value in facts.items() if value is not None)
    return f"[{correlation or '-'}] [{event}] {told}".rstrip()


def json_line(event: Event, correlation: str, facts: dict[str, Any]) -> str:
    return _encode({"event": event.value, "correlation": correlation, **facts})


def _plain(value: Any) -> str:
    """One word, whatever it holds: a line stays a line."""
    text = str(value)
    return text if text and text.isprintable() and " " not in text and '"' not in text else _encode(text)
