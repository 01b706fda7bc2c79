"""The record of one Bot API call: arguments, answer, faults, and whether it was executed and answered."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(kw_only=True)
class Call:
    number: int
    at: float
    method: str
    arguments: dict[str, Any]
    chat: int | None
    #: total size of the uploaded files, in bytes
    uploaded: int = 0
    answer: Any = None
    error: str | None = None
    executed: bool = False
    answered: bool = False
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
