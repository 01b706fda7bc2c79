"""Telegram Stars in the simulator: invoices, payments, charges and open pre-checkout queries."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

STARS = "XTR"


@dataclass(frozen=True, kw_only=True)
class Invoice:
    title: str
    description: str
    payload: str
    amount: int
    currency: str = STARS
    start_parameter: str = ""

    def as_json(self) -> dict[str, Any]:
        fields = {"title": self.title, "description": self.description, "start_parameter": self.start_parameter}
        return fields | {"currency": self.currency, "total_amount": self.amount}


@dataclass(frozen=True, kw_only=True)
class Payment:
    """Outcome of an attempt to pay: a charge id, or the reason of the failure."""

    charge_id: str | None = None
    reason: str = ""

    @property
    def ok(self) -> bool:
        return self.charge_id is not None


@dataclass(kw_only=True)
class Charge:
    id: str
    user_id: int
    payload: str
    amount: int
    at: int
    refunded_at: int | None = None


@dataclass(kw_only=True)
class StarsLedger:
    #: by "chat/message" or by link
    invoices: dict[str, Invoice] = field(default_factory=dict)
    #: keys of paid message invoices, which can be paid once
    paid: set[str] = field(default_factory=set)
    charges: list[Charge] = field(default_factory=list)
    #: pre-checkout queries that the bot has not answered yet
    asked: dict[str, "asyncio.Future[tuple[bool, str]]"] = field(default_factory=dict)

    @property
    def balance(self) -> int:
        return sum(charge.amount for charge in self.charges if charge.refunded_at is None)
