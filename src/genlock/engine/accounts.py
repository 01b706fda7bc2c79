"""Actions of operators on accounts: credits, bans, free runs and messages. Chat and dashboard use these functions."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from genlock.domain.errors import AccountNotFound, ActionNotAllowed, InvalidInput
from genlock.domain.money import EntryKind
from genlock.domain.promo import Promo, PromoVerdict
from genlock.domain.queued_message import QueuedMessage
from genlock.domain.value import value
from genlock.engine.tell import SendQueued, Tell, make_message
from genlock.i18n.loader import DEFAULT
from genlock.i18n.translator import Html, Texts, Translator
from genlock.ports import Database

#: what the user is told about each kind of transfer
_TEXTS = {EntryKind.GRANT: "account.credited", EntryKind.DEBIT: "account.debited"}
#: of 4,096 characters that a channel can show; the rest is for our heading
MESSAGE_LENGTH_MAX = 3500
FREE_RUNS_MAX = 100
#: a form that sends a message is remembered this long
MESSAGE_SECONDS = 86_400.0
#: kv entries of the installation, one per account whose credits an operator is moving; the value is the form's key
MOVING = "moving_credits:"
#: a form that holds an account for longer has crashed
MOVING_SECONDS = 30.0
#: codes of promos that give free runs to one user begin with it
GIFT_CODE = "GIFT-"
_DIGEST_LENGTH = 24


@value
class Allowance:
    """How much an operator may move in a day, in thousandths of a credit. `name` says whose allowance it is."""

    name: str
    most: int


@dataclass(frozen=True, kw_only=True)
class AccountActions:
    store: Database
    texts: Texts
    tell: Tell
    send_queued: SendQueued

    async def move_credits(
        self,
        account_id: int,
        kind: EntryKind,
        amount: int,
        *,
        key: str,
        reason: str,
        allowance: Allowance | None = None,
    ) -> QueuedMessage | None:
        """Credit (GRANT) or debit (DEBIT) an account, once per key. Returns None if the key was used before.

        Returns the message to the user, which is queued in the same commit: the caller passes it to `send_queued`.
        Raises AllowanceExceeded, InsufficientBalance, IdempotencyKeyReused and AccountNotFound.
        """
        message = await self._moved_message(account_id, kind, amount)
        if allowance is None:
            moved = await self.store.transfer(account_id, kind, amount, key, reason, message=message)
        else:
            moved = await self.store.transfer_within_allowance(
                account_id, kind, amount, key, reason, allowance=allowance.name, most=allowance.most, message=message
            )
        return message if moved else None

    async def _moved_message(self, account_id: int, kind: EntryKind, amount: int) -> QueuedMessage:
        t = await self._translator(account_id)
        available = (await self.store.wallet(account_id)).available
        balance = max(available + (amount if kind is EntryKind.GRANT else -amount), 0)
        return make_message(account_id, t.html(_TEXTS[kind], credits=t.credits(amount), balance=t.credits(balance)))

    @asynccontextmanager
    async def try_lock(self, account_id: int, key: str) -> AsyncIterator[bool]:
        """Yield True if no other form moves credits of the account until the block ends.

        What the operator saw is compared, and then the credits are moved: without the lock, two operators who
        act at the same time would not see each other's change.
        """
        entry = f"{MOVING}{account_id}"
        holder = await self.store.kv_put_if_absent(entry, key)
        if holder != key:
            held = await self.store.kv_get(entry)
            if held is not None and held.age > MOVING_SECONDS:
                await self.store.kv_delete(entry)
                holder = await self.store.kv_put_if_absent(entry, key)
        try:
            yield holder == key
        finally:
            held = await self.store.kv_get(entry)
            if held is not None and held.value == key:
                await self.store.kv_delete(entry)

    async def ban(self, account_id: int, reason: str) -> None:
        """Ban a user: the bot answers nothing but the ban from now on. Jobs that run are delivered."""
        await self._set_ban(account_id, banned=True, reason=reason)

    async def unban(self, account_id: int) -> None:
        await self._set_ban(account_id, banned=False, reason="")

    async def _set_ban(self, account_id: int, *, banned: bool, reason: str) -> None:
        if not await self.store.set_ban(account_id, banned=banned, reason=reason):
            raise ActionNotAllowed(f"account {account_id} has no user who could be banned")

    async def give_free_runs(
        self, account_id: int, runs: int, *, key: str, by: str, value: int = 0, allowance: Allowance | None = None
    ) -> bool:
        """Give free runs to one user, once per key: a promo code that only this call knows, used for the account.

        A call that was interrupted between the two steps is completed by the same call again. Their `value` counts
        under the allowance, if there is one. Returns False if the runs were given before. Raises InvalidInput,
        AllowanceExceeded and AccountNotFound.
        """
        if not 0 < runs <= FREE_RUNS_MAX:
            raise InvalidInput("runs", f"must be between 1 and {FREE_RUNS_MAX}")
        bot = (await self.store.account(account_id)).bot
        if await self.store.is_promo_used(account_id, key):
            return False
        code = GIFT_CODE + hashlib.sha256(key.encode()).hexdigest()[:_DIGEST_LENGTH].upper()
        promo = Promo(code=code, bot=bot, amount=0, runs=runs, uses_max=1, per_account=1, until=None)
        if allowance is not None:
            await self.store.use_allowance(allowance.name, value, allowance.most)
        await self.store.create_promo(promo, lasting=None, author=by)
        return (await self.store.use_promo(code, account_id, key)).verdict is PromoVerdict.GIVEN

    async def message(self, account_id: int, text: str) -> Html:
        """Return the message that `send` would send, in the channel's markup. Raises InvalidInput."""
        if not text.strip():
            raise InvalidInput("text", "is empty")
        if len(text) > MESSAGE_LENGTH_MAX:
            raise InvalidInput("text", f"has {len(text)} characters; at most {MESSAGE_LENGTH_MAX} are possible")
        return (await self._translator(account_id)).html("account.message", text=text.strip())

    async def claim_message(self, key: str) -> bool:
        """Return True for the first caller with this key: a message is sent at most once, whatever crashes."""
        [wait] = await self.store.take_permits([f"message:{key}"], MESSAGE_SECONDS, 1, 0.0)
        return wait == 0

    async def send(self, account_id: int, text: str) -> bool:
        """Send an operator's own text to a user. False if the user cannot be reached. Raises InvalidInput."""
        return await self.tell(account_id, await self.message(account_id, text))

    async def _translator(self, account_id: int) -> Translator:
        try:
            language = (await self.store.profile(account_id)).language
        except AccountNotFound:  # the user has an account and never wrote
            language = DEFAULT
        return self.texts.translator(language)
