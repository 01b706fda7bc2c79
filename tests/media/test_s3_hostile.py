"""An S3 bucket that answers wrongly, by mistake or by intent: nothing of it reaches a client or a log."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from genlock.domain.errors import MediaStoreError
from genlock.media.stores import s3
from genlock.media.stores.s3 import Bucket, S3MediaStore
from tests.media.s3_server import CREDENTIALS, running_s3
from tests.media.test_stores import file_of, whole

KEY = "20300101/7/12-0.png"
CONTENT = b"0123456789"
SECRET = "topsecretkey"
Answer = bytes | list[bytes]
Call = Callable[[S3MediaStore], Awaitable[object]]
DELETIONS: tuple[Call, ...] = (
    lambda media: media.delete_day("20300101"),
    lambda media: media.delete_account_files("20300101", 7, lambda _: False),
)


def http(status: str = "200 OK", body: bytes = b"", **headers: str) -> bytes:
    given = {"Content_Length": str(len(body)), "Connection": "close", **headers}
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in given.items() if value)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def listed(*keys: str, rest: str = "") -> bytes:
    rows = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys)
    return http(body=f"<ListBucketResult>{rows}{rest}</ListBucketResult>".encode())


class HostileBucket:
    """Answers each request with the next of the given answers; an answer of several pieces is sent piece by piece."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[str] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.requests.append(head.partition(" HTTP")[0])
        length = next((int(line.split(":")[1]) for line in head.lower().split("\r\n") if "content-length" in line), 0)
        if head.startswith("PUT"):
            await reader.readexactly(length)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        pieces = answer if isinstance(answer, list) else [answer]
        try:
            for piece in [pieces[0].partition(b"\r\n\r\n")[0] + b"\r\n\r\n"] if head.startswith("HEAD") else pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.01)  # so that the pieces arrive one by one
        except ConnectionError:  # the store has read enough
            return
        finally:
            writer.close()


@asynccontextmanager
async def bucket(*answers: Answer, folder: str = "") -> AsyncIterator[tuple[HostileBucket, S3MediaStore]]:
    hostile = HostileBucket(*answers)
    server = await asyncio.start_server(hostile.serve, "127.0.0.1", 0)
    hostile.port = server.sockets[0].getsockname()[1]
    media = S3MediaStore(Bucket.parse(f"s3://access:{SECRET}@127.0.0.1:{hostile.port}/bucket{folder}?scheme=http"))
    try:
        yield hostile, media
    finally:
        await media.close()
        server.close()


async def refusal(work: Awaitable[object]) -> str:
    with pytest.raises(MediaStoreError) as refused:
        await work
    return str(refused.value)


READS: dict[str, Answer] = {
    "an error document with 200": http(body=b"<Error><Code>InternalError</Code></Error>"[:8]),
    "the file from its beginning, though a part was asked for": http(body=CONTENT),
    "another part": http("206 Partial Content", CONTENT[:4], Content_Range="bytes 0-3/10"),
    "a shorter part": http("206 Partial Content", CONTENT[2:4], Content_Range="bytes 2-3/10"),
    "a part that is cut": [http("206 Partial Content", Content_Range="bytes 2-5/10", Content_Length="4"), b"23"],
    "a part without a length that is cut": http("206 Partial Content", b"23", Content_Length=""),
    "a redirect to a private address": http("307 Temporary Redirect", Location="http://169.254.169.254/latest/"),
    "a redirect to a file": http("301 Moved Permanently", Location="file:///etc/passwd"),
    "a length that is no number": http("206 Partial Content", b"2345", Content_Length="x"),
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "nothing": b"",
    "a status of another world": http("999 Odd"),
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"a" * 100_000,
}


async def test_a_part_of_a_file_is_that_part_or_an_error() -> None:
    failures = []
    for name, answer in READS.items():
        async with bucket(answer) as (hostile, media):
            try:
                got = await whole(media, KEY, 2, 4)
            except MediaStoreError as error:
                paths = {request.partition(" ")[2] for request in hostile.requests}
                if "169.254" in str(error) or SECRET in str(error) or paths != {f"/bucket/{KEY}"}:
                    failures.append(f"{name}: {error}")
            else:
                failures.append(f"{name}: {got!r}")
    assert failures == []


async def test_more_than_was_asked_for_is_cut_off() -> None:
    async with bucket([http(Content_Length="1000000"), *[CONTENT * 100] * 1000]) as (_, media):
        assert await whole(media, KEY, 0, 4) == b"0123"
    async with bucket(http("206 Partial Content", b"23456789", Content_Range="bytes 2-9/10")) as (_, media):
        assert await whole(media, KEY, 2, 4) == b"2345"


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([http(body=b"<?xml?><Error><Code>InternalError</Code></Error>")], "answered 200 with an error: InternalError"),
        ([http(body=b"<html>log in</html>")], "has 19 of 10 bytes"),
        ([http(), http("404 Not Found")], "has None of 10 bytes"),
        ([http(), http(Content_Length="")], "does not say how long"),
        ([http("403 Forbidden", b"<Error><Code>RequestTimeTooSkewed</Code></Error>")], "set the clock of this machine"),
        ([[http("500 Oops", Content_Length="10000000"), *[b"<Error>" * 10_000] * 100]], "answered 500"),
    ],
)
async def test_a_copy_counts_as_stored_only_if_it_is_there(answers: list[Answer], reason: str) -> None:
    async with bucket(*answers) as (_, media):
        assert reason in await refusal(media.put(file_of(CONTENT, KEY), io.BytesIO(CONTENT)))


