"""A client of genlock's HTTP API, for programs that order generations. It needs only httpx.

Every order has an idempotency key, so requests are repeated after a lost answer and still order once.
"""

from genlock.client.async_client import AsyncClient
from genlock.client.errors import (
    ApiError,
    Conflict,
    ConnectionLost,
    DamagedDownload,
    Forbidden,
    GenlockError,
    InvalidRequest,
    InvalidWebhook,
    JobNotDelivered,
    NotEnoughCredits,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from genlock.client.sync_client import Client
from genlock.client.types import Balance, File, Job, JobError, Model, Quote, Result
from genlock.client.webhooks import Event, verify_webhook

__all__ = [
    "ApiError",
    "AsyncClient",
    "Balance",
    "Client",
    "Conflict",
    "ConnectionLost",
    "DamagedDownload",
    "Event",
    "File",
    "Forbidden",
    "GenlockError",
    "InvalidRequest",
    "InvalidWebhook",
    "Job",
    "JobError",
    "JobNotDelivered",
    "Model",
    "NotEnoughCredits",
    "NotFound",
    "Quote",
    "Result",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
    "verify_webhook",
]
