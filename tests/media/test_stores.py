"""Media stores: a folder and an S3 bucket behave alike."""

import asyncio
import io
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest

from genlock.domain.errors import MediaNotFound, MediaStoreError
from genlock.domain.events import Event
from genlock.domain.stored_file import StoredFile, check_key, make_key
from genlock.engine.media_retention import MediaRetention
from genlock.media.stores.folder import FolderMediaStore
from genlock.media.stores.s3 import Bucket, S3MediaStore
from genlock.media.stores.s3_signature import Credentials, sign
from genlock.ports import MediaStore
from genlock.sandbox.processes import find_free_port
from tests.engine.recorder import Recorder
from tests.media.s3_server import CREDENTIALS, S3Server, running_s3

CONTENT = bytes(range(256)) * 4000


def file_of(content: bytes = CONTENT, key: str = "20300101/7/12-0.png") -> StoredFile:
    return StoredFile(key=key, content_type="image/png", size=len(content), sha256=sha256(content).hexdigest())


@pytest.fixture
async def s3() -> AsyncIterator[S3Server]:
    async with running_s3() as server:
        yield server


@pytest.fixture(params=["folder", "s3"])
async def media(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MediaStore]:
    if request.param == "folder":
        yield FolderMediaStore(tmp_path / "media")
        return
    async with running_s3() as server:
        secret = quote(CREDENTIALS.secret, safe="")
        store = S3MediaStore(
            Bucket.parse(f"s3://access:{secret}@{server.host}/bucket/some/folder?region=eu-test-1&scheme=http")
        )
        yield store
        await store.close()


async def whole(media: MediaStore, key: str, start: int, length: int) -> bytes:
    return b"".join([chunk async for chunk in media.read(key, start, length)])


async def test_what_was_put_is_read_whole_or_in_part(media: MediaStore) -> None:
    file = file_of()
    assert await media.size(file.key) is None
    for _ in range(2):  # the second time changes nothing
        await media.put(file, io.BytesIO(CONTENT))

    assert await media.size(file.key) == len(CONTENT)
    assert await whole(media, file.key, 0, len(CONTENT)) == CONTENT
    assert await whole(media, file.key, 1000, 300_000) == CONTENT[1000:301_000]
    with pytest.raises(MediaNotFound):
        await whole(media, "20300101/7/other.png", 0, 10)


async def test_files_that_are_read_slowly_do_not_keep_others_from_being_stored(media: MediaStore) -> None:
    """Every client with a key may read a hundred results as slowly as it likes."""
    await media.put(file_of(), io.BytesIO(CONTENT))
    async with AsyncExitStack() as closing:
        for _ in range(120):
            chunks = media.read(file_of().key, 0, len(CONTENT))
            closing.push_async_callback(chunks.aclose)
            assert len(await anext(chunks)) <= 65_536, "each of them is in memory"
        async with asyncio.timeout(20):
            await media.put(file_of(key="20300101/7/13-0.png"), io.BytesIO(CONTENT))


async def test_files_are_deleted_by_the_day_on_which_they_were_stored(media: MediaStore) -> None:
    recorder = Recorder()
    for day in ("20300101", "20300102", "20300110"):
        await media.put(file_of(b"x", f"{day}/7/a.png"), io.BytesIO(b"x"))
    retention = MediaRetention(media, recorder, lambda: datetime(2030, 1, 9, 12, tzinfo=UTC), keep_days=7)

    await retention.prune()
    assert list(await media.days()) == ["20300102", "20300110"]
    await retention.prune()
    assert list(await media.days()) == ["20300102", "20300110"]
    assert file_of(b"x", "20300102/7/a.png").expires_at(7) == datetime(2030, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "key", ["../7/a", "20300101/../a", "20300101/7/../a", "20300101/7/.a", "/etc/passwd", "20300101/7", ""]
)
async def test_a_key_never_leaves_the_store(media: MediaStore, key: str) -> None:
    with pytest.raises(ValueError, match="not the key"):
        check_key(key)
    with pytest.raises(ValueError, match="not the key"):
        await media.size(key)


async def test_a_copy_that_could_not_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(28, "No space left on device")

    media = FolderMediaStore(tmp_path)
    with pytest.raises(MediaStoreError, match="No space left"):
        await media.put(file_of(), Broken())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []  # noqa: ASYNC240 - the test waits for it


