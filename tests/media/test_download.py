"""Downloads go to public addresses only, whatever names, IP addresses and redirects state, and have limits."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from genlock.media import download
from genlock.media.download import AddressRefused, Downloads, FetchFailed, TooLarge, is_public
from tests.media.file_server import FileServer, running_file_server

LIMIT = 1_000_000


@pytest.fixture
async def files() -> AsyncIterator[FileServer]:
    async with running_file_server() as running:
        yield running


@pytest.fixture
async def downloads(files: FileServer) -> AsyncIterator[Downloads]:
    """Only the file server's own host and port are allowed on this machine."""
    made = Downloads(private=[files.host])
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
        "0.0.0.0",  # noqa: S104 - a private address
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
def test_private_and_special_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_addresses_on_the_internet_are_public(address: str) -> None:
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
        "http://１２７.0.0.1/",  # noqa: RUF001 - digits of another script
        "http://168.63.129.16/",
    ],
)
async def test_other_schemes_and_private_hosts_are_refused(downloads: Downloads, url: str) -> None:
    with pytest.raises(AddressRefused):
        await downloads.peek(url)
    with pytest.raises(AddressRefused):
        await fetch(downloads, url)


@pytest.mark.parametrize("host", ["a..example.org", ".example.org", "a" * 64 + ".example.org"])
async def test_a_name_that_cannot_be_looked_up_is_refused(downloads: Downloads, files: FileServer, host: str) -> None:
    async def moved(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": f"https://{host}/a.png"})

    for url in (f"https://{host}/a.png", files.serve("moved", moved)):
        with pytest.raises(AddressRefused, match="host name"):
            await downloads.peek(url)


async def test_an_allowed_host_is_allowed_on_its_port_only(downloads: Downloads, files: FileServer) -> None:
    async with running_file_server() as other:
        with pytest.raises(AddressRefused):
            await fetch(downloads, other.put("a", b"secret"))
        assert other.requested == []
    assert await fetch(downloads, files.put("a", b"content")) == b"content"


@pytest.mark.parametrize("host", ["①②⑦.⓪.⓪.①", "127。0。0。1", "１２７.0.0.1"])  # noqa: RUF001 - digits of another script
async def test_digits_of_other_scripts_do_not_bypass_the_check(
    downloads: Downloads, files: FileServer, host: str
) -> None:
    async with running_file_server() as inside:
        secret = inside.put("secret", b"secret").replace("127.0.0.1", host)

        async def elsewhere(_: web.Request) -> web.Response:
            return web.Response(status=302, headers={"Location": secret})

        for url in (secret, files.serve("a", elsewhere)):
            with pytest.raises(AddressRefused):
                await fetch(downloads, url)
        assert inside.requested == []


async def test_no_request_is_sent_to_a_private_peer(files: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second check works even if the first one let the address pass."""
    monkeypatch.setattr(download, "check_target", lambda *_: None)
    made = Downloads()
    with pytest.raises(AddressRefused):
        await fetch(made, files.put("a", b"secret"))
    assert files.requested == []
    await made.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_a_private_address_is_refused(downloads: Downloads, files: FileServer, status: int) -> None:
    async with running_file_server() as inside:
        secret = inside.put("secret", b"secret")

        async def elsewhere(_: web.Request) -> web.Response:
            return web.Response(status=status, headers={"Location": secret})

        with pytest.raises(AddressRefused):
            await fetch(downloads, files.serve("a", elsewhere))
        assert inside.requested == []


async def test_a_redirect_to_another_scheme_is_refused(downloads: Downloads, files: FileServer) -> None:
    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "file:///etc/passwd"})

    with pytest.raises(AddressRefused):
        await fetch(downloads, files.serve("a", elsewhere))


async def test_redirects_are_followed_up_to_a_limit(downloads: Downloads, files: FileServer) -> None:
    files.put("end", b"content")

    async def step(request: web.Request) -> web.Response:
        left = int(request.query["left"])
        place = f"/step?left={left - 1}" if left else "end"
        return web.Response(status=302, headers={"Location": place})

    url = files.serve("step", step)
    assert await fetch(downloads, f"{url}?left=3") == b"content"
    with pytest.raises(FetchFailed, match="redirects"):
        await fetch(downloads, f"{url}?left=20")


async def test_a_name_that_resolves_differently_later_reaches_no_private_host(
    downloads: Downloads, files: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the name is resolved once, and the connection uses the address that was checked."""
    answers = ["93.184.216.34", "127.0.0.1", "127.0.0.1"]
    asked: list[str] = []
    connected: list[Any] = []
    port = int(files.url.rpartition(":")[2])
    loop = asyncio.get_running_loop()

    def rebinding(host: str, port: int, *_: object) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers[len(asked) - 1], port))]

    async def connect(_: socket.socket, address: Any) -> None:
        connected.append(address)
        raise OSError("no internet here")

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    monkeypatch.setattr(loop, "sock_connect", connect)
    with pytest.raises(FetchFailed):
        await fetch(downloads, f"http://rebind.example:{port}/a")
    assert asked == ["rebind.example"]
    assert connected == [("93.184.216.34", port)]
    with pytest.raises(AddressRefused):
        await fetch(downloads, f"http://rebind.example:{port}/a")


