"""A job as it stands in its row, for tests that look at one field of it."""

from datetime import UTC, datetime

from genlock.domain.job import Delivery, Job, Notice, State
from genlock.domain.money import HoldState

NOW = datetime(2026, 11, 1, tzinfo=UTC)
#: free, and on its way to the provider
JOB = Job(
    id=1,
    account_id=1,
    request_key="k",
    correlation_id="c",
    provider="kie",
    channel="chat",
    bot="",
    address="42",
    placeholder=None,
    model="z-image",
    input="{}",
    price=0,
    hold_state=HoldState.FREE,
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
    deadline_at=NOW,
    grace_until=None,
    lease_owner=None,
    lease_token=1,
    created_at=NOW,
    submitted_at=None,
    ended_at=None,
    delivered_at=None,
    read_at=NOW,
)
