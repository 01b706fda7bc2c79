"""Posts to addresses that others chose read little of the answer, and what is kept of it is plain text."""

from aiohttp import web

from genlock.media.post import TEXT_LENGTH_MAX, Posts
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
