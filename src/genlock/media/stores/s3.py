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
#: a client may read a hundred files at the same time, and each holds some chunks
READ_CHUNK = 65_536
PUT_SECONDS = 300.0
#: a client may read a large file slowly
READ_SECONDS = 3600.0
#: keys of one list, and files that one call deletes
LIST_MAX = 1000
#: lists that are read for one answer
PAGES_MAX = 50
ANSWER_BYTES_MAX = 2_000_000
ERROR_BYTES_MAX = 4096
_OK, _PARTIAL, _NOT_SUCCESS, _NOT_FOUND = 200, 206, 300, 404
_FOUND_KEY = re.compile(r"<Key>([^<]{1,1024})</Key>")
_FOUND_DAY = re.compile(r"<Prefix>(?:[^<]*/)?([0-9]{8})/</Prefix>")
_NEXT_LIST = re.compile(r"<NextContinuationToken>([^<]{1,1024})</NextContinuationToken>")
_CODE = re.compile(rb"<Code>(\w{1,60})</Code>")
#: codes of S3 that the operator can do something about
_ADVICE = {"RequestTimeTooSkewed": " (set the clock of this machine)"}


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
        names = [unquote(name) for name in parts.path.split("/") if name]
        if not parts.hostname or not names:
            raise ValueError("must be s3://KEY:SECRET@HOST/BUCKET, with a folder after the bucket if you like")
        if not parts.username or not parts.password:
            raise ValueError("must contain the access key and its secret: s3://KEY:SECRET@HOST/BUCKET")
        scheme = options.get("scheme", "https")
        if scheme not in ("http", "https") or set(options) - {"scheme", "region"}:
            raise ValueError("may end with ?region=REGION and &scheme=http, and with nothing else")
        return cls(
            scheme=scheme,
            host=_host(parts.hostname, parts.port),
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
            start = await _read_body(answer, ERROR_BYTES_MAX)
            if b"<Error>" in start:
                raise MediaStoreError(f"the media store answered {answer.status} with an error{_code(start)}")
        # A proxy or a page for logging in may answer 200 to anything, and delivered means that the copy is there.
        if (size := await self.size(file.key)) != file.size:
            raise MediaStoreError(f"the media store has {size} of {file.size} bytes that it confirmed")

    async def size(self, key: str) -> int | None:
        async with self._request("HEAD", self._path(key)) as answer:
            if answer.status == _NOT_FOUND:
                return None
            await _expect_success(answer)
            if answer.content_length is None:
                raise MediaStoreError("the media store does not say how long a file is")
            return answer.content_length

    async def read(self, key: str, start: int, length: int) -> AsyncGenerator[bytes, None]:
        if length <= 0:
            return
        headers = {"range": f"bytes={start}-{start + length - 1}"}
        async with self._request("GET", self._path(key), headers=headers, seconds=READ_SECONDS) as answer:
            if answer.status == _NOT_FOUND:
                raise MediaNotFound
            await _expect_success(answer)
            _expect_range(answer, start, length)
            left = length
            async for chunk in answer.content.iter_chunked(READ_CHUNK):
                yield chunk[:left]
                left -= len(chunk)
                if left <= 0:
                    return
            raise MediaStoreError("the media store sent less of a file than was asked for")

    async def days(self) -> Sequence[str]:
        folder = self._bucket.path.split("/", 2)[2]
        found: set[str] = set()
        more: dict[str, str] = {}
        for _ in range(PAGES_MAX):
            text = await self._list(prefix=folder, delimiter="/", **more)
            found.update(_FOUND_DAY.findall(text))
            if (token := _NEXT_LIST.search(text)) is None:
                break
            more = {"continuation-token": unescape(token[1])}
        return sorted(found)

    async def delete_day(self, day: str) -> int:
        _, bucket, folder = self._bucket.path.split("/", 2)
        prefix = f"{folder}{check_key(f'{day}/a/a')[:8]}/"
        keys = _keys(await self._list(prefix=prefix), prefix)
        for key in keys:
            await self._delete(f"/{bucket}/{key}")
        return len(keys)

    async def _delete(self, path: str) -> None:
        async with self._request("DELETE", path) as answer:
            if answer.status != _NOT_FOUND:
                await _expect_success(answer)

    async def delete_account_files(self, day: str, account_id: int, keep: Callable[[str], bool]) -> int:
        _, bucket, folder = self._bucket.path.split("/", 2)
        prefix = f"{folder}{check_key(f'{day}/{account_id}/a')[:-1]}"
        deleted, last = 0, ""
        while keys := _keys(await self._list(prefix=prefix, **({"start-after": last} if last else {})), prefix):
            if keys[0] <= last:
                raise MediaStoreError("the media store lists the same files again")
            last = keys[-1]
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
            body = await _read_body(answer, ANSWER_BYTES_MAX + 1)
        if len(body) > ANSWER_BYTES_MAX or b"<ListBucketResult" not in body:
            raise MediaStoreError(f"the media store answered a request for a list with something else{_code(body)}")
        return body.decode(errors="replace")

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
        seconds: float = PUT_SECONDS,
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
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=10.0, sock_read=60.0)
        options: dict[str, Any] = {"headers": signed, "data": data, "allow_redirects": False, "timeout": timeout}
        try:
            async with self._session.request(method, URL(url, encoded=True), **options) as answer:
                yield answer
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise MediaStoreError(f"the media store does not answer: {type(error).__name__}") from error

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            # Without a limit: files that clients read slowly must not keep deliveries waiting for a connection.
            connector, cookies = aiohttp.TCPConnector(limit=0), aiohttp.DummyCookieJar()
            self._opened = aiohttp.ClientSession(
                connector=connector, auto_decompress=False, trust_env=False, cookie_jar=cookies
            )
        return self._opened


