"""Drafts of orders, and the files that users have uploaded for them."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.draft import SavedDraft
from genlock.domain.upload import Upload, UploadCopy


class DraftStore(Protocol):
    async def draft(self, account_id: int, chat: int) -> SavedDraft | None: ...

    async def save_draft(self, account_id: int, chat: int, draft: SavedDraft) -> int | None:
        """Overwrite the version the draft was made from. Returns the new version, or None if it has changed since."""

    async def set_draft_message(self, account_id: int, chat: int, message: int, *, version: int) -> bool:
        """Record which message shows this version of the draft. False if the draft has changed since: it stays."""

    async def draft_owner(self, chat: int, message: int) -> int | None:
        """Return the account whose draft a message shows."""

    async def add_upload(self, upload: Upload) -> None:
        """Record a file that was uploaded to the provider."""

    async def mark_upload_used(self, key: str) -> None:
        """Record that an order uses a file, so that it is not pruned. An unknown key is ignored."""

    async def upload(self, key: str) -> Upload | None: ...

    async def input_file(self, url: str) -> Upload | None:
        """Return the upload that a URL in an order's input stands for: its own key, or a provider's copy of it."""

    async def upload_copies(self, key: str) -> Sequence[UploadCopy]:
        """Return where providers keep copies of an upload, also those that have expired; the last to expire first."""

    async def save_upload_copy(self, copy: UploadCopy, *, needed_seconds: float | None = None) -> str:
        """Record where a provider keeps its copy of an upload; return the URL of the copy that is recorded then.

        It replaces the provider's older copy, unless that one can be read for the needed seconds.
        """
