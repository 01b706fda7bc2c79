"""The media store in a bucket of S3-compatible storage, for many instances."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import unescape
from typing import IO, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import aiohttp
from yarl import URL

from genlock.domain.errors import MediaNotFound, MediaStoreError
from genlock.domain.stored_file import StoredFile, check_key
from genlock.media.stores.s3_signature import EMPTY_SHA256, Credentials, encode_path, encode_query, sign

CHUNK = 262_144
PUT_SECONDS = 300.0
#: keys of one list, and files that one call deletes
LIST_MAX = 1000
ANSWER_BYTES_MAX = 2_000_000
_OK, _NOT_FOUND, _ERRORS = 200, 404, 400
_FOUND_KEY = re.compile(r"<Key>([^<]{1,1024})</Key>")
_FOUND_DAY = re.compile(r"<Prefix>(?:[^<]*/)?(\d{8})/</Prefix>")


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    """Where the files are: `s3://KEY:SECRET@HOST/BUCKET/FOLDER?region=REGION&scheme=http`."""

    scheme: str
    host: str
    #: `/BUCKET/` and the folder, with a slash at the end
    path: str
    credentials: Credentials = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> "Bucket":
        """Raises ValueError that says what is wrong, without the secret."""
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        names = [name for name in parts.path.split("/") if name]
        if not parts.hostname or not names:
            raise ValueError("must be s3://KEY:SECRET@HOST/BUCKET, with a folder after the bucket if you like")
        if not parts.username or not parts.password:
            raise ValueError("must contain the access key and its secret: s3://KEY:SECRET@HOST/BUCKET")
        scheme = options.get("scheme", "https")
        if scheme not in ("http", "https") or set(options) - {"scheme", "region"}:
            raise ValueError("may end with ?region=REGION and &scheme=http, and with nothing else")
        return cls(
            scheme=scheme,
            host=parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}",
            path=f"/{'/'.join(names)}/",
            credentials=Credentials(
                key=unquote(parts.username),
                secret=unquote(parts.password),
                region=options.get("region", "us-east-1"),
            ),
        )


class S3MediaStore:
    """One object per key. S3 shows an object only when it is complete."""

    def __init__(self, bucket: Bucket, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._bucket = bucket
        self._now = now
        self._opened: aiohttp.ClientSession | None = None

    async def put(self, file: StoredFile, content: IO[bytes]) -> None:
        headers = {"content-type": file.content_type}
        body = _chunks(content)
        async with self._request(
            "PUT", self._path(file.key), headers=headers, sha256=file.sha256, data=body, length=file.size
        ) as answer:
            await _expect_success(answer)

    async def size(self, key: str) -> int | None:
        async with self._request("HEAD", self._path(key)) as answer:
            if answer.status == _NOT_FOUND:
                return None
            await _expect_success(answer)
            return int(answer.headers.get("Content-Length", 0))

    async def read(self, key: str, start: int, length: int) -> AsyncGenerator[bytes, None]:
        if length <= 0:
            return
        headers = {"range": f"bytes={start}-{start + length - 1}"}
        async with self._request("GET", self._path(key), headers=headers) as answer:
            if answer.status == _NOT_FOUND:
                raise MediaNotFound
            await _expect_success(answer)
            async for chunk in answer.content.iter_chunked(CHUNK):
                yield chunk

    async def days(self) -> Sequence[str]:
        folder = self._bucket.path.split("/", 2)[2]
        text = await self._list(prefix=folder, delimiter="/")
        return sorted(set(_FOUND_DAY.findall(text)))

    async def delete_day(self, day: str) -> int:
        _, bucket, folder = self._bucket.path.split("/", 2)
        text = await self._list(prefix=f"{folder}{check_key(f'{day}/a/a')[:8]}/")
        keys = _keys(text)
        for key in keys:
            await self._delete(f"/{bucket}/{key}")
        return len(keys)

    async def _delete(self, path: str) -> None:
        async with self._request("DELETE", path) as answer:
            await _expect_success(answer)

    async def delete_account_files(self, day: str, account_id: int, keep: Callable[[str], bool]) -> int:
        _, bucket, folder = self._bucket.path.split("/", 2)
        prefix = f"{folder}{check_key(f'{day}/{account_id}/a')[:-1]}"
        deleted = 0
        after: dict[str, str] = {}
        while keys := _keys(await self._list(prefix=prefix, **after)):
            after = {"start-after": keys[-1]}
            for key in keys:
                if not keep(key.removeprefix(prefix)):
                    await self._delete(f"/{bucket}/{key}")
                    deleted += 1
        return deleted

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def _list(self, **options: str) -> str:
        query = {"list-type": "2", "max-keys": str(LIST_MAX), **options}
        async with self._request("GET", f"/{self._bucket.path.split('/')[1]}", query=query) as answer:
            await _expect_success(answer)
            return (await answer.content.read(ANSWER_BYTES_MAX)).decode(errors="replace")

    def _path(self, key: str) -> str:
        return self._bucket.path + check_key(key)

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        sha256: str = EMPTY_SHA256,
        data: AsyncIterator[bytes] | None = None,
        length: int | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        bucket = self._bucket
        signed = sign(
            bucket.credentials, method, bucket.host, path,
            now=self._now(), query=query, headers=headers, sha256=sha256,
        )  # fmt: skip
        if length is not None:
            signed["Content-Length"] = str(length)
        url = f"{bucket.scheme}://{bucket.host}{encode_path(path)}"
        url += f"?{encode_query(query)}" if query else ""
        options: dict[str, Any] = {"headers": signed, "data": data, "allow_redirects": False}
        try:
            async with self._session.request(method, URL(url, encoded=True), **options) as answer:
                yield answer
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise MediaStoreError(f"the media store does not answer: {type(error).__name__}") from error

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            timeout = aiohttp.ClientTimeout(total=PUT_SECONDS, sock_connect=10.0, sock_read=60.0)
            self._opened = aiohttp.ClientSession(timeout=timeout, auto_decompress=False, trust_env=False)
        return self._opened


def _keys(text: str) -> list[str]:
    return [unescape(key) for key in _FOUND_KEY.findall(text)]


async def _expect_success(answer: aiohttp.ClientResponse) -> None:
    if answer.status < _OK or answer.status >= _ERRORS - 100:
        word = re.search(rb"<Code>(\w{1,60})</Code>", await answer.content.read(4096))
        reason = f": {word[1].decode()}" if word else ""
        raise MediaStoreError(f"the media store answered {answer.status}{reason}")


async def _chunks(content: IO[bytes]) -> AsyncIterator[bytes]:
    await asyncio.to_thread(content.seek, 0)
    while chunk := await asyncio.to_thread(content.read, CHUNK):
        yield chunk
