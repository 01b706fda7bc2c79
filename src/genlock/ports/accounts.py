"""Accounts, their wallets and the ledger."""

from typing import Protocol

from genlock.domain.account import Account
from genlock.domain.money import EntryKind, LedgerEntry, Wallet
from genlock.domain.queued_message import QueuedMessage


class AccountStore(Protocol):
    async def ensure_account(self, channel: str, bot: str, external_id: str) -> int:
        """Return the id of the account that a bot of a channel knows by this id; create the account if it is new."""

    async def account(self, account_id: int) -> Account:
        """Raises AccountNotFound."""

    async def set_account_address(self, account_id: int, address: str) -> None:
        """Set where the channel reaches the user of an account outside a job."""

    async def wallet(self, account_id: int) -> Wallet:
        """Raises AccountNotFound."""

    async def transfer(
        self,
        account_id: int,
        kind: EntryKind,
        amount: int,
        key: str,
        reason: str = "",
        *,
        message: QueuedMessage | None = None,
    ) -> bool:
        """Move money between an account and the house, once per key. Returns False if the key was used before.

        Credits that were paid for (top-ups and refunds of orders) repay the account's debt in the same commit, with a
        ledger entry whose key is `repay:` and this key. `message`, to the user, is queued in the same commit.
        Raises InsufficientBalance, IdempotencyKeyReused and AccountNotFound.
        """

    async def transfer_within_allowance(
        self,
        account_id: int,
        kind: EntryKind,
        amount: int,
        key: str,
        reason: str,
        *,
        allowance: str,
        most: int,
        message: QueuedMessage | None = None,
    ) -> bool:
        """Move money as `transfer` does, if the total moved today (UTC) under this allowance stays at most `most`.

        The total is counted in the same commit, also when several instances move money at the same time. Grants and
        debits only. Raises AllowanceExceeded, InsufficientBalance, IdempotencyKeyReused and AccountNotFound.
        """

    async def use_allowance(self, allowance: str, amount: int, most: int) -> None:
        """Count an amount under an allowance before it is given otherwise than by a transfer within it.

        A negative amount takes back what was counted and not given. Raises AllowanceExceeded.
        """

    async def allowance_used(self, allowance: str) -> int:
        """Return the total moved today (UTC) under an allowance."""

    async def ledger_entry(self, key: str) -> LedgerEntry | None: ...

    async def ledger_entries(self, account_id: int, limit: int) -> list[LedgerEntry]:
        """Return the account's latest ledger entries, newest first."""
