"""Profiles of the users who have written to a bot."""

from typing import Protocol

from genlock.domain.draft import SavedDraft
from genlock.domain.profile import AccountSummary, Profile


class ProfileStore(Protocol):
    async def ensure_profile_and_draft(
        self, account_id: int, *, chat: int | None, language: str, name: str, username: str, referred_by: int | None
    ) -> tuple[Profile, SavedDraft | None]:
        """Update or create the profile of a user who has just written; return it with the account's draft in the chat.

        Language and inviter are set only when it is created; the inviter must be an older account of the same bot.
        """

    async def profile(self, account_id: int) -> Profile:
        """Raises AccountNotFound."""

    async def known_profile(self, channel: str, bot: str, external_id: str) -> Profile | None:
        """Return the profile of the user whom a bot knows by this id; None if they have never written to it."""

    async def find_profiles(self, text: str, limit: int) -> list[Profile]:
        """Return profiles by account id, external id or username, or by a part of the name, in any capitalisation.

        Names are compared among the newest profiles only.
        """

    async def newest_profiles(self, limit: int) -> list[Profile]:
        """Return the latest users, newest first."""

    async def account_summaries(self, text: str | None, limit: int) -> list[AccountSummary]:
        """Return accounts with their wallets, newest first: all, or found as by find_profiles."""

    async def debtors(self, limit: int) -> list[AccountSummary]:
        """Return accounts that owe credits after refunds by the payment service, the largest debt first."""

    async def set_language(self, account_id: int, language: str) -> None: ...

    async def set_last_model(self, account_id: int, model: str) -> None: ...

    async def set_ban(self, account_id: int, *, banned: bool, reason: str) -> bool: ...

    async def set_blocked(self, account_id: int, *, blocked: bool) -> None:
        """Record that the user has blocked the bot, or has unblocked it."""
