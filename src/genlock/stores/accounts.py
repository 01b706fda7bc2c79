"""Accounts, their wallets and the ledger."""

from genlock.domain.account import Account
from genlock.domain.errors import (
    AccountNotFound,
    AllowanceExceeded,
    IdempotencyKeyReused,
    InsufficientBalance,
    StoreError,
)
from genlock.domain.money import REPAYING, ROUTE, EntryKind, LedgerAccount, LedgerEntry, Wallet
from genlock.domain.queued_message import QueuedMessage
from genlock.stores.rows import message_params, read_account, read_ledger_entry, read_wallet
from genlock.stores.session import Subject

#: kv entries of the installation, one per allowance: the day since 1970 and what was moved on it
ALLOWANCE = "allowance:"
#: how often a transfer is repeated because another transaction changed the allowance meanwhile
ATTEMPTS_MAX = 200


class Accounts(Subject):
    async def ensure_account(self, channel: str, bot: str, external_id: str) -> int:
        # PostgreSQL does not see a row that another transaction adds during the statement; the second attempt does.
        for _ in range(2):
            rows = await self.session.one("ensure_account", channel=channel, bot=bot, external_id=external_id)
            if rows:
                return int(rows[0]["id"])
        raise StoreError(f"could not find or create the account {external_id} of {channel}")

    async def account(self, account_id: int) -> Account:
        rows = await self.session.one("account", account_id=account_id)
        if not rows:
            raise AccountNotFound
        return read_account(rows[0])

    async def set_account_address(self, account_id: int, address: str) -> None:
        await self.session.one("set_account_address", account_id=account_id, address=address)

    async def wallet(self, account_id: int) -> Wallet:
        rows = await self.session.one("wallet", account_id=account_id)
        if not rows:
            raise AccountNotFound
        return read_wallet(rows[0])

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
        debit, credit = ROUTE[kind]
        assert LedgerAccount.HELD not in (debit, credit), "only a job moves held money"
        for _ in range(ATTEMPTS_MAX):
            rows = await self.session.one(
                "transfer",
                account_id=account_id,
                kind=kind.value,
                debit=debit.value,
                credit=credit.value,
                amount=amount,
                key=key,
                reason=reason,
                repays=kind in REPAYING,
                **message_params(message),
            )
            if rows or await self._is_repeated(account_id, kind, amount, key):
                return bool(rows)
            wallet = await self.wallet(account_id)
            if wallet.available < amount:  # otherwise credits arrived after the attempt
                raise InsufficientBalance(price=amount, available=wallet.available)
        raise StoreError(f"the transfer {key!r} was neither made nor refused in {ATTEMPTS_MAX} attempts")

    async def _is_repeated(self, account_id: int, kind: EntryKind, amount: int, key: str) -> bool:
        """Whether this transfer was made before. Raises IdempotencyKeyReused if its key was used for another one."""
        before = await self.session.one("ledger_entry", key=key)
        if before and (before[0]["account_id"], before[0]["kind"], before[0]["amount"]) != (
            account_id,
            kind.value,
            amount,
        ):
            raise IdempotencyKeyReused(f"the key {key!r} was used for another transfer")
        return bool(before)

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
        assert kind in (EntryKind.GRANT, EntryKind.DEBIT), "no other kind is moved by an operator"
        debit, credit = ROUTE[kind]
        for _ in range(ATTEMPTS_MAX):
            [row] = await self.session.one(
                "transfer_within_allowance",
                account_id=account_id,
                kind=kind.value,
                debit=debit.value,
                credit=credit.value,
                amount=amount,
                key=key,
                reason=reason,
                allowance=f"{ALLOWANCE}{allowance}",
                most=most,
                **message_params(message),
            )
            if not row["retry"]:
                break
        else:
            raise StoreError(f"other transactions changed the allowance in each of {ATTEMPTS_MAX} attempts")
        if row["moved"]:
            return True
        if await self._is_repeated(account_id, kind, amount, key):
            return False
        if row["available"] is None:
            raise AccountNotFound
        if row["used"] + amount > most:
            raise AllowanceExceeded(amount=amount, used=row["used"], most=most)
        raise InsufficientBalance(price=amount, available=row["available"])

    async def use_allowance(self, allowance: str, amount: int, most: int) -> None:
        for _ in range(ATTEMPTS_MAX):
            [row] = await self.session.one(
                "use_allowance", allowance=f"{ALLOWANCE}{allowance}", amount=amount, most=most
            )
            if row["counted"]:
                return
            if not row["retry"]:
                raise AllowanceExceeded(amount=amount, used=row["used"], most=most)
        raise StoreError(f"other transactions changed the allowance in each of {ATTEMPTS_MAX} attempts")

    async def allowance_used(self, allowance: str) -> int:
        rows = await self.session.one("allowance_used", allowance=f"{ALLOWANCE}{allowance}")
        day, _, total = rows[0]["value"].partition(":") if rows else ("", "", "0")
        return int(total) if rows and day == rows[0]["today"] else 0

    async def ledger_entry(self, key: str) -> LedgerEntry | None:
        rows = await self.session.one("ledger_entry", key=key)
        return read_ledger_entry(rows[0], self.session.time) if rows else None

    async def ledger_entries(self, account_id: int, limit: int) -> list[LedgerEntry]:
        rows = await self.session.one("ledger_entries", account_id=account_id, limit=limit)
        return [read_ledger_entry(row, self.session.time) for row in rows]
