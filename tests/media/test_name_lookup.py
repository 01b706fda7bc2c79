"""Names that others chose, and whose server does not answer, hold up no other look-up."""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from genlock.media.download import FetchFailed
from genlock.media.name_lookup import LOOKUPS_MAX
from genlock.media.post import Posts
from tests.changes import poll_until


class Names:
    """A name server that answers only when it is told to."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.is_answering = threading.Event()

    def find(self, host: Any, port: Any, *_: Any, **__: Any) -> list[Any]:
        name = str(host)
        self.asked[name] += 1
        if name.startswith("slow"):
            self.is_answering.wait(20)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    found = Names()
    monkeypatch.setattr(socket, "getaddrinfo", found.find)
    yield found
    found.is_answering.set()


async def test_slow_names_hold_up_no_look_up_of_the_event_loop(names: Names) -> None:
    posts = Posts()
    slow = [
        asyncio.create_task(posts.post(f"https://slow{number}.example/", b"", {})) for number in range(LOOKUPS_MAX + 4)
    ]
    await poll_until(lambda: len(names.asked) == LOOKUPS_MAX)

    async with asyncio.timeout(10):
        assert await asyncio.get_running_loop().getaddrinfo("api.example", 443)

    names.is_answering.set()
    results = await asyncio.gather(*slow, return_exceptions=True)
    assert {type(result) for result in results} == {FetchFailed}
    await posts.close()


async def test_the_same_name_is_looked_up_once_at_a_time(names: Names) -> None:
    posts = Posts(seconds=0.2)
    results = await asyncio.gather(
        *(posts.post("https://slow.example/", b"", {}) for _ in range(10)), return_exceptions=True
    )
    assert {type(result) for result in results} == {FetchFailed}
    assert names.asked == {"slow.example": 1}
    names.is_answering.set()
    await posts.close()
