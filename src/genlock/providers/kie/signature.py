"""Callback signatures: HMAC-SHA256 over the task id and the time. The body itself is not signed."""

import base64
import hashlib
import hmac
from collections.abc import Mapping

from genlock.providers.json_values import load_json
from genlock.providers.kie.parser import read_task_id

TIMESTAMP = "X-Webhook-Timestamp"
SIGNATURE = "X-Webhook-Signature"
WINDOW_SECONDS = 300
_DIGITS_MAX = 12


def sign(task_id: str, timestamp: int, key: str) -> str:
    digest = hmac.new(key.encode(), f"{task_id}.{timestamp}".encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def is_signed(headers: Mapping[str, str], body: bytes, key: str, now: float) -> bool:
    """Tell whether a callback was signed with the key within the last minutes. `headers` ignores the case of names."""
    timestamp = headers.get(TIMESTAMP, "")
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _DIGITS_MAX):
        return False
    if abs(now - int(timestamp)) > WINDOW_SECONDS:
        return False
    try:
        parsed = load_json(body)
    except ValueError:
        return False
    task_id = read_task_id(parsed) if isinstance(parsed, dict) else None
    if task_id is None:
        return False
    expected = sign(task_id, int(timestamp), key)
    return hmac.compare_digest(expected.encode(), headers.get(SIGNATURE, "").encode(errors="replace"))