def _host(name: str, port: int | None) -> str:
    shown = f"[{name}]" if ":" in name else name
    return shown if port is None else f"{shown}:{port}"


def _keys(text: str, prefix: str) -> list[str]:
    """Return the keys of a list. Raises MediaStoreError if one was not asked for: it would be deleted."""
    keys = [unescape(key) for key in _FOUND_KEY.findall(text)]
    if any(not key.startswith(prefix) for key in keys):
        raise MediaStoreError("the media store lists files that were not asked for; nothing of them was deleted")
    return keys


async def _read_body(answer: aiohttp.ClientResponse, most: int) -> bytes:
    """Return up to `most` bytes of the body, however it is divided."""
    body = bytearray()
    while len(body) < most and (chunk := await answer.content.read(most - len(body))):
        body += chunk
    return bytes(body)


async def _expect_success(answer: aiohttp.ClientResponse) -> None:
    if answer.status < _OK or answer.status >= _NOT_SUCCESS:
        body = await _read_body(answer, ERROR_BYTES_MAX)
        raise MediaStoreError(f"the media store answered {answer.status}{_code(body)}")


def _code(body: bytes) -> str:
    """Return the code in an error document of S3, to be added to a message."""
    found = _CODE.search(body, 0, ERROR_BYTES_MAX)
    return f": {found[1].decode()}{_ADVICE.get(found[1].decode(), '')}" if found else ""


def _expect_range(answer: aiohttp.ClientResponse, start: int, length: int) -> None:
    """Raise MediaStoreError if the answer is not the part of the file that was asked for."""
    if answer.status == _PARTIAL:
        is_right = answer.headers.get("Content-Range", f"bytes {start}-").startswith(f"bytes {start}-")
    else:  # the whole file
        is_right = answer.status == _OK and start == 0
    if not is_right or (answer.content_length is not None and answer.content_length < length):
        raise MediaStoreError("the media store did not send the part of a file that was asked for")


async def _chunks(content: IO[bytes]) -> AsyncIterator[bytes]:
    await asyncio.to_thread(content.seek, 0)
    while chunk := await asyncio.to_thread(content.read, CHUNK):
        yield chunk
