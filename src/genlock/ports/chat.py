"""What the chat product keeps: people, drafts, payments, gifts, broadcasts."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.activity import Activity
from genlock.domain.audit import AuditLine
from genlock.domain.broadcast import Broadcast, BroadcastState
from genlock.domain.draft import SavedDraft
from genlock.domain.figures import Figures
from genlock.domain.payment import Payment, PaymentState
from genlock.domain.profile import AccountSummary, Profile
from genlock.domain.promo import FreeRuns, Promo, PromoUse
from genlock.domain.upload import Upload


class ChatStore(Protocol):
    """What the chat product keeps. Every method is one commit."""

    # people
    async def see_profile(
        self, account_id: int, *, language: str, name: str, username: str, referred_by: int | None
    ) -> Profile:
        """The profile of a person who has just written, made on first sight; only then language and inviter count."""

    async def profile(self, account_id: int) -> Profile:
        """Raises AccountNotFound."""

    async def find_profiles(self, text: str, limit: int) -> list[Profile]:
        """By our number, the channel's, a username or a part of the name, however it is capitalised."""

    async def newest_profiles(self, limit: int) -> list[Profile]:
        """Who came last, the newest first."""

    async def account_summaries(self, text: str | None, limit: int) -> list[AccountSummary]:
        """People with what they have, the newest first; all, or found as by find_profiles."""

    async def set_language(self, account_id: int, language: str) -> None: ...

    async def set_last_model(self, account_id: int, model: str) -> None: ...

    async def set_ban(self, account_id: int, *, banned: bool, reason: str) -> bool: ...

    async def set_blocked(self, account_id: int, *, blocked: bool) -> None: ...

    # drafts
    async def draft(self, account_id: int, chat: int) -> SavedDraft | None: ...

    async def save_draft(self, account_id: int, chat: int, draft: SavedDraft) -> int | None:
        """Write it over the version it was made from; the new version, or None if somebody else was quicker."""

    async def show_draft(self, account_id: int, chat: int, message: int | None) -> None:
        """Remember which message shows it."""

    async def is_of_order(self, account_id: int, message: str) -> bool:
        """Whether a message shows one of a person's orders, however old, and must not be written over."""

    async def draft_owner(self, chat: int, message: int) -> int | None: ...

    # files and limits
    async def keep_upload(self, upload: Upload) -> None: ...

    async def use_upload(self, address: str) -> None:
        """An order is about to be made of a file: it is not forgotten any more. Not ours: nothing happens."""

    async def upload(self, address: str) -> Upload | None: ...

    async def uploads_wait(self, account_id: int) -> tuple[int, float]:
        """Files sent in an hour, and the seconds until the oldest falls out of it."""

    async def activity(self, account_id: int) -> Activity: ...

    async def late_cancels(self, account_id: int) -> int:
        """How many orders were cancelled within a day after the provider was asked for them."""

    # payments
    async def keep_payment(self, charge: str, account_id: int, stars: int, amount: int) -> bool:
        """Write down a payment that is in the ledger. False if it was known."""

    async def payment(self, charge: str) -> Payment | None: ...

    async def payments(self, account_id: int, limit: int) -> list[Payment]: ...

    async def move_payment(
        self,
        charge: str,
        before: PaymentState,
        state: PaymentState,
        refunds: int | None = None,
        *,
        untaken: bool = False,
    ) -> int | None:
        """The next step of a refund (of this try); how many were begun, or None if it is not in the state before.

        A try that has taken nothing does not count: whoever is still at it must not take under another number.
        """

    # gifts
    async def take_free_run(self, account_id: int, request_key: str, per_day: int) -> bool:
        """Take a free run for an order, once per key. One whose job failed, or was cancelled early, counts not."""

    async def free_runs(self, account_id: int, per_day: int, but: str = "") -> FreeRuns:
        """What is left, as if the order with the key `but` had not been made."""

    async def make_promo(self, promo: Promo, *, lasting: float | None, author: str) -> bool: ...

    async def close_promo(self, code: str, bot: str = "") -> bool:
        """Close a code of this bot, or one that is valid for every bot."""

    async def promos(self, limit: int, bot: str | None = None) -> list[Promo]:
        """The newest codes: all, or those that users of one bot may use."""

    async def use_promo(self, code: str, account_id: int, request_key: str) -> PromoUse: ...

    async def promo_used(self, account_id: int, request_key: str) -> bool:
        """Whether a code was used under this key."""

    async def rewards_due(self, bot: str, limit: int) -> list[tuple[int, int]]:
        """Users of a bot who have paid real money and bought a first result, with those who invited them."""

    async def set_rewarded(self, account_id: int) -> bool: ...

    # broadcasts
    async def reachable(self, bot: str) -> int:
        """How many users a broadcast of this bot would go to."""

    async def begin_broadcast(
        self, text: str, *, bot: str, author: str, request_key: str, content: str = ""
    ) -> Broadcast: ...

    async def broadcast(self, broadcast_id: int) -> Broadcast | None: ...

    async def running_broadcast(self, bot: str | None = None) -> Broadcast | None:
        """The oldest running broadcast of this bot, or of any."""

    async def reach_next(self, broadcast_id: int) -> tuple[int, str, str] | None:
        """The next person (number, language, the channel's id), ours alone. None when there is nobody left."""

    async def count_broadcast(self, broadcast_id: int, *, sent: bool) -> None: ...

    async def end_broadcast(self, broadcast_id: int, state: BroadcastState) -> bool: ...

    # operators
    async def add_audit(
        self, *, key: str, actor: str, action: str, subject: str, detail: str, bot: str = ""
    ) -> None: ...

    async def audit(self, limit: int, bot: str | None = None) -> Sequence[AuditLine]: ...

    async def figures(self, bot: str, seconds: float) -> Figures: ...
