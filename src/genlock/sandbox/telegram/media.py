"""Media of messages: uploads, file ids and URLs, with Telegram's size limits and type checks.

Files are really decoded. Files fetched from a URL are cached, as Telegram does for days.
"""

import asyncio
import math
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import aiohttp

from genlock.sandbox.telegram.api_call import Upload, bad_request
from genlock.sandbox.telegram.files import TYPE_NAMES, Files, Stored
from genlock.sandbox.telegram.gif import as_mp4
from genlock.sandbox.telegram.probe import (
    THUMBNAIL_SIDE_MAX,
    NotMedia,
    Probe,
    make_sizes,
    make_thumbnail,
    probe_content,
)

URL_MAX = {"photo": 5_242_880}
URL_MAX_OTHERS = 20_971_520
UPLOAD_MAX = {"photo": 10_485_760}
UPLOAD_MAX_OTHERS = 52_428_800
VOICE_URL_MAX = 1_048_576
FETCH_SECONDS = 15
OK = 200
AGENT = "TelegramBot (like TwitterBot)"
SIDES_MAX = 10_000
THUMBNAIL_BYTES_MAX = 204_800
RATIO_MAX = 20
DOCUMENTS_BY_URL = {"image/gif", "application/pdf", "application/zip"}
FAMILIES = {"photo": "image/", "sticker": "image/", "video": "video/", "audio": "audio/", "voice": "audio/"}
VOICE_TYPES = {"audio/ogg", "audio/mpeg", "audio/mp4"}
ANIMATED_STICKER = "application/x-tgsticker"
STICKER_TYPES = {ANIMATED_STICKER, "video/webm"}
STICKER_SIDE = 512
#: names in the error `there is no X in the request`, where they differ from the field's
NAMES = {"video_note": "video note", "live_photo": "live photo"}
FETCH_FAILED = "failed to get HTTP URL content"
WRONG_TYPE = "wrong type of the web page content"


