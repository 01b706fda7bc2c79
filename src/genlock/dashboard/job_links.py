"""What else belongs to a job: calls of the client's webhooks, the client's notes, the orders that it was made from."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from genlock.channels.api.address import ApiAddress
from genlock.domain.job import Job
from genlock.domain.webhook import WebhookDelivery
from genlock.ports import Database

API = "api"
#: how an idempotency key of the API begins in a request key
_KEY_PREFIX = "api:"
DELIVERIES_MAX = 50
#: earlier orders of the account among whose results the input is looked for
EARLIER_JOBS = 50
#: a shorter value of an input is not the address of a result or the id of a task
_LINK_LENGTH_MIN = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class WebhookCall:
    delivery: WebhookDelivery
    #: the public id of the endpoint; empty if it was deleted
    endpoint: str
    #: the address; only its host for viewers who may not see what users wrote
    url: str


async def webhook_calls(store: Database, job: Job, *, whole_url: bool) -> list[WebhookCall]:
    """Return what was sent to the client's endpoints about a job, and what is to be sent."""
    if job.channel != API:
        return []
    deliveries = await store.job_webhook_deliveries(job.id, DELIVERIES_MAX)
    endpoints = {webhook.id: webhook for webhook in await store.webhooks(job.account_id)} if deliveries else {}
    found = []
    for delivery in deliveries:
        endpoint = endpoints.get(delivery.webhook_id)
        url = "" if endpoint is None else endpoint.url if whole_url else url_host(endpoint.url)
        found.append(WebhookCall(delivery=delivery, endpoint=endpoint.public_id if endpoint else "", url=url))
    return found


def url_host(url: str) -> str:
    """Return the address without what may be a secret in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "…"
    return f"{parts.scheme}://{parts.hostname or ''}/…"


def idempotency_key(job: Job) -> str:
    """Return the key that the API client sent with the order; empty if it was not made by the API."""
    return job.request_key.removeprefix(_KEY_PREFIX) if job.channel == API else ""


def client_notes(job: Job) -> Mapping[str, str]:
    """Return what the API client noted with the order."""
    if job.channel != API:
        return {}
    try:
        return ApiAddress.parse(job.address).metadata
    except (ValueError, KeyError, TypeError):  # written by another version
        return {}


async def source_jobs(store: Database, job: Job) -> list[int]:
    """Return the earlier orders of the account whose result or task this one begins with, newest first."""
    links = set(_links(job.input))
    if not links:
        return []
    earlier = await store.jobs(account_id=job.account_id, before=job.id, limit=EARLIER_JOBS)
    return [other.id for other in earlier if other.task_id in links or any(part.value in links for part in other.parts)]


def _links(text: str) -> Iterator[str]:
    try:
        found = json.loads(text)
    except ValueError:
        return
    yield from _long_texts(found)


def _long_texts(value: Any) -> Iterator[str]:
    """Yield what may be an address or an id: long, without spaces."""
    if isinstance(value, str) and len(value) >= _LINK_LENGTH_MIN and not any(map(str.isspace, value)):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _long_texts(item)
