"""Downloads go to public addresses only, whatever names, numbers and redirects say, and never without limits."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from genlock.media import download
from genlock.media.download import AddressRefused, Downloads, FetchFailed, TooLarge, is_public
from tests.channels.telegram.house import Shelf, running_shelf

LIMIT = 1_000_000


@pytest.fixture
async def shelf() -> AsyncIterator[Shelf]:
    async with running_shelf() as running:
        yield running


@pytest.fixture
async def downloads(shelf: Shelf) -> AsyncIterator[Downloads]:
    """The shelf's own address is allowed; no other on this machine is."""
    made = Downloads(private=[shelf.url.removeprefix("http://")])
    yield made
    await made.close()


async def fetch(downloads: Downloads, url: str, limit: int = LIMIT) -> bytes:
    async with downloads.fetch(url, limit) as fetched:
        content = fetched.file.read()
        assert len(content) == fetched.size
        assert content.startswith(fetched.head)
        return content


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.9.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - one of those that nobody may reach
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "2001:db8::1",
        "192.0.0.192",
        "fec0::1",
        "3fff::1",
        "168.63.129.16",
        "::ffff:168.63.129.16",
    ],
)
def test_what_is_not_out_on_the_internet_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_what_is_out_there_is(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.com/a",
        "gopher://x",
        "javascript:alert(1)",
        "https://",
        "//x",
        "",
        "http://[::1",
        "http://localhost/",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[fe80::1%25eth0]/",
        "http://169.254.169.254/latest/meta-data",
        "http://user@127.0.0.1/",
        "http://①②⑦.⓪.⓪.①/",
        "http://127。0。0。1/",
        "http://１２７.0.0.1/",  # noqa: RUF001 - that is the point
        "http://168.63.129.16/",
    ],
)
async def test_nobody_goes_where_results_cannot_be(downloads: Downloads, url: str) -> None:
    with pytest.raises(AddressRefused):
        await downloads.look(url)
    with pytest.raises(AddressRefused):
        await fetch(downloads, url)


async def test_an_allowed_host_is_allowed_on_its_port_only(downloads: Downloads, shelf: Shelf) -> None:
    async with running_shelf() as other:
        with pytest.raises(AddressRefused):
            await fetch(downloads, other.put("a", b"secret"))
        assert other.asked == []
    assert await fetch(downloads, shelf.put("a", b"content")) == b"content"


@pytest.mark.parametrize("host", ["①②⑦.⓪.⓪.①", "127。0。0。1", "１２７.0.0.1"])  # noqa: RUF001 - that is the point
async def test_digits_of_other_scripts_reach_nothing(downloads: Downloads, shelf: Shelf, host: str) -> None:
    async with running_shelf() as inside:
        secret = inside.put("secret", b"secret").replace("127.0.0.1", host)

        async def elsewhere(_: web.Request) -> web.Response:
            return web.Response(status=302, headers={"Location": secret})

        for url in (secret, shelf.serve("a", elsewhere)):
            with pytest.raises(AddressRefused):
                await fetch(downloads, url)
        assert inside.asked == []