async def test_a_bucket_that_does_not_answer_or_refuses_is_a_store_error(s3: S3Server) -> None:
    wrong = S3MediaStore(Bucket.parse(f"s3://access:wrong@{s3.host}/bucket?region=eu-test-1&scheme=http"))
    nothing = S3MediaStore(Bucket.parse(f"s3://a:b@127.0.0.1:{find_free_port()}/bucket?scheme=http"))
    try:
        with pytest.raises(MediaStoreError, match="403: SignatureDoesNotMatch"):
            await wrong.put(file_of(b"x"), io.BytesIO(b"x"))
        with pytest.raises(MediaStoreError, match="does not answer"):
            await nothing.size("20300101/7/a")
        s3.failing += [503]
        with pytest.raises(MediaStoreError, match="503: SlowDown"):
            await wrong.days()
        recorder = Recorder()
        await MediaRetention(nothing, recorder, lambda: datetime(2030, 1, 1, tzinfo=UTC), 1).prune()
        assert [event.event for event in recorder.seen] == [Event.STAGE_ERROR]
    finally:
        await wrong.close()
        await nothing.close()


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("s3://bucket", "must be s3://KEY:SECRET@HOST/BUCKET"),
        ("s3://host/bucket", "must contain the access key"),
        ("s3://key:hidden@host/bucket?foo=1", "with nothing else"),
        ("s3://key:hidden@host/bucket?scheme=ftp", "with nothing else"),
    ],
)
def test_a_wrong_address_of_a_bucket_is_explained_without_its_secret(url: str, what: str) -> None:
    with pytest.raises(ValueError, match=what) as refused:
        Bucket.parse(url)
    assert "hidden" not in str(refused.value)


AWS = Credentials(key="AKIAIOSFODNN7EXAMPLE", secret="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", region="us-east-1")
AWS_HOST, AWS_NOW = "examplebucket.s3.amazonaws.com", datetime(2013, 5, 24, tzinfo=UTC)


def test_signatures_are_those_of_the_examples_that_aws_publishes() -> None:
    get = sign(AWS, "GET", AWS_HOST, "/test.txt", now=AWS_NOW, headers={"Range": "bytes=0-9"})
    body = b"Welcome to Amazon S3."
    put = sign(
        AWS, "PUT", AWS_HOST, "/test$file.text", now=AWS_NOW, sha256=sha256(body).hexdigest(),
        headers={"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
    )  # fmt: skip
    listed = sign(AWS, "GET", AWS_HOST, "/", now=AWS_NOW, query={"max-keys": "2", "prefix": "J"})

    signatures = [headers["authorization"].rpartition("=")[2] for headers in (get, put, listed)]
    assert signatures == [
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    ]


def test_a_reference_to_a_file_is_read_as_it_was_written() -> None:
    file = file_of(key=make_key(datetime(2030, 1, 1, 23, 59, tzinfo=UTC), 7, "12-0.png"))
    assert StoredFile.parse(str(file)) == file
    for wrong in ("", "20300101/7/a image/png x y", "../../a image/png 1 y", "a b c"):
        with pytest.raises(ValueError, match=r"\w"):
            StoredFile.parse(wrong)


async def test_the_files_of_one_account_are_deleted_and_those_to_be_kept_stay(media: MediaStore) -> None:
    names = ("20300101/7/1-0.png", "20300101/7/2-0.png", "20300102/7/abc.png", "20300101/70/1-0.png")
    for key in names:
        await media.put(file_of(key=key), io.BytesIO(CONTENT))

    for _ in range(2):  # the second time changes nothing
        for day in await media.days():
            await media.delete_account_files(day, 7, lambda name: name.startswith("2-"))
    assert [await media.size(key) is not None for key in names] == [False, True, False, True]
    assert await media.delete_account_files("20310101", 7, lambda _: False) == 0


async def test_more_files_than_one_list_of_s3_names_are_deleted(s3: S3Server) -> None:
    secret = quote(CREDENTIALS.secret, safe="")
    media = S3MediaStore(Bucket.parse(f"s3://access:{secret}@{s3.host}/bucket?region=eu-test-1&scheme=http"))
    s3.objects = {f"/bucket/20300101/7/{number}-0.png": (b"", "image/png") for number in range(1, 1021)}
    assert await media.delete_account_files("20300101", 7, lambda name: name == "500-0.png") == 1019
    await media.close()

    assert list(s3.objects) == ["/bucket/20300101/7/500-0.png"]


async def test_folders_of_the_operator_stop_neither_retention_nor_erasure(tmp_path: Path) -> None:
    media = FolderMediaStore(tmp_path)
    await media.put(file_of(), io.BytesIO(CONTENT))
    for name in ("2025", "203001021", "notes", "\u0662" * 8):
        (tmp_path / name).mkdir()
    assert await media.days() == ["20300101"]


async def test_what_a_crash_left_is_deleted_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    media = FolderMediaStore(tmp_path, now=lambda: 1_000_000_000.0)
    await media.put(file_of(), io.BytesIO(CONTENT))
    folder = tmp_path / "20300101" / "7"
    for name, age in ((".incomplete-old", 601), (".incomplete-new", 1)):
        (folder / name).write_bytes(b"x")
        os.utime(folder / name, times=(1_000_000_000 - age,) * 2)

    assert await media.delete_account_files("20300101", 7, lambda _: False) == 2
    assert [file.name for file in folder.iterdir()] == [".incomplete-new"]
