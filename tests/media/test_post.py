"""Posts to addresses that others chose read little of the answer."""

from aiohttp import web

from genlock.media.post import Posts
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