async def test_whoever_answers_from_inside_is_not_read(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the address passed for a public one."""
    monkeypatch.setattr(Downloads, "_check", lambda *_: None)
    made = Downloads()
    with pytest.raises(AddressRefused):
        await fetch(made, shelf.put("a", b"secret"))
    assert shelf.asked == []
    await made.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_a_private_address_is_refused(downloads: Downloads, shelf: Shelf, status: int) -> None:
    async with running_shelf() as inside:
        secret = inside.put("secret", b"secret")

        async def elsewhere(_: web.Request) -> web.Response:
            return web.Response(status=status, headers={"Location": secret})

        with pytest.raises(AddressRefused):
            await fetch(downloads, shelf.serve("a", elsewhere))
        assert inside.asked == []


async def test_a_redirect_to_another_scheme_is_refused(downloads: Downloads, shelf: Shelf) -> None:
    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "file:///etc/passwd"})

    with pytest.raises(AddressRefused):
        await fetch(downloads, shelf.serve("a", elsewhere))


async def test_redirects_are_followed_but_not_for_ever(downloads: Downloads, shelf: Shelf) -> None:
    shelf.put("end", b"content")

    async def step(request: web.Request) -> web.Response:
        left = int(request.query["left"])
        place = f"/step?left={left - 1}" if left else "end"
        return web.Response(status=302, headers={"Location": place})

    url = shelf.serve("step", step)
    assert await fetch(downloads, f"{url}?left=3") == b"content"
    with pytest.raises(FetchFailed, match="redirects"):
        await fetch(downloads, f"{url}?left=20")


async def test_a_name_that_changes_its_mind_reaches_nothing(
    downloads: Downloads, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: public when it is checked, private when it is used. It is asked once, and that answer is used."""
    answers = ["93.184.216.34", "127.0.0.1", "127.0.0.1"]
    asked: list[str] = []
    connected: list[Any] = []
    port = int(shelf.url.rpartition(":")[2])
    loop = asyncio.get_running_loop()

    async def rebinding(host: str, port: int, **_: object) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers[len(asked) - 1], port))]

    async def connect(_: socket.socket, address: Any) -> None:
        connected.append(address)
        raise OSError("no internet here")

    monkeypatch.setattr(loop, "getaddrinfo", rebinding)
    monkeypatch.setattr(loop, "sock_connect", connect)
    with pytest.raises(FetchFailed):
        await fetch(downloads, f"http://rebind.example:{port}/a")
    assert asked == ["rebind.example"]
    assert connected == [("93.184.216.34", port)]
    with pytest.raises(AddressRefused):
        await fetch(downloads, f"http://rebind.example:{port}/a")


async def test_one_private_answer_among_public_ones_is_enough(
    downloads: Downloads, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def mixed(_: str, port: int, **__: object) -> list[Any]:
        places = ("93.184.216.34", "10.0.0.1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port)) for place in places]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", mixed)
    with pytest.raises(AddressRefused):
        await fetch(downloads, "https://mixed.example/a")


async def test_what_is_larger_than_it_may_be_is_left_as_soon_as_that_is_known(
    downloads: Downloads, shelf: Shelf
) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        answer = web.StreamResponse()
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        while True:
            await answer.write(b"x" * 65_536)
            sent += 65_536

    with pytest.raises(TooLarge):
        await fetch(downloads, shelf.serve("endless", endless))
    with pytest.raises(TooLarge):
        await fetch(downloads, shelf.put("large", b"x" * (LIMIT + 1)))
    assert sent < 20 * LIMIT


async def test_who_sends_too_slowly_is_left(
    downloads: Downloads, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(download, "FETCH_SECONDS", 0.1)

    async def slow(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(200):
            await answer.write(b"x")
            await asyncio.sleep(0.01)
        return answer

    url = shelf.serve("slow", slow)
    with pytest.raises(FetchFailed, match="seconds"):
        await downloads.look(url)
    with pytest.raises(FetchFailed, match="seconds"):
        await fetch(downloads, url)


async def test_half_a_file_is_no_file(downloads: Downloads, shelf: Shelf) -> None:
    async def half(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": "200000"})
        await answer.prepare(request)
        await answer.write(b"x" * 100_000)
        assert request.transport is not None
        request.transport.abort()
        return answer

    with pytest.raises(FetchFailed):
        await fetch(downloads, shelf.serve("half", half))


async def test_what_is_packed_is_not_unpacked(downloads: Downloads, shelf: Shelf) -> None:
    """A small file that unpacks into a very large one would find no limit."""

    async def packed(_: web.Request) -> web.Response:
        return web.Response(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})

    with pytest.raises(FetchFailed, match="packs"):
        await fetch(downloads, shelf.serve("packed", packed))


@pytest.mark.parametrize(("status", "missing"), [(404, True), (410, True), (403, True), (429, False), (503, False)])
async def test_what_is_not_there_is_told_from_a_server_that_is_ill(
    downloads: Downloads, shelf: Shelf, status: int, *, missing: bool
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status)

    with pytest.raises(FetchFailed) as failed:
        await downloads.look(shelf.serve("a", answer))
    assert failed.value.missing is missing


async def test_a_look_reads_the_beginning_only(downloads: Downloads, shelf: Shelf) -> None:
    look = await downloads.look(shelf.put("a.bin", bytes(range(256)) * 10_000, "video/mp4"))
    assert (len(look.head), look.size, look.content_type) == (65_536, 2_560_000, "video/mp4")
    assert not look.public
    assert shelf.agents == {"Mozilla/5.0 (compatible; genlock)"}
