"""Verifies calls of webhooks (Standard Webhooks, `v1` signatures)."""

import base64
import binascii
import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from genlock.client.errors import InvalidWebhook
from genlock.client.types import Job

TOLERANCE_SECONDS = 300.0
_PREFIX = "whsec_"
_DIGITS_MAX = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    id: str  #: the same for every attempt: handle each id once
    type: str  #: job.started, job.succeeded, job.failed, job.canceled, job.expired or webhook.test
    timestamp: datetime
    data: Mapping[str, Any]  #: the job, without its input and texts

    @property
    def job(self) -> Job | None:
        """The job that the event tells of; None for a test, and for a job that was deleted meanwhile."""
        return Job.parse(self.data) if "id" in self.data else None


def verify_webhook(
    secret: str, headers: Mapping[str, str], body: bytes, *, now: Callable[[], float] = time.time
) -> Event:
    """Return the event of a call that the service has signed within the last minutes. Raises InvalidWebhook."""
    given = {name.lower(): value for name, value in headers.items()}
    event_id, sent_at = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not event_id or not (sent_at.isascii() and sent_at.isdigit() and len(sent_at) <= _DIGITS_MAX):
        raise InvalidWebhook("the headers webhook-id and webhook-timestamp are missing or wrong")
    if abs(now() - int(sent_at)) > TOLERANCE_SECONDS:
        raise InvalidWebhook("the call is too old, or from the future")
    expected = hmac.digest(_key(secret), f"{event_id}.{sent_at}.".encode() + body, "sha256")
    signatures = given.get("webhook-signature", "").split()
    if not any(hmac.compare_digest(_signature(signature), expected) for signature in signatures):
        raise InvalidWebhook("no signature fits")
    content = json.loads(body)
    timestamp = datetime.fromisoformat(content["timestamp"])
    return Event(id=event_id, type=content["type"], timestamp=timestamp, data=content["data"])


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("the secret must be as the service showed it: whsec_ and Base64") from None


def _signature(text: str) -> bytes:
    version, _, value = text.partition(",")
    if version != "v1" or not value.isascii():
        return b""
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        return b""
