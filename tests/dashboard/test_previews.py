"""Results through our own server: what the bytes are decides, and nothing that can run is shown."""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message

from genlock.dashboard import fetched_files, previews
from genlock.domain.delivery import Part
from genlock.domain.job import Job, State
from genlock.domain.operator import OperatorRole
from genlock.domain.result import PartKind
from genlock.domain.stored_file import StoredFile, make_key
from genlock.ports import EndJob
from genlock.sandbox.processes import find_free_port
from genlock.web.server import serving
from tests.dashboard.job_pages import with_result
from tests.dashboard.world import Client, DashboardWorld, running_dashboard
from tests.databases import new_sqlite
from tests.stores.builders import running

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
FILES = {
    "a.png": (PNG, "text/html", 200),
    "page.png": (b"<!doctype html><script>alert(1)</script>", "image/png", 200),
    "odd.html": (b"\0\1\2\3", "text/html", 200),
    "a.svg": (SVG, "image/svg+xml", 200),
    "a.bin": (b"\0\1\2\3", "application/octet-stream", 200),
    "gone.png": (b"gone", "text/plain", 404),
    "broken.png": (b"", "text/plain", 500),
    "song.mp3": (b"ID3" + b"\0" * 100, "application/octet-stream", 200),
    "film.mp4": (b"\0\0\0\x20ftypisom" + b"\0" * 100, "video/mp4", 200),
}


#: names of files that were downloaded
downloaded: list[str] = []


async def file(request: Request) -> Response:
    content, kind, status = FILES[request.path_params["name"]]
    downloaded.append(request.path_params["name"])
    return Response(content, status, media_type=kind, headers={"Set-Cookie": "evil=1", "Refresh": "0"})


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[DashboardWorld]:
    port = find_free_port()
    async with (
        serving(Starlette(routes=[Route("/{name}", file)]), "127.0.0.1", port),
        running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", media_private_hosts=(f"127.0.0.1:{port}",)) as dashboard,
    ):
        parts = [Part(kind=PartKind.FILE, value=f"http://127.0.0.1:{port}/{name}") for name in FILES]
        await with_result(dashboard, *parts)
        yield dashboard


@pytest.fixture
async def client(world: DashboardWorld) -> Client:
    return await world.log_in()


def number(name: str) -> int:
    return list(FILES).index(name) + 1


async def test_media_are_sent_as_what_their_bytes_are_and_cannot_run(client: Client) -> None:
    for name, kind, suffix in [
        ("a.png", "image/png", ".png"), ("song.mp3", "audio/mpeg", ".mp3"), ("film.mp4", "video/mp4", ".mp4"),
    ]:  # fmt: skip
        answer = await client.get(f"/jobs/1/results/{number(name)}")

        assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
        assert answer.headers["Content-Disposition"] == f'inline; filename="order-1-{number(name)}{suffix}"'
        assert answer.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "Set-Cookie" not in answer.headers
        assert "Refresh" not in answer.headers
        assert int(answer.headers["Content-Length"]) == len(FILES[name][0])


async def test_a_browser_seeks_in_a_film_without_downloading_it_again(client: Client) -> None:
    film, path = FILES["film.mp4"][0], f"/jobs/1/results/{number('film.mp4')}"
    downloaded.clear()
    size = len(film)
    parts = {"bytes=0-": (0, size), "bytes=4-11": (4, 12), "bytes=-8": (size - 8, size), "bytes=100-9999": (100, size)}
    for wanted, (begin, end) in parts.items():
        answer = await client.get(path, Range=wanted)
        assert (answer.status, answer.text) == (206, film[begin:end].decode()), wanted
        assert answer.headers["Content-Range"] == f"bytes {begin}-{end - 1}/{size}"
        assert answer.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    for wanted in ("bytes=7-3", "bytes=0-1,4-5", "pages=1-2", "bytes=-"):
        answer = await client.get(path, Range=wanted)
        assert (answer.status, answer.text) == (200, film.decode()), wanted
        assert answer.headers["Accept-Ranges"] == "bytes"
    for wanted in ("bytes=9999-", "bytes=-0"):
        answer = await client.get(path, Range=wanted)
        assert (answer.status, answer.headers["Content-Range"]) == (416, f"bytes */{size}"), wanted
    assert downloaded == ["film.mp4"]


async def test_files_that_were_downloaded_are_kept_for_a_while_and_few_of_them(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetched_files, "KEPT_MAX", 1)
    film, song = (f"/jobs/1/results/{number(name)}" for name in ("film.mp4", "song.mp3"))
    downloaded.clear()
    for path in (film, song, song, film):  # the song takes the place of the film
        assert (await client.get(path)).status == 200
    assert downloaded == ["film.mp4", "song.mp3", "film.mp4"]
    monkeypatch.setattr(fetched_files, "KEPT_SECONDS", 0.0)
    for _ in range(2):
        assert (await client.get(film)).status == 200
    assert downloaded[-1:] == ["film.mp4"]
    assert len(downloaded) == 4


async def test_other_files_can_only_be_saved(client: Client) -> None:
    for name in ("a.svg", "a.bin"):
        answer = await client.get(f"/jobs/1/results/{number(name)}")

        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/octet-stream"), name
        assert answer.headers["Content-Disposition"].startswith("attachment;")


