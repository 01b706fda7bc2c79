"""fal's errors: what a refused order and a failed request mean."""

import re
from typing import Any

from genlock.domain.errors import ProviderBusy, ProviderError, SubmitRefused, SubmitUnknown
from genlock.providers.http import CLIENT_ERRORS, REFUSED, may_be_accepted
from genlock.providers.json_values import clean

BUSY_SECONDS = 5.0
SERVER_ERROR = 500
_NO_CREDIT = re.compile(r"locked|balance|credit|billing", re.IGNORECASE)
_MODERATION = re.compile(r"content_policy|moderation|nsfw|safety", re.IGNORECASE)
_FILE = re.compile(r"(file|image|video|audio)_(download|load)_error|download", re.IGNORECASE)
_TIMEOUT = re.compile(r"timeout", re.IGNORECASE)


def refusal(status: int, body: Any) -> ProviderError:
    """Return the error of an order that was answered without a request id."""
    text = error_text(body)
    if status == 429:  # noqa: PLR2004
        return ProviderBusy(BUSY_SECONDS, text)
    if may_be_accepted(status):
        return SubmitUnknown(f"status {status}: {text}")
    if status == 403 and _NO_CREDIT.search(text):  # noqa: PLR2004
        return SubmitRefused("no_provider_credits", text)
    return SubmitRefused(REFUSED.get(status) or failure_code(status, body), text)


def failure_code(status: int, body: Any) -> str:
    """Return the error code of a request that ended without a result."""
    words = error_words(body)
    if status >= SERVER_ERROR:
        return "provider_timeout" if _TIMEOUT.search(words) else "provider_failed"
    if _MODERATION.search(words):
        return "moderation"
    if _FILE.search(words):
        return "file_unreachable"
    return "bad_input" if status in CLIENT_ERRORS else "provider_failed"


def error_words(body: Any) -> str:
    """Return the types of an error, by which it is classified."""
    words = [body.get("error_type")] if isinstance(body, dict) else []
    words += [item.get("type") for item in _details(body)]
    return " ".join(word for word in words if isinstance(word, str))[:500]


def error_text(body: Any) -> str:
    """Return a short text of an error for the operator."""
    detail = body.get("detail") or body.get("error") if isinstance(body, dict) else None
    if isinstance(detail, str):
        return clean(detail)[:500]
    messages = [item.get("msg") for item in _details(body)]
    return clean("; ".join(text for text in messages if isinstance(text, str)))[:500]


def _details(body: Any) -> list[dict[str, Any]]:
    detail = body.get("detail") if isinstance(body, dict) else None
    return [item for item in detail[:20] if isinstance(item, dict)] if isinstance(detail, list) else []