@dataclass(kw_only=True)
class Media:
    """Turns an upload, a file id or a URL into a stored file."""

    files: Files
    #: outcome of each fetched URL: the file, or the error, which is repeated for later calls
    fetched: dict[tuple[str, str], Stored | str] = field(default_factory=dict)

    async def take(
        self, kind: str, source: Upload | str, hints: Mapping[str, Any], thumbnail: Upload | None = None
    ) -> Stored:
        """Store the file. `hints` are the call's duration, title and so on; only an upload takes a thumbnail."""
        if isinstance(source, Upload):
            return await self._uploaded(kind, source, hints, thumbnail)
        if not source:
            raise bad_request(f"there is no {NAMES.get(kind, kind)} in the request")
        if "." not in source:
            return self._by_id(kind, source)
        return await self._by_url(kind, source, hints)

    async def _uploaded(self, kind: str, upload: Upload, hints: Mapping[str, Any], thumbnail: Upload | None) -> Stored:
        size = len(upload.content)
        if not size:
            raise bad_request("file must be non-empty")
        limit = UPLOAD_MAX.get(kind, UPLOAD_MAX_OTHERS)
        if size > limit:
            what = f"a {kind}" if kind in UPLOAD_MAX else "a file"
            raise bad_request(f"file of size {size} bytes is too big for {what}; the maximum size is {limit} bytes")
        return await self.store(kind, upload, hints, thumbnail)

    async def _thumbnail(self, content: bytes, given: Upload | None) -> dict[str, Any]:
        """Return the field `thumbnail`. Telegram makes its own of pictures and videos, whatever was given."""
        made = await asyncio.to_thread(make_thumbnail, content) or await asyncio.to_thread(_usable, given)
        if made is None:
            return {}
        width, height, picture = made
        small = await self.files.add("photo", picture, extension=".jpg", type_="image/jpeg")
        fields = {"file_id": small.id, "file_unique_id": small.unique, "file_size": small.size}
        return {"thumbnail": fields | {"width": width, "height": height}}

    def _by_id(self, kind: str, file_id: str) -> Stored:
        stored = self.files.find(file_id)
        if stored is None:
            raise bad_request("wrong remote file identifier specified: can't unserialize it. Wrong last symbol")
        if (stored.kind == "photo") != (kind == "photo"):
            raise bad_request(f"can't use file of type {TYPE_NAMES[stored.kind]} as {TYPE_NAMES[kind]}")
        return self.files.known[stored.main]

    async def _by_url(self, kind: str, url: str, hints: Mapping[str, Any]) -> Stored:
        """Fetch once: success and failure are both cached."""
        key = (kind, url)
        if key not in self.fetched:
            self.fetched[key] = await self._fetch(kind, url, hints)
        known = self.fetched[key]
        if isinstance(known, str):
            raise bad_request(known)
        return known

    async def _fetch(self, kind: str, url: str, hints: Mapping[str, Any]) -> Stored | str:
        if not url.startswith(("http://", "https://")):
            return "wrong HTTP URL specified"
        limit = URL_MAX.get(kind, URL_MAX_OTHERS)
        try:
            async with (
                aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=FETCH_SECONDS), headers={"User-Agent": AGENT}
                ) as session,
                session.get(url) as response,
            ):
                if response.status != OK:
                    return FETCH_FAILED
                content = b""
                while len(content) <= limit and (more := await response.content.read(limit + 1 - len(content))):
                    content += more
                type_, final_url = response.content_type, str(response.url)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return FETCH_FAILED
        if not content or len(content) > limit:
            return FETCH_FAILED
        return await self._fitting(kind, final_url, content, type_, hints)

    async def _fitting(self, kind: str, url: str, content: bytes, type_: str, hints: Mapping[str, Any]) -> Stored | str:
        """Accept a fetched file only if its type fits the kind of message. Its name is that of the last redirect."""
        probe = await asyncio.to_thread(probe_content, content)
        family = FAMILIES.get(kind)
        if kind == "document" and type_ not in DOCUMENTS_BY_URL:
            return WRONG_TYPE
        if kind == "animation" and type_ not in {"image/gif", "video/mp4"}:
            return WRONG_TYPE
        if (family and not type_.startswith(family)) or (kind != "document" and probe.kind == "document"):
            return WRONG_TYPE
        if kind == "voice" and len(content) > VOICE_URL_MAX:
            kind = "document"
        name = PurePath(url.partition("?")[0]).name
        return await self.store(kind, Upload(name=name, type=type_, content=content), hints)

    async def store(
        self, kind: str, upload: Upload, hints: Mapping[str, Any], thumbnail: Upload | None = None
    ) -> Stored:
        probe = await asyncio.to_thread(probe_content, upload.content)
        if kind == "photo":
            return await self._photo(upload, probe)
        real = _real_kind(kind, probe, detect=not hints.get("disable_content_type_detection"))
        if real == "animation" and (film := await asyncio.to_thread(as_mp4, upload.content)):
            upload = Upload(name=f"{upload.name}.mp4", type="video/mp4", content=film)
            probe = await asyncio.to_thread(probe_content, film)
        extension = PurePath(upload.name).suffix or mimetypes.guess_extension(probe.type or upload.type) or ""
        type_ = probe.type or mimetypes.guess_type(upload.name)[0] or upload.type
        stored = await self.files.add(real, upload.content, extension=extension, type_=type_)
        stored.media_object = _media_object(real, stored, upload.name, probe, hints)
        if real not in {"voice", "live_photo"}:
            stored.media_object |= await self._thumbnail(upload.content, thumbnail)
        return stored

    async def _photo(self, upload: Upload, probe: Probe) -> Stored:
        if probe.kind != "photo":
            raise bad_request("IMAGE_PROCESS_FAILED")
        if probe.width + probe.height > SIDES_MAX or max(probe.width, probe.height) > RATIO_MAX * min(
            probe.width, probe.height
        ):
            raise bad_request("PHOTO_INVALID_DIMENSIONS")
        try:
            sizes = await asyncio.to_thread(make_sizes, upload.content)
        except NotMedia:
            raise bad_request("IMAGE_PROCESS_FAILED") from None
        kept = []
        for width, height, content in sizes:
            stored = await self.files.add("photo", content, extension=".jpg", type_="image/jpeg")
            fields = {"file_id": stored.id, "file_unique_id": stored.unique, "file_size": stored.size}
            kept.append((stored, fields | {"width": width, "height": height}))
        main = kept[-1][0]
        main.media_object = [fields for _, fields in kept]
        for stored, _ in kept:
            stored.main = main.id
        return main


