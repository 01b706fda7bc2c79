"""Drafts of orders, and the files that users have uploaded for them."""

from typing import Protocol

from genlock.domain.draft import SavedDraft
from genlock.domain.upload import Upload


class DraftStore(Protocol):
    async def draft(self, account_id: int, chat: int) -> SavedDraft | None: ...

    async def save_draft(self, account_id: int, chat: int, draft: SavedDraft) -> int | None:
        """Overwrite the version the draft was made from. Returns the new version, or None if it has changed since."""

    async def set_draft_message(self, account_id: int, chat: int, message: int | None) -> None:
        """Record which message shows the draft; its version stays the same."""

    async def draft_owner(self, chat: int, message: int) -> int | None:
        """Return the account whose draft a message shows."""

    async def add_upload(self, upload: Upload) -> None:
        """Record a file that was uploaded to the provider."""

    async def mark_upload_used(self, address: str) -> None:
        """Record that an order uses a file, so that it is not pruned. An unknown address is ignored."""

    async def upload(self, address: str) -> Upload | None: ...
