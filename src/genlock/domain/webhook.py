"""Webhooks: addresses of API clients that are called when something happens to their jobs, and these calls."""

import base64
import hashlib
import hmac
from datetime import datetime
from enum import StrEnum

from genlock.domain.value import value

SECRET_PREFIX = "whsec_"  # noqa: S105 - the start of every secret
ENDPOINT_PREFIX = "we_"
MESSAGE_PREFIX = "msg_"
ENDPOINTS_MAX = 20
URL_LENGTH_MAX = 2000
DESCRIPTION_LENGTH_MAX = 200
#: seconds that the secret before a rotation still signs
OVERLAP_SECONDS = 86_400.0
#: seconds from each failed attempt to the next; after the last one the delivery has failed
RETRY_SECONDS = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
#: an endpoint to which nothing could be delivered for this long is disabled
FAILING_SECONDS_MAX = float(sum(RETRY_SECONDS))
_JITTER = 0.1
#: kv entries, one per endpoint whose secret cannot be read and whose owner was told; the value is the account
LOST = "webhook_secret_lost:"


class WebhookEvent(StrEnum):
    JOB_STARTED = "job.started"  #: the provider has accepted the job
    JOB_SUCCEEDED = "job.succeeded"  #: the results are there and charged
    JOB_FAILED = "job.failed"  #: there is no result; nothing is charged
    JOB_CANCELED = "job.canceled"  #: it was cancelled; nothing is charged
    JOB_EXPIRED = "job.expired"  #: it took too long; nothing is charged
    TEST = "webhook.test"  #: sent on demand


class DeliveryState(StrEnum):
    PENDING = "pending"  #: not sent yet, or to be sent again
    DELIVERED = "delivered"  #: answered with 2xx
    FAILED = "failed"  #: given up


@value
class NewWebhook:
    account_id: int
    public_id: str
    url: str
    #: which events are sent; empty: all
    events: frozenset[WebhookEvent] = frozenset()
    description: str = ""
    #: sealed
    secret: str = ""


@value
class Webhook:
    """An endpoint of an account."""

    id: int
    account_id: int
    public_id: str
    url: str
    events: frozenset[WebhookEvent]
    description: str
    enabled: bool
    #: why it was disabled by us; empty: it was not
    disabled_reason: str
    #: counts the rotations of the secret
    secret_number: int
    #: until when the secret before the last rotation signs, too
    previous_secret_until: datetime | None
    created_at: datetime
    #: sealed; empty in a row of an earlier version
    secret: str = ""
    previous_secret: str = ""
    #: consecutive times that nothing could be delivered to it
    failures: int = 0
    #: since when nothing could be delivered to it
    failing_since: datetime | None = None
    #: whether it answered slowly the last time
    slow: bool = False

    @property
    def is_degraded(self) -> bool:
        """Whether it is slow or fails repeatedly, so that it shares a few places with others of its kind."""
        return self.slow or self.failures > 1


@value
class WebhookDelivery:
    """One event on its way to one endpoint."""

    id: int
    #: the receiver's idempotency key: the same for every attempt
    public_id: str
    webhook_id: int
    job_id: int | None
    event: WebhookEvent
    event_at: datetime
    state: DeliveryState
    attempts: int
    due_at: datetime | None
    #: the HTTP status of the last attempt; None: there was no answer, or no attempt
    last_status: int | None
    last_error: str
    delivered_at: datetime | None
    #: the start of the last answer's body: text from outside
    last_answer: str = ""


@value
class WebhookAttempt:
    """What an attempt to deliver led to."""

    delivery_id: int
    webhook_id: int
    state: DeliveryState
    #: seconds until the next attempt, if it is pending
    after: float = 0.0
    status: int | None = None
    error: str = ""
    #: the start of the answer's body
    answer: str = ""


def retry_after(attempts: int, random: float) -> float | None:
    """Return the seconds until the next attempt after this many failed ones; None: there is none."""
    if attempts > len(RETRY_SECONDS):
        return None
    return RETRY_SECONDS[attempts - 1] * (1 + _JITTER * random)


def show_secret(secret: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(secret).decode()


def sign(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return a `v1` signature of Standard Webhooks."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
