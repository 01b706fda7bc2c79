"""Jobs and orders as adapters get them from the engine."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from genlock.domain.job import Delivery, Job, Notice, State
from genlock.domain.money import HoldState
from genlock.domain.offer import Offer
from genlock.domain.task import TaskOrder


def make_job(number: int = 1, **changes: Any) -> Job:
    """Return a job on its way to the provider."""
    now = datetime.now(UTC)
    job = Job(
        id=number,
        account_id=1,
        request_key=f"order-{number}",
        correlation_id=f"{number:016x}",
        provider="",
        channel="",
        bot="",
        address="",
        placeholder=None,
        model="conformance",
        input="{}",
        price=100,
        hold_state=HoldState.HELD,
        state=State.SUBMITTING,
        task_id=None,
        error_code="",
        error_text="",
        cancelled_by=None,
        cost=None,
        late=False,
        parts=(),
        delivery=Delivery.NONE,
        notice=Notice.NONE,
        attention_code=None,
        attention_reason=None,
        attempts=0,
        due_at=None,
        deadline_at=now + timedelta(minutes=10),
        grace_until=None,
        lease_owner="conformance",
        lease_token=1,
        created_at=now,
        submitted_at=now,
        ended_at=None,
        delivered_at=None,
        read_at=now,
    )
    return replace(job, **changes)


def make_order(
    provider: str, model: str, values: Mapping[str, Any], *, number: int = 1, callback_url: str | None = None
) -> TaskOrder:
    """Return an order of the provider's model, with inputs under the provider's own names."""
    job = make_job(number, provider=provider, input=json.dumps(values))
    return TaskOrder(job=job, offer=Offer(provider=provider, model=model), callback_url=callback_url)
