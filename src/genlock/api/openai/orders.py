"""Orders of clients that send no idempotency key: a request that is repeated after a lost answer orders once.

OpenAI's clients repeat requests by themselves and number the attempts. A first attempt is a new order. A later attempt,
or a request of a client that does not number them, means the newest order of the same key with the same body, if there
is one from the last minutes that has not failed. The orders of one body are numbered, and the number is part of their
request key: requests at the same time cannot both make the next one.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from genlock.api.job_view import status_of
from genlock.api.operation import Call, Header
from genlock.api.order_acceptance import (
    KEY_HEADER,
    Accepted,
    ClientOrder,
    OrderAcceptance,
    client_request_key,
    read_key,
)
from genlock.api.parts import ApiParts
from genlock.api.problems import unavailable
from genlock.api.types import Status
from genlock.channels.api.address import ApiAddress
from genlock.domain.job import Job

ATTEMPT_HEADER = "X-Stainless-Retry-Count"
#: a client with three attempts of five minutes each asks for its order within this time
WINDOW_SECONDS = 1200.0
#: orders of the same body that other requests make meanwhile
NUMBERS_TRIED = 100
#: searches for the order that a first attempt may mean
READS_MAX = 5
_DIGITS = 12
_FAILED = frozenset({Status.FAILED, Status.CANCELED, Status.EXPIRED})

KEY_DOC = Header(
    name=KEY_HEADER,
    description="Your key for this order. Without it, a repeated attempt of OpenAI's clients "
    f"(`{ATTEMPT_HEADER}` above 0) and the same body sent again within {WINDOW_SECONDS / 60:.0f} minutes by a "
    "client that does not number its attempts are the same order; attempt 0 is a new one.",
    schema={"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\x21-\x7e]+$"},
)

#: returns the input of an order that does not exist yet
Complete = Callable[[], Awaitable[Mapping[str, Any]]]


class OpenAIOrders:
    def __init__(self, parts: ApiParts, acceptance: OrderAcceptance) -> None:
        self._store = parts.store
        self._acceptance = acceptance

    async def accept(self, call: Call, order: ClientOrder, complete: Complete | None = None) -> Accepted:
        """Return the job that a request means, a new one if there is none. Raises Problem."""
        if KEY_HEADER in call.request.headers:
            request_key = client_request_key(read_key(call))
            exists = await self._store.job_by_request_key(call.account_id, request_key) is not None
            order = order if exists or complete is None else replace(order, input=await complete())
            return await self._acceptance.accept(call, order, request_key)
        return await self._accept_without_key(call, order, complete)

    async def _accept_without_key(self, call: Call, order: ClientOrder, complete: Complete | None) -> Accepted:
        is_first = call.request.headers.get(ATTEMPT_HEADER, "").strip() == "0"
        prefix = f"openai:{call.key.id}:{order.request_hash}:"
        newest, is_meant = await self._find(call, prefix, is_first=is_first)
        if newest is not None and is_meant:
            return Accepted(job=newest, replayed=True)
        order = replace(order, may_be_repeated=not is_first)
        if complete is not None:
            order = replace(order, input=await complete())
        number = 1 if newest is None else int(newest.request_key[-_DIGITS:]) + 1
        for next_number in range(number, number + NUMBERS_TRIED):
            accepted = await self._acceptance.accept(call, order, f"{prefix}{next_number:0{_DIGITS}}")
            # An order that exists under this number was made after the search, while this request was held up.
            if not accepted.replayed or _is_meant(accepted.job, math.inf, is_first=is_first):
                return accepted
        raise unavailable("many requests order the same at the moment; nothing was ordered, send this one again")

    async def _find(self, call: Call, prefix: str, *, is_first: bool) -> tuple[Job | None, bool]:
        """Return the newest order of a body, and whether the request means it.

        If reading took longer than the time between the order and the request, nothing says which came first: it is
        read again. While that stays uncertain, the request means the order, so that it is not charged twice.
        """
        now, newest, is_meant = asyncio.get_running_loop().time, None, False
        for _ in range(READS_MAX):
            before = now() - call.received_at
            newest = await self._store.newest_api_job_between(
                call.account_id, prefix + "0" * _DIGITS, prefix + "9" * _DIGITS
            )
            if newest is None:
                return None, False
            is_meant = _is_meant(newest, now() - call.received_at, is_first=is_first)
            if is_meant == _is_meant(newest, before, is_first=is_first):
                break
        return newest, is_meant


def _is_meant(job: Job, waited: float, *, is_first: bool) -> bool:
    """Return whether a request that has waited this long means a job that exists."""
    age = (job.read_at - job.created_at).total_seconds()
    if not is_first:
        return age <= WINDOW_SECONDS and status_of(job) not in _FAILED
    # A later attempt may overtake the first one, when the first was held up here and its client gave up.
    return ApiAddress.parse(job.address).may_be_repeated and age <= waited
