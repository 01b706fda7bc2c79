"""Orders for the adapters of fal and Replicate, and how their outcomes are compared."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from genlock.domain.errors import ProviderBusy, ProviderError, SubmitRefused, SubmitUnknown
from genlock.domain.offer import Offer
from genlock.domain.result import Outcome, Report
from genlock.domain.task import Handle, TaskOrder
from genlock.sandbox.generations.faults import Fault
from tests.rows import JOB

#: what a create call that was not answered with a handle means
REFUSALS = {
    Fault.CREATE_429: "busy",
    Fault.CREATE_NO_CREDIT: "no_provider_credits",
    Fault.CREATE_UNKNOWN_MODEL: "model_unavailable",
    Fault.CREATE_MAINTENANCE: "unknown",
    Fault.CREATE_500: "unknown",
    Fault.CREATE_502: "unknown",
    Fault.CREATE_CUT: "unknown",
    Fault.CREATE_GARBLED: "unknown",
    Fault.CREATE_NO_ID: "unknown",
    Fault.CREATE_SLOW: "unknown",
}
#: what an answer to a status query means
ANSWERS = {
    Fault.STATUS_429: "busy",
    Fault.STATUS_404: "running",
    Fault.STATUS_500: "error",
    Fault.STATUS_502: "error",
    Fault.STATUS_CUT: "success",  # the HTTP client repeats a query whose kept connection was cut
    Fault.STATUS_GARBLED: "error",
    Fault.STATUS_SLOW: "error",
    Fault.STATUS_WORD: "unknown",
}


def order_of(
    provider: str, model: str, values: Mapping[str, Any] | None = None, callback_url: str | None = None
) -> TaskOrder:
    given = {"prompt": "a fox in the snow"} if values is None else values
    offer = Offer(provider=provider, model=model)
    return TaskOrder(job=replace(JOB, input=json.dumps(given)), offer=offer, callback_url=callback_url)


async def create_word(create: Callable[[], Awaitable[Handle]]) -> str:
    """Return in a word how a create call ended."""
    try:
        await create()
    except SubmitRefused as refused:
        return refused.code
    except ProviderBusy:
        return "busy"
    except SubmitUnknown:
        return "unknown"
    return "created"


async def status_word(query: Callable[[], Awaitable[Report]]) -> str:
    """Return in a word what a status query told."""
    try:
        report = await query()
    except ProviderBusy:
        return "busy"
    except ProviderError:
        return "error"
    return report.error_code if report.outcome is Outcome.FAILURE else report.outcome.value
