"""What every evaluation of chaos counts, however its orders were made: in chats or through the API."""

from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar


class HasPrompt(Protocol):
    prompt: str


OrderT = TypeVar("OrderT", bound=HasPrompt)


@dataclass(kw_only=True)
class OrderCounts(Generic[OrderT]):
    """Field names, also those of subclasses, are keys of `genlock chaos --json`."""

    jobs: int = 0
    delivered_once: int = 0
    duplicates: int = 0
    lost: int = 0
    #: orders that ended without a result, and say why
    failed_told: int = 0
    failed_silent: int = 0
    #: tasks created beyond the first of an order
    double_submits: int = 0
    astray: int = 0
    #: orders charged without a result, or with a result in time that was not charged
    wrongly_charged: int = 0
    ledger_ok: bool = True
    violations: list[str] = field(default_factory=list)
    #: orders with a problem
    concerned: list[OrderT] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not any(self.faults()) and self.ledger_ok and not self.violations

    def faults(self) -> tuple[int, ...]:
        """Return the counts that must all be zero."""
        return (self.duplicates, self.lost, self.failed_silent, self.double_submits, self.astray)

    def as_json(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"ok": self.ok} | counts | {"concerned": [order.prompt for order in self.concerned]}