async def test_pages_and_missing_files_are_refused_in_words(client: Client) -> None:
    reasons = {
        "page.png": "leads to a web page",
        "odd.html": "leads to a web page",
        "gone.png": "link has expired",
        "broken.png": "file server isn&#39;t responding",
    }
    for name, reason in reasons.items():
        shown = await client.get(f"/jobs/1/results/{number(name)}/preview")
        opened = await client.get(f"/jobs/1/results/{number(name)}")

        assert (shown.status, opened.status) == (200, 502), name
        assert reason in shown.text, name
        assert reason in opened.text, name


async def test_a_preview_shows_the_fitting_element_from_our_own_address(client: Client) -> None:
    elements = {"a.png": "<img", "song.mp3": "<audio", "film.mp4": "<video", "a.bin": "Download the file (.bin)"}
    for name, element in elements.items():
        part = await client.get(f"/jobs/1/results/{number(name)}/preview", **{"HX-Request": "true"})

        assert element in part.text, name
        assert "127.0.0.1" not in part.text
        assert "<html" not in part.text


async def test_a_file_that_is_too_large_is_not_fetched(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previews, "FILE_BYTES_MAX", 50)

    assert "larger than 100\u00a0MB" in (await client.get(f"/jobs/1/results/{number('a.png')}")).text
    assert "larger than 100\u00a0MB" in (await client.get(f"/jobs/1/results/{number('a.png')}/preview")).text


async def test_browsers_that_read_slowly_cannot_fill_the_disk(
    world: DashboardWorld, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "FILES_MAX", 1)
    shown = previews.Previews(world.parts.downloads, world.parts.media)
    job = await world.store.job(1)
    assert job is not None
    url = job.parts[number("a.png") - 1].value
    sent: list[int] = []

    async def read_slowly(message: Message) -> None:
        if message["type"] == "http.response.start":
            sent.append(message["status"])
            with pytest.raises(previews.PreviewRefused, match="busy"):
                await shown.open(url, "second")

    async def wait() -> Message:
        await asyncio.Event().wait()
        return {}

    for _ in range(2):  # the file of the first is closed when it was sent
        await (await shown.open(url, "first"))({"type": "http", "asgi": {}}, wait, read_slowly)
    assert sent == [200, 200]
    monkeypatch.setattr(previews, "FILES_MAX", 0)
    answer = await client.get(f"/jobs/1/results/{number('a.png')}")
    assert (answer.status, "Operators have too many files open" in answer.text) == (502, True)


async def api_order(
    world: DashboardWorld, name: str, content: bytes, content_type: str = "image/png"
) -> tuple[int, StoredFile]:
    """An order of an API client whose result is in the media store; the provider's link has this name."""
    url = (await made(world, 1)).parts[0].value.rpartition("/")[0]
    job = await running(world.store, price=0, channel="api")
    copy = StoredFile(
        key=make_key(job.created_at, job.account_id, f"{job.id}-0.png"),
        content_type=content_type,
        size=len(content),
        sha256="0" * 64,
    )
    await world.parts.media.put(copy, BytesIO(content))
    part = Part(kind=PartKind.FILE, value=f"{url}/{name}", file=str(copy))
    assert (await world.store.end_job(EndJob(job_id=job.id, state=State.SUCCEEDED, parts=(part,)), None)).job
    return job.id, copy


async def made(world: DashboardWorld, job_id: int) -> Job:
    job = await world.store.job(job_id)
    assert job is not None
    return job


async def test_a_result_of_an_api_client_is_our_own_copy_also_when_the_providers_link_is_gone(
    world: DashboardWorld, client: Client
) -> None:
    content = PNG + b"our own copy" * 30_000
    job_id, _ = await api_order(world, "gone.png", content)

    shown = await client.get(f"/jobs/{job_id}/results/1/preview", **{"HX-Request": "true"})
    opened = await client.get(f"/jobs/{job_id}/results/1")

    assert "<img" in shown.text
    assert (opened.status, opened.headers["Content-Type"]) == (200, "image/png")
    assert int(opened.headers["Content-Length"]) == len(content)
    middle = await client.get(f"/jobs/{job_id}/results/1", Range="bytes=108-119")
    assert (middle.status, middle.text) == (206, "our own copy")
    other = await client.get(f"/jobs/{job_id}/results/1", Range="bytes=108-119", **{"If-Range": '"another"'})
    assert other.status == 200
    assert opened.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert opened.text.endswith("our own copy")
    assert (await world.client().get(f"/jobs/{job_id}/results/1")).status != 200
    viewer = await world.log_in(OperatorRole.VIEWER)
    assert (await viewer.get(f"/jobs/{job_id}/results/1")).status == 200


async def test_a_copy_that_can_run_is_only_saved(world: DashboardWorld, client: Client) -> None:
    job_id, _ = await api_order(world, "gone.png", SVG, "image/svg+xml")

    answer = await client.get(f"/jobs/{job_id}/results/1")

    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/octet-stream")
    assert answer.headers["Content-Disposition"].startswith("attachment;")


async def test_a_copy_that_was_deleted_for_its_age_is_looked_for_at_the_provider(
    world: DashboardWorld, client: Client
) -> None:
    for name, status, word in (("a.png", 200, "<img"), ("gone.png", 502, "Our copy was deleted")):
        job_id, copy = await api_order(world, name, PNG + b"copy")
        await world.parts.media.delete_day(copy.key[:8])

        assert word in (await client.get(f"/jobs/{job_id}/results/1/preview")).text
        assert (await client.get(f"/jobs/{job_id}/results/1")).status == status
