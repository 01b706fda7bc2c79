"""The result of one phase of the doctor."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Phase:
    name: str
    ok: bool
    detail: str
