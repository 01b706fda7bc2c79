"""Drafts of orders and uploaded files."""

from genlock.domain.draft import SavedDraft
from genlock.domain.upload import Upload, UploadCopy
from genlock.stores.rows import read_draft, read_upload, read_upload_copy
from genlock.stores.session import Subject


class Drafts(Subject):
    async def draft(self, account_id: int, chat: int) -> SavedDraft | None:
        rows = await self.session.one("draft", account_id=account_id, chat=chat)
        return read_draft(rows[0]) if rows else None

    async def save_draft(self, account_id: int, chat: int, draft: SavedDraft) -> int | None:
        rows = await self.session.one(
            "save_draft",
            account_id=account_id,
            chat=chat,
            version=draft.version,
            message=draft.message,
            body=draft.body,
            uploads=self.session.array(draft.uploads),
        )
        return int(rows[0]["version"]) if rows else None

    async def set_draft_message(self, account_id: int, chat: int, message: int, *, version: int) -> bool:
        rows = await self.session.one(
            "set_draft_message", account_id=account_id, chat=chat, message=message, version=version
        )
        return bool(rows)

    async def draft_owner(self, chat: int, message: int) -> int | None:
        rows = await self.session.one("draft_owner", chat=chat, message=message)
        return rows[0]["account_id"] if rows else None

    async def add_upload(self, upload: Upload) -> None:
        await self.session.one(
            "add_upload",
            address=upload.key,
            account_id=upload.account_id,
            file=upload.file,
            kind=upload.kind,
            seconds=upload.seconds,
        )

    async def mark_upload_used(self, key: str) -> None:
        await self.session.one("mark_upload_used", address=key)

    async def upload(self, key: str) -> Upload | None:
        rows = await self.session.one("upload", address=key)
        return read_upload(rows[0]) if rows else None

    async def input_file(self, url: str) -> Upload | None:
        rows = await self.session.one("input_file", url=url)
        return read_upload(rows[0]) if rows else None

    async def upload_copies(self, key: str) -> list[UploadCopy]:
        return [read_upload_copy(row) for row in await self.session.one("upload_copies", address=key)]

    async def save_upload_copy(self, copy: UploadCopy, *, needed_seconds: float | None = None) -> str:
        rows = await self.session.one(
            "save_upload_copy",
            address=copy.key,
            provider=copy.provider,
            url=copy.url,
            seconds=copy.left_seconds,
            needed=needed_seconds,
        )
        return str(rows[0]["url"])
