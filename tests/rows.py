"""A job as it stands in its row, for tests that look at one field of it."""

from datetime import UTC, datetime

from genlock.domain.money import HoldState
from genlock.testing import make_job

NOW = datetime(2026, 11, 1, tzinfo=UTC)
#: free, and on its way to the provider
JOB = make_job(
    provider="kie",
    channel="chat",
    address="42",
    model="z-image",
    price=0,
    hold_state=HoldState.FREE,
    deadline_at=NOW,
    lease_owner=None,
    created_at=NOW,
    submitted_at=None,
    read_at=NOW,
)
