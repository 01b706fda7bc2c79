"""What time it is."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time. The store's writes use it only where the database has no clock of its own."""

    def now(self) -> datetime: ...
