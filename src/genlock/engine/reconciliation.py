"""The record of comparing payments with the channel's list of transactions: the last run, and what it found."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from genlock.domain.value import value
from genlock.ports import Database

#: kv entry of the bot
RECORD = "chat:reconciliation"
#: differences that are remembered, the newest first; each is in the audit log, too, if something was booked
REMEMBERED = 50
ERROR_LENGTH_MAX = 300


class PaymentDifferenceKind(StrEnum):
    MISSED_PAYMENT = "missed_payment"  #: the channel listed a payment that we had not booked; it was credited
    EXTERNAL_REFUND = "external_refund"  #: the channel listed a refund that we had not booked; it was booked
    UNKNOWN_PAYMENT = "unknown_payment"  #: a payment that no invoice of ours asked for; nothing was credited
    UNKNOWN_REFUND = "unknown_refund"  #: a refund of a payment that we do not know; nothing was booked


@value
class PaymentDifference:
    kind: PaymentDifferenceKind
    charge: str
    #: the channel's id of the user
    user: str
    #: what was paid, in the smallest unit of the currency
    paid_amount: int
    at: datetime


@dataclass(kw_only=True)
class Run:
    """What one run has found so far."""

    #: transactions that this run read
    read: int = 0
    #: transactions that all runs read
    position: int = 0
    differences: list[PaymentDifference] = field(default_factory=list)


@value
class Reconciliation:
    """The last run, and the differences of the latest runs, the newest first."""

    age_seconds: float
    read: int
    position: int
    error: str
    differences: Sequence[PaymentDifference]


class ReconciliationRecord:
    def __init__(self, store: Database, bot: str) -> None:
        self._store = store
        self._bot = bot

    async def write(self, run: Run, error: str = "") -> None:
        """Store the outcome of a run. Its differences are added to those of earlier runs."""
        before = await self.read()
        known = before.differences if before else ()
        new = [difference for difference in reversed(run.differences) if difference not in known]
        body = {
            "read": run.read,
            "position": run.position,
            "error": error[:ERROR_LENGTH_MAX],
            "differences": [_dump(difference) for difference in (*new, *known)[:REMEMBERED]],
        }
        await self._store.kv_put(RECORD, json.dumps(body), self._bot)

    async def read(self) -> Reconciliation | None:
        entry = await self._store.kv_get(RECORD, self._bot)
        if entry is None:
            return None
        body = json.loads(entry.value)
        return Reconciliation(
            age_seconds=entry.age,
            read=body["read"],
            position=body["position"],
            error=body["error"],
            differences=tuple(_load(row) for row in body["differences"]),
        )


def _dump(difference: PaymentDifference) -> dict[str, Any]:
    # Versions that may run at the same time read the amount as `stars`.
    return {
        "kind": difference.kind,
        "charge": difference.charge,
        "user": difference.user,
        "stars": difference.paid_amount,
        "at": difference.at.isoformat(),
    }


def _load(row: Mapping[str, Any]) -> PaymentDifference:
    return PaymentDifference(
        kind=PaymentDifferenceKind(row["kind"]),
        charge=row["charge"],
        user=row["user"],
        paid_amount=row["stars"],
        at=datetime.fromisoformat(row["at"]),
    )