def _usable(given: Upload | None) -> tuple[int, int, bytes] | None:
    """Return an uploaded thumbnail as Telegram encodes it. It ignores one that is too large."""
    probe = probe_content(given.content) if given and len(given.content) <= THUMBNAIL_BYTES_MAX else None
    if given is None or probe is None or probe.kind != "photo" or max(probe.width, probe.height) > THUMBNAIL_SIDE_MAX:
        return None
    return make_thumbnail(given.content)


def content_of(stored: Stored) -> dict[str, Any]:
    """Return fields of a Message that shows the file."""
    if stored.kind != "animation":
        return {stored.kind: stored.media_object}
    plain = {
        name: stored.media_object[name]
        for name in ("file_id", "file_unique_id", "file_name", "mime_type", "file_size", "thumbnail")
        if name in stored.media_object
    }
    return {"animation": stored.media_object, "document": plain}


def _real_kind(kind: str, probe: Probe, *, detect: bool) -> str:
    """Return the kind Telegram makes of it, which depends on the content and not on its name."""
    if kind in {"video", "live_photo"} and probe.kind != "video":
        raise bad_request("VIDEO_CONTENT_TYPE_INVALID")
    moving = probe.type == "image/gif" or (probe.type == "video/mp4" and not probe.sound)
    becomes = {
        "document": "animation" if detect and probe.type == "image/gif" else "document",
        "video": "video" if probe.type == "video/mp4" else "document",
        "animation": "animation" if moving else "video" if probe.type == "video/mp4" else "document",
        "voice": "voice" if probe.type in VOICE_TYPES else "document",
        "audio": "audio" if probe.kind == "audio" else "document",
        "video_note": "video_note" if probe.type == "video/mp4" else "document",
        "live_photo": "live_photo",
        "sticker": "sticker" if probe.kind == "photo" or probe.type in STICKER_TYPES else "document",
    }
    return becomes[kind]


def _media_object(kind: str, stored: Stored, name: str, probe: Probe, hints: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {"file_id": stored.id, "file_unique_id": stored.unique, "file_size": stored.size}
    if kind == "sticker":
        return fields | _sticker_fields(probe, hints)
    if kind == "video_note":
        fields["length"] = min(probe.width, probe.height)
    else:
        fields |= {"mime_type": stored.type} | ({} if kind in {"voice", "live_photo"} else {"file_name": name})
    if kind in {"video", "animation", "live_photo"}:
        fields |= {"width": probe.width, "height": probe.height}
    if kind in {"video", "animation", "audio", "voice", "video_note", "live_photo"}:
        fields["duration"] = round(probe.seconds) or _number(hints.get("duration")) or math.ceil(probe.seconds)
    if kind == "audio":
        tags = {"performer": probe.performer, "title": probe.title}
        fields |= {key: str(hints.get(key) or tag) for key, tag in tags.items() if hints.get(key) or tag}
    return fields


def _sticker_fields(probe: Probe, hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a sticker that belongs to no set. An animated one is vector graphics without a size."""
    fields = {"type": "regular", "width": probe.width or STICKER_SIDE, "height": probe.height or STICKER_SIDE}
    fields |= {"is_animated": probe.type == ANIMATED_STICKER, "is_video": probe.kind == "video"}
    return fields | ({"emoji": str(hints["emoji"])} if hints.get("emoji") else {})


def _number(value: Any) -> int:
    try:
        return int(value or 0)
    except (TypeError, ValueError):
        return 0
