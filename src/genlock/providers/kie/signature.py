"""Callback signatures: HMAC-SHA256 over the task id and the time. The body itself is not signed."""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from itertools import islice

from genlock.providers.json_values import load_json
from genlock.providers.kie.parser import TASK_ID_KEYS, read_task_id

TIMESTAMP = "X-Webhook-Timestamp"
SIGNATURE = "X-Webhook-Signature"
WINDOW_SECONDS = 300
_DIGITS_MAX = 12
#: how many places of one key are looked at, which may also be words of a user's prompt, and how many values of it are
#: compared with the signature
_PLACES_MAX, _IDS_MAX = 1000, 10
_VALUE = re.compile(rb'\\?"\s{0,20}:\s{0,20}\\?"([A-Za-z0-9_.:-]{1,128})\\?"')


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
    signature = headers.get(SIGNATURE, "").encode(errors="replace")
    signed = [task_id for task_id in _named(body) if _matches(signature, task_id, int(timestamp), key)]
    if not signed:  # any sender may have made the body, so it is not parsed
        return False
    try:
        parsed = load_json(body)
    except ValueError:
        return False
    return isinstance(parsed, dict) and read_task_id(parsed) in signed


def _named(body: bytes) -> Iterator[str]:
    """Yield the first ids at places where a callback may name its task, also in JSON inside a string."""
    for key in TASK_ID_KEYS:
        places = islice(re.finditer(key.encode(), body), _PLACES_MAX)
        values = filter(None, (_VALUE.match(body, place.end()) for place in places))
        yield from (value[1].decode() for value in islice(values, _IDS_MAX))


def _matches(signature: bytes, task_id: str, timestamp: int, key: str) -> bool:
    return hmac.compare_digest(sign(task_id, timestamp, key).encode(), signature)
