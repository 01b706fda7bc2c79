"""A task of the Kie.ai simulator: its state, its results and how it fails."""

from dataclasses import dataclass, field
from time import time
from typing import Any

from genlock.domain.catalog import Model, Output
from genlock.sandbox.kie.faults import Fault

STATES = ("waiting", "generating"), ("waiting",), ("waiting", "queuing", "generating"), ("generating",)
EXTENSIONS = {Output.IMAGE: "png", Output.VIDEO: "mp4", Output.AUDIO: "mp3", Output.TEXT: "txt"}
#: code, text
FAILURES = {
    Fault.TASK_FAIL: (500, "Internal Error, Please try again later."),
    Fault.TASK_UPSTREAM: (400, "The upstream service is busy, please try again later."),
    Fault.TASK_MODERATED: (400, "Your prompt was flagged by Website as violating content policies."),
}


@dataclass(kw_only=True)
class Task:
    id: str
    model: Model
    values: dict[str, Any]
    callback_url: str | None
    faults: set[Fault]
    price: int  #: thousandths of a credit
    seconds: float  #: how long it takes according to its record
    real_seconds: float  #: how long it takes in this run
    created: float  #: epoch
    states: tuple[str, ...]
    ended: float | None = None
    #: URLs, or the texts of a text model
    results: list[str] = field(default_factory=list)

    @property
    def failure(self) -> tuple[int, str] | None:
        return next((failure for fault, failure in FAILURES.items() if fault in self.faults), None)

    @property
    def error(self) -> tuple[int, str] | None:
        """Code and text of a task that has failed."""
        return self.failure if self.ended is not None else None

    @property
    def failed(self) -> bool:
        return self.error is not None

    @property
    def succeeded(self) -> bool:
        return self.ended is not None and self.failure is None

    @property
    def progress(self) -> float:
        return 1.0 if self.ended is not None else min(0.99, (time() - self.created) / max(self.real_seconds, 0.001))

    @property
    def state(self) -> str:
        if self.ended is not None:
            return "fail" if self.failed else "success"
        place = min(int(self.progress * len(self.states)), len(self.states) - 1)
        return self.states[place]

    @property
    def flag(self) -> int:
        """The state as a number, as the families with dedicated endpoints report it."""
        return 0 if self.ended is None else 3 if self.failed else 1

    @property
    def credits(self) -> float:
        """Credits consumed: charged at creation, refunded on failure."""
        return 0 if self.failed else self.price / 1000

    @property
    def created_ms(self) -> int:
        return int(self.created * 1000)

    @property
    def ended_ms(self) -> int | None:
        return None if self.ended is None else int(self.ended * 1000)