async def test_a_list_that_arrives_in_pieces_is_read_to_its_end() -> None:
    text = listed(*(f"20300101/7/{number}.png" for number in range(30)))
    pieces = [text[start : start + 97] for start in range(0, len(text), 97)]
    deleted = http("204 No Content", Content_Length="")
    async with bucket(pieces, *[deleted] * 30, listed()) as (hostile, media):
        assert await media.delete_account_files("20300101", 7, lambda _: False) == 30
        assert sum(request.startswith("DELETE") for request in hostile.requests) == 30


async def test_nothing_is_deleted_that_was_not_asked_for() -> None:
    """A server that ignores the prefix would have the store delete the whole bucket."""
    for foreign in ("20300102/7/1.png", "../../other/20300101/7/1.png", "backup.sql", "&#x2F;etc"):
        for call in DELETIONS:
            async with bucket(listed("20300101/7/1.png", foreign)) as (hostile, media):
                assert "not asked for" in await refusal(call(media))
                assert not [request for request in hostile.requests if request.startswith("DELETE")]


async def test_a_bucket_that_lists_the_same_files_without_end_is_given_up() -> None:
    async with bucket(listed("20300101/7/1.png"), http("204 No Content"), listed("20300101/7/1.png")) as (_, media):
        assert "the same files again" in await refusal(media.delete_account_files("20300101", 7, lambda _: False))
    again = listed(rest="<NextContinuationToken>same</NextContinuationToken>")
    async with bucket(again) as (hostile, media):
        assert await media.days() == []
        assert len(hostile.requests) == s3.PAGES_MAX


async def test_a_list_that_is_none_or_too_long_is_an_error_and_not_an_empty_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An erasure that took it for an empty list would leave the files of the account."""
    monkeypatch.setattr(s3, "ANSWER_BYTES_MAX", 1000)
    for answer in (http(), http(body=b"<Error><Code>SlowDown</Code></Error>"), listed(*["20300101/7/1.png"] * 100)):
        for call in (*DELETIONS, S3MediaStore.days):
            async with bucket(answer) as (_, media):
                assert "with something else" in await refusal(call(media))


async def test_days_are_read_from_all_pages_of_a_list() -> None:
    pages = [
        listed(rest=f"<Prefix>x/{day}/</Prefix>{more}")
        for day, more in (("20300101", "<NextContinuationToken>a&amp;b</NextContinuationToken>"), ("20300102", ""))
    ]
    async with bucket(*pages) as (hostile, media):
        assert list(await media.days()) == ["20300101", "20300102"]
        assert "continuation-token=a%26b" in hostile.requests[1]


async def test_a_body_that_stops_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "READ_SECONDS", 0.2)
    monkeypatch.setattr(s3, "PUT_SECONDS", 0.2)
    stalled = asyncio.Event()

    async def stall(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(http("206 Partial Content", Content_Length="4", Content_Range="bytes 2-5/10") + b"2")
        await stalled.wait()
        writer.close()

    server = await asyncio.start_server(stall, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    media = S3MediaStore(Bucket.parse(f"s3://a:b@127.0.0.1:{port}/bucket?scheme=http"))
    assert "TimeoutError" in await refusal(whole(media, KEY, 2, 4))
    stalled.set()
    await media.close()
    server.close()


async def test_folders_with_odd_names_are_signed_and_found() -> None:
    async with running_s3() as server:
        for folder in ("my%20folder", "%D1%84%D0%BE%D1%82%D0%BE", "a+b&c=d", "50%25", "~a'(b)*!"):
            url = f"s3://access:se%2Fcr%2Bet@{server.host}/bucket/{folder}?region=eu-test-1&scheme=http"
            media = S3MediaStore(Bucket.parse(url))
            await media.put(file_of(CONTENT, KEY), io.BytesIO(CONTENT))
            assert await whole(media, KEY, 0, 10) == CONTENT, folder
            assert list(await media.days()) == ["20300101"], folder
            assert await media.delete_day("20300101") == 1, folder
            await media.close()
        assert server.objects == {}


def test_the_secret_of_a_bucket_is_in_no_representation() -> None:
    parsed = Bucket.parse("s3://key:top%2Fsecret@[2001:db8::1]:9000/bucket/a")
    assert (parsed.host, parsed.credentials.secret) == ("[2001:db8::1]:9000", "top/secret")
    for shown in (repr(parsed), repr(parsed.credentials), repr(CREDENTIALS), repr(S3MediaStore(parsed).__dict__)):
        assert "secret" not in shown.replace("secrets", "")
        assert CREDENTIALS.secret not in shown


Clock = Callable[[], datetime]


async def test_a_wrong_clock_is_named() -> None:
    async with running_s3() as server:
        url = f"s3://access:se%2Fcr%2Bet@{server.host}/bucket?region=eu-test-1&scheme=http"
        now: Clock = lambda: datetime(1999, 12, 31, tzinfo=UTC)  # noqa: E731 - a clock of one line
        server.now = lambda: datetime(2030, 1, 1, tzinfo=UTC)
        media = S3MediaStore(Bucket.parse(url), now)
        reason = await refusal(media.put(file_of(CONTENT, KEY), io.BytesIO(CONTENT)))
        await media.close()
    assert reason == "the media store answered 403: RequestTimeTooSkewed (set the clock of this machine)"
