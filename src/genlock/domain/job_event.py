"""Events that were kept with a correlation id, for the time line of a job."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from genlock.domain.value import value


@value
class JobEvent:
    """One event as it was kept: secrets are masked, long texts are cut."""

    at: datetime
    #: the name of an Event; a newer or older version may have others
    event: str
    #: the instance on which it happened
    instance: str
    fields: Mapping[str, Any]


@value
class EventRow:
    """Events with the same correlation id that an instance writes together."""

    correlation_id: str
    #: counts the rows of the instance, so that a row that was written twice is recognised
    number: int
    #: [[milliseconds before the row was written, event, fields], …], JSON
    events: str
