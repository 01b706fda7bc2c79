"""The clock port."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time. The store uses it only where the database has no clock of its own."""

    def now(self) -> datetime: ...
