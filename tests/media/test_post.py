"""Posts to addresses that others chose read little of the answer, and what is kept of it is plain text."""

import asyncio

from aiohttp import web

from genlock.api.webhook_sender import DEGRADED_AT_ONCE, ENDPOINTS_AT_ONCE, SENDS_AT_ONCE
from genlock.media.post import TEXT_LENGTH_MAX, Posts
from tests.changes import PATIENCE_SECONDS
from tests.media.file_server import running_file_server


async def test_a_compressed_answer_is_neither_asked_for_nor_unpacked() -> None:
    """A small compressed answer could expand to any size; one that cannot be unpacked is an answer all the same."""
    asked: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Accept-Encoding"))
        return web.Response(body=b"not compressed", headers={"Content-Encoding": "gzip"})

    async with running_file_server() as files:
        posts = Posts(private=[files.host])
        got = await posts.post(files.serve("hook", answer), b"{}", {})
        await posts.close()

    assert (got.status, asked) == (200, ["identity"])


async def test_as_many_slow_receivers_as_are_served_at_once_do_not_delay_another_post() -> None:
    slow_ones = (ENDPOINTS_AT_ONCE + DEGRADED_AT_ONCE) * SENDS_AT_ONCE - 1
    begun, is_answering = asyncio.Semaphore(0), asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        begun.release()
        await is_answering.wait()
        return web.Response()

    async def quick(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async with running_file_server() as files, asyncio.timeout(PATIENCE_SECONDS):
        posts = Posts(private=[files.host])
        url = files.serve("slow", slow)
        held = [asyncio.create_task(posts.post(url, b"{}", {})) for _ in range(slow_ones)]
        for _ in held:
            await begun.acquire()
        assert (await posts.post(files.serve("quick", quick), b"{}", {})).text == "ok"
        is_answering.set()
        await asyncio.gather(*held)
        await posts.close()


async def test_the_start_of_an_answer_is_kept_as_printable_text() -> None:
    bodies = {
        "plain": b"ok",
        "hostile": b"\x00\x1b[31m\xff<script>\r\n  x\xe2\x80\xae",
        "long": b"a" * 1_000_000,
        "empty": b"",
    }

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=bodies[request.path.rpartition("/")[2]], status=500)

    async with running_file_server() as files:
        posts = Posts(private=[files.host])
        found = {name: (await posts.post(files.serve(name, answer), b"{}", {})).text for name in bodies}
        await posts.close()

    assert (found["plain"], found["empty"]) == ("ok", "")
    assert found["long"] == "a" * TEXT_LENGTH_MAX
    assert found["hostile"].isprintable()
    assert "<script> x" in found["hostile"]
