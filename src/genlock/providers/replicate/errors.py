"""Replicate's errors: what a refused order and a failed prediction mean."""

import re
from typing import Any

from genlock.domain.errors import ProviderBusy, ProviderError, SubmitRefused, SubmitUnknown
from genlock.providers.http import REFUSED, may_be_accepted
from genlock.providers.json_values import clean

BUSY_SECONDS = 10.0
_RESETS = re.compile(r"resets in ~?(\d{1,3})s")
_MODERATION = re.compile(r"nsfw|safety|flagged|content polic|sensitive|moderation|prohibited", re.IGNORECASE)
_FILE = re.compile(
    r"(download|fetch|load|open) .{0,40}(file|image|video|audio|url)|cannot identify image", re.IGNORECASE
)
_TIMEOUT = re.compile(r"timed? ?out|deadline", re.IGNORECASE)


def refusal(status: int, body: Any) -> ProviderError:
    """Return the error of an order that was answered without a prediction."""
    text = error_text(body)
    if status == 429:  # noqa: PLR2004
        return busy(body)
    if may_be_accepted(status):
        return SubmitUnknown(f"status {status}: {text}")
    code = "moderation" if _MODERATION.search(text) else "bad_input"
    return SubmitRefused(REFUSED.get(status, code), text)


def busy(body: Any) -> ProviderBusy:
    text = error_text(body)
    found = _RESETS.search(text)
    return ProviderBusy(float(found[1]) if found else BUSY_SECONDS, text)


def failure_code(text: str) -> str:
    """Return the error code of a prediction that failed."""
    if _MODERATION.search(text):
        return "moderation"
    if _FILE.search(text):
        return "file_unreachable"
    return "provider_timeout" if _TIMEOUT.search(text) else "provider_failed"


def error_text(body: Any) -> str:
    """Return a short text of an error for the operator."""
    words = [body.get(key) for key in ("title", "detail")] if isinstance(body, dict) else []
    return clean(": ".join(word for word in words if isinstance(word, str)))[:500]
