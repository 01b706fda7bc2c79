"""Files of the Telegram simulator: stored in a folder and identified by file ids."""

import asyncio
import json
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: prefixes of real file ids by kind
PREFIXES = {
    "photo": "AgAC",
    "video": "BAAC",
    "animation": "CgAC",
    "audio": "CQAC",
    "voice": "AwAC",
    "document": "BQAC",
    "sticker": "CAAC",
    "video_note": "DQAC",
    "live_photo": "BAAC",
}
FOLDERS = {
    "photo": "photos",
    "video": "videos",
    "animation": "animations",
    "audio": "music",
    "voice": "voice",
    "sticker": "stickers",
    "video_note": "video_notes",
    "live_photo": "videos",
}
#: names in the error `can't use file of type X as Y`
TYPE_NAMES = {
    "photo": "Photo",
    "video": "Video",
    "animation": "Animation",
    "audio": "Audio",
    "voice": "VoiceNote",
    "document": "Document",
    "sticker": "Sticker",
    "video_note": "VideoNote",
    "live_photo": "Video",
}


@dataclass(kw_only=True)
class Stored:
    """One file, or one size of a photo."""

    id: str
    unique: str
    kind: str
    path: str  #: relative to the folder, as returned by getFile
    type: str
    size: int
    #: value of the field `photo`, `video`, … of a Message that shows it
    media_object: Any = None
    #: id of the largest size, for a size of a photo
    main: str = ""


@dataclass(kw_only=True)
class Files:
    folder: Path
    known: dict[str, Stored] = field(default_factory=dict)
    count: int = 0

    async def add(self, kind: str, content: bytes, *, extension: str, type_: str) -> Stored:
        self.count += 1
        path = f"{FOLDERS.get(kind, 'documents')}/file_{self.count}{extension}"
        await asyncio.to_thread(self._write, path, content)
        stored = Stored(
            id=PREFIXES[kind] + "AgIAAxkBAA" + secrets.token_urlsafe(32),
            unique="AQAD" + secrets.token_urlsafe(9),
            kind=kind,
            path=path,
            type=type_,
            size=len(content),
        )
        stored.main = stored.id
        self.known[stored.id] = stored
        return stored

    def _write(self, path: str, content: bytes) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def find(self, file_id: str) -> Stored | None:
        return self.known.get(file_id)

    def at(self, path: str) -> Stored | None:
        return next((stored for stored in self.known.values() if stored.path == path), None)

    def read(self, file_id: str) -> bytes:
        """Return the content of a file, for tests."""
        return (self.folder / self.known[file_id].path).read_bytes()

    def dump(self) -> str:
        return json.dumps({"count": self.count, "known": [asdict(stored) for stored in self.known.values()]})

    def load(self, text: str) -> None:
        saved = json.loads(text)
        self.count = saved["count"]
        self.known = {file["id"]: Stored(**file) for file in saved["known"]}
