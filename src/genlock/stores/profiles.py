"""Profiles of the users who have written to a bot."""

from dataclasses import replace
from typing import Any

from genlock.domain.draft import SavedDraft
from genlock.domain.errors import AccountNotFound, StoreError
from genlock.domain.profile import AccountSummary, Profile
from genlock.stores.rows import read_account_summary, read_draft, read_profile
from genlock.stores.scan import NEWEST
from genlock.stores.session import Subject

#: profiles whose names are compared when operators search, the newest first
NAMES_READ = 20_000


class Profiles(Subject):
    async def ensure_profile_and_draft(
        self, account_id: int, *, chat: int | None, language: str, name: str, username: str, referred_by: int | None
    ) -> tuple[Profile, SavedDraft | None]:
        # PostgreSQL does not see a row that another transaction adds during the statement; the second attempt does.
        for _ in range(2):
            rows = await self.session.one(
                "ensure_profile",
                account_id=account_id,
                language=language,
                name=name,
                username=username,
                referred_by=referred_by,
                chat=chat,
            )
            if rows:
                profile = replace(read_profile(rows[0], self.session.time), created=bool(rows[0]["fresh"]))
                return profile, read_draft(rows[0]) if rows[0]["body"] is not None else None
        raise StoreError(f"could not find or create the profile of account {account_id}")

    async def profile(self, account_id: int) -> Profile:
        rows = await self.session.one("profile", account_id=account_id)
        if not rows:
            raise AccountNotFound
        return read_profile(rows[0], self.session.time)

    async def known_profile(self, channel: str, bot: str, external_id: str) -> Profile | None:
        rows = await self.session.one("known_profile", channel=channel, bot=bot, external_id=external_id)
        return read_profile(rows[0], self.session.time) if rows else None

    async def find_profiles(self, text: str, limit: int) -> list[Profile]:
        rows = await self.session.one("find_profiles", **_search(text), limit=limit)
        return [read_profile(row, self.session.time) for row in rows]

    async def newest_profiles(self, limit: int) -> list[Profile]:
        rows = await self.session.one("newest_profiles", limit=limit)
        return [read_profile(row, self.session.time) for row in rows]

    async def account_summaries(self, text: str | None, limit: int) -> list[AccountSummary]:
        if text is None:
            rows = await self.session.one("newest_accounts", limit=limit)
        else:
            rows = await self.session.one("find_accounts", **_search(text), limit=limit)
        return [read_account_summary(row, self.session.time) for row in rows]

    async def debtors(self, limit: int) -> list[AccountSummary]:
        return [read_account_summary(row, self.session.time) for row in await self.session.one("debtors", limit=limit)]

    async def set_language(self, account_id: int, language: str) -> None:
        await self.session.one("set_language", account_id=account_id, language=language)

    async def set_last_model(self, account_id: int, model: str) -> None:
        await self.session.one("set_last_model", account_id=account_id, model=model)

    async def set_ban(self, account_id: int, *, banned: bool, reason: str) -> bool:
        return bool(await self.session.one("set_ban", account_id=account_id, banned=banned, reason=reason))

    async def set_blocked(self, account_id: int, *, blocked: bool) -> None:
        await self.session.one("set_blocked", account_id=account_id, blocked=blocked)


def _search(text: str) -> dict[str, Any]:
    """Return the parameters of a search: an id if the text can be one, and the text in several capitalisations.

    Databases fold the case of ASCII only, or depend on their locale. A number is an id, never a part of a name.
    """
    is_number = text.isascii() and text.isdigit()
    return {
        "id": int(text) if is_number and len(text) < len(str(NEWEST)) else None,
        "text": text,
        "titled": text.title(),
        "lowered": text.lower(),
        "window": 0 if is_number else NAMES_READ,
    }