async def test_a_name_with_one_private_address_is_refused(
    downloads: Downloads, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mixed(_: str, port: int, *__: object) -> list[Any]:
        places = ("93.184.216.34", "10.0.0.1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port)) for place in places]

    monkeypatch.setattr(socket, "getaddrinfo", mixed)
    with pytest.raises(AddressRefused):
        await fetch(downloads, "https://mixed.example/a")


async def test_a_download_over_the_limit_stops_early(downloads: Downloads, files: FileServer) -> None:
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
        await fetch(downloads, files.serve("endless", endless))
    with pytest.raises(TooLarge):
        await fetch(downloads, files.put("large", b"x" * (LIMIT + 1)))
    assert sent < 20 * LIMIT


async def test_a_server_that_sends_too_slowly_is_given_up(
    downloads: Downloads, files: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "PEEK_SECONDS", 0.1)
    monkeypatch.setattr(download, "FETCH_SECONDS", 0.1)

    async def slow(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"x")
            await asyncio.sleep(0.01)

    url = files.serve("slow", slow)
    with pytest.raises(FetchFailed, match="seconds"):
        await downloads.peek(url)
    with pytest.raises(FetchFailed, match="seconds"):
        await fetch(downloads, url)


async def test_an_incomplete_body_is_a_failure(downloads: Downloads, files: FileServer) -> None:
    async def half(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": "200000"})
        await answer.prepare(request)
        await answer.write(b"x" * 100_000)
        assert request.transport is not None
        request.transport.abort()
        return answer

    with pytest.raises(FetchFailed):
        await fetch(downloads, files.serve("half", half))


async def test_a_compressed_body_is_refused(downloads: Downloads, files: FileServer) -> None:
    """A small compressed body could expand beyond every limit."""

    async def packed(_: web.Request) -> web.Response:
        return web.Response(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})

    with pytest.raises(FetchFailed, match="compressed"):
        await fetch(downloads, files.serve("packed", packed))


@pytest.mark.parametrize(("status", "missing"), [(404, True), (410, True), (403, True), (429, False), (503, False)])
async def test_a_missing_file_is_distinguished_from_a_failing_server(
    downloads: Downloads, files: FileServer, status: int, *, missing: bool
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status)

    with pytest.raises(FetchFailed) as failed:
        await downloads.peek(files.serve("a", answer))
    assert failed.value.missing is missing


async def test_a_peek_reads_only_the_beginning(downloads: Downloads, files: FileServer) -> None:
    peeked = await downloads.peek(files.put("a.bin", bytes(range(256)) * 10_000, "video/mp4"))
    assert (len(peeked.head), peeked.size, peeked.content_type) == (65_536, 2_560_000, "video/mp4")
    assert not peeked.public
    assert files.user_agents == {"Mozilla/5.0 (compatible; genlock)"}
