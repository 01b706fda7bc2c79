"""The server closes connections that send no whole request in time, and serves the others."""

import asyncio
import gc
import select
import socket
import termios
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from genlock.web import connections, server
from genlock.web.server import serving
from tests.changes import PATIENCE_SECONDS, Changes, poll_until
from tests.loop_clock import LoopClock

GET = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
SECONDS = 0.3
#: more than kernels buffer for a client that does not read
PAGE_BYTES = 500_000


async def answer(request: Request) -> PlainTextResponse:
    await request.body()
    return PlainTextResponse("served")


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 5)
    web = Starlette(routes=[Route("/slow", answer, methods=["GET", "POST"])])
    async with serving(web, "127.0.0.1", 0) as url:
        yield int(url.rpartition(":")[2])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", SECONDS)
    monkeypatch.setattr(connections, "BODY_SECONDS", SECONDS)


async def send(port: int, *chunks: bytes) -> bytes:
    """Return what the server sends until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await reader.read()
    finally:
        writer.close()


async def test_an_answer_does_not_name_the_server_software(port: int) -> None:
    request, answered = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), b""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while b"date:" not in answered:  # the server has its own headers a moment after it accepts connections
            answered = (await send(port, request)).lower()

    assert b"server:" not in answered
    assert b"uvicorn" not in answered


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "request_bytes",
    [
        b"",
        b"GET /slow HTTP/1.1\r\nHost: x\r\nA: ",
        b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab",
    ],
)
async def test_a_connection_without_a_whole_request_is_closed(port: int, request_bytes: bytes) -> None:
    assert b"served" not in await send(port, request_bytes)


@pytest.mark.usefixtures("impatient")
async def test_a_connection_that_sends_its_request_too_slowly_is_closed(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(GET[:-2])
    closed = asyncio.create_task(reader.read())
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not closed.done():
            writer.write(b"A: b\r\n")
            await asyncio.wait([closed], timeout=0.05)
    assert isinstance(closed.exception(), ConnectionError) or closed.result() == b""
    writer.close()


async def test_an_answer_that_takes_longer_than_a_request_may_and_the_next_one_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 5.0)
    monkeypatch.setattr(connections, "BODY_SECONDS", 5.0)
    loop_clock = LoopClock()
    close = GET.replace(b"Host: x", b"Host: x\r\nConnection: close")

    async def slow(_: Request) -> PlainTextResponse:
        loop_clock.advance(6.0)
        for _turn in range(3):
            await asyncio.sleep(0)  # every timer that is over fires
        return PlainTextResponse("served")

    async with serving(Starlette(routes=[Route("/slow", slow)]), "127.0.0.1", 0) as url:
        assert (await send(int(url.rpartition(":")[2]), GET, close)).count(b"served") == 2


# unauthenticated senders


async def unread(port: int, more: bytes) -> socket.socket:
    """Ask for a page of a megabyte, and wait until its beginning has come, without reading it."""
    loop, client = asyncio.get_running_loop(), socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(0)
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, b"GET /page HTTP/1.1\r\nHost: x\r\n" + more + b"\r\n")
    arrived = asyncio.Event()
    loop.add_reader(client, arrived.set)
    await arrived.wait()
    loop.remove_reader(client)
    return client


async def rest_of(client: socket.socket) -> int:
    """Return how many bytes of the page the client still gets. Raises ConnectionResetError."""
    loop, size = asyncio.get_running_loop(), 0
    while piece := await loop.sock_recv(client, 65_536):
        size += len(piece)
    return size


@pytest.mark.parametrize("more", [b"", b"Connection: close\r\n"])
async def test_connections_of_clients_that_do_not_read_give_way_and_leave_nothing_in_the_kernel(
    monkeypatch: pytest.MonkeyPatch, more: bytes
) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 5)
    page = PlainTextResponse(b"x" * PAGE_BYTES)
    async with (
        serving(Starlette(routes=[Route("/page", lambda _: page)]), "127.0.0.1", 0) as url,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        port = int(url.rpartition(":")[2])
        clients = [await unread(port, more) for _ in range(10)]
        for client in clients[:5]:
            with pytest.raises(ConnectionResetError):
                await rest_of(client)
        if more:
            for client in clients[5:]:
                assert await rest_of(client) > PAGE_BYTES, "with its head"
        for client in clients:
            client.close()


@pytest.mark.parametrize("more", [b"", b"Connection: close\r\n"])
async def test_a_stop_waits_only_a_moment_for_a_client_that_does_not_read(
    monkeypatch: pytest.MonkeyPatch, more: bytes
) -> None:
    monkeypatch.setattr(server, "STOP_SECONDS", 2 * PATIENCE_SECONDS)
    page = PlainTextResponse(b"x" * PAGE_BYTES)
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with serving(Starlette(routes=[Route("/page", lambda _: page)]), "127.0.0.1", 0) as url:
            client = await unread(int(url.rpartition(":")[2]), more)
        with pytest.raises(ConnectionResetError):
            await rest_of(client)
    client.close()


async def test_a_client_that_reads_slowly_gets_the_whole_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one of HTTP/1.0: the connection closes behind the answer."""
    monkeypatch.setattr(server, "KEEP_ALIVE_SECONDS", SECONDS)
    page, size = PlainTextResponse(b"x" * PAGE_BYTES), 0
    async with (
        serving(Starlette(routes=[Route("/page", lambda _: page)]), "127.0.0.1", 0) as url,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        client = await unread(int(url.rpartition(":")[2]), b"Connection: close\r\n")
        while piece := await asyncio.get_running_loop().sock_recv(client, PAGE_BYTES // 20):
            size += len(piece)
            await asyncio.sleep(SECONDS / 4)  # its line is slow
        client.close()

    assert size > PAGE_BYTES, "with its head"


@pytest.mark.skipif(not hasattr(termios, "TIOCOUTQ"), reason="the kernel does not say what the client has not read")
async def test_what_the_kernel_has_of_an_answer_is_sent_also_after_a_stop() -> None:
    small = server.UNSENT_BYTES_MAX // 2
    page = PlainTextResponse(b"x" * small)
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with serving(Starlette(routes=[Route("/page", lambda _: page)]), "127.0.0.1", 0) as url:
            client = await unread(int(url.rpartition(":")[2]), b"")
        assert await rest_of(client) > small, "with its head"
    client.close()


async def test_nothing_that_follows_the_last_answer_of_a_connection_is_handled() -> None:
    """Its answer could not be sent."""
    page = PlainTextResponse(b"x" * PAGE_BYTES, headers={"Connection": "close"})
    handled = []

    async def handle(request: Request) -> PlainTextResponse:
        handled.append(request.method)
        return page

    async with (
        serving(Starlette(routes=[Route("/page", handle, methods=["GET", "PUT"])]), "127.0.0.1", 0) as url,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        pipelined = b"\r\nPUT /page HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
        client = await unread(int(url.rpartition(":")[2]), pipelined)
        await asyncio.get_running_loop().sock_sendall(client, b"PUT /page HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await rest_of(client) > PAGE_BYTES
        client.close()

    assert handled == ["GET"]


def unacknowledged(port: int) -> list[int]:
    """Return how many bytes the kernel keeps for each connection of a server."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    established = "01"
    return [
        int(line[4].partition(":")[0], 16)
        for line in lines
        if int(line[1].rpartition(":")[2], 16) == port and line[3] == established
    ]


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux says what its kernel keeps")
async def test_the_kernel_keeps_little_of_a_download_that_is_not_read_any_more() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield b"x" * 65_536

    def read_fast(port: int) -> socket.socket:
        client, size = socket.create_connection(("127.0.0.1", port)), 0
        client.sendall(GET)
        while size < 100_000_000:
            size += len(client.recv(1 << 20))
        return client

    web = Starlette(routes=[Route("/slow", lambda _: StreamingResponse(pieces()))])
    async with serving(web, "127.0.0.1", 0) as url:
        own_port = int(url.rpartition(":")[2])
        client = await asyncio.to_thread(read_fast, own_port)
        kept = [-1]
        while (now := unacknowledged(own_port)) != kept:  # until the client's own buffer is full
            kept = now
            await asyncio.sleep(0.1)
        client.close()

    assert 0 < kept[0] < 4 * server.UNSENT_BYTES_MAX


async def test_a_closed_connection_whose_client_never_reads_is_dropped_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "KEEP_ALIVE_SECONDS", SECONDS)
    page = PlainTextResponse(b"x" * PAGE_BYTES)
    async with (
        serving(Starlette(routes=[Route("/page", lambda _: page)]), "127.0.0.1", 0) as url,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        client = await unread(int(url.rpartition(":")[2]), b"Connection: close\r\n")
        dropped = select.poll()
        dropped.register(client, 0)  # only errors
        await poll_until(lambda: bool(dropped.poll(0)))
        with pytest.raises(ConnectionResetError):
            await rest_of(client)
        client.close()


async def test_the_oldest_idle_connection_gives_way_to_a_new_one(port: int) -> None:
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
    close = GET.replace(b"Host: x", b"Host: x\r\nConnection: close")
    assert b"served" in await send(port, close), "the limit of connections is reached, and the new one is served"
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await closes(held[0][0])
    assert not any(reader.at_eof() for reader, _ in held[1:])
    for _, writer in held:
        writer.close()


async def test_an_answered_connection_waits_for_over_a_minute_and_gives_way_to_new_ones(port: int) -> None:
    """Load balancers and clients keep connections for a minute, and meet a reset if we close one that they use."""
    loop_clock = LoopClock()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(GET)
        await reader.readuntil(b"served")
        loop_clock.advance(70.0)
        for _turn in range(3):
            await asyncio.sleep(0)  # every timer that is over fires
    assert not reader.at_eof()
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await closes(reader)
    for _, other in held:
        other.close()
    writer.close()


async def closes(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


async def test_the_connection_that_holds_most_is_closed_when_the_shared_memory_is_used_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "UNAUTHENTICATED_BYTES_MAX", 5_000)
    received, arrived = 0, Changes()

    async def count(request: Request) -> PlainTextResponse:
        nonlocal received
        before = received
        async for chunk in request.stream():
            received += len(chunk)
            arrived.note()
        return PlainTextResponse(str(received - before))

    web = Starlette(routes=[Route("/slow", count, methods=["POST"])])
    async with serving(web, "127.0.0.1", 0) as url:
        large, small = [await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2])) for _ in range(2)]
        large[1].write(POST % 4000 + b"a" * 3000)
        await arrived.until(lambda: received == 3000)
        small[1].write(POST % 2000 + b"a" * 1900)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await closes(large[0])
            small[1].write(b"a" * 100)
            assert b"2000" in await small[0].readuntil(b"2000")
        large[1].close()
        small[1].close()


async def body_of(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


POST = b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST /slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS_HEADS = {
    "a long header": (b"GET /slow HTTP/1.1\r\nA: ", b"a" * 8000),
    "a long URL": (b"GET /", b"a" * 8000),
    "many headers": (b"GET /slow HTTP/1.1\r\n", b"a:b\r\n" * 200),
    "a chunk extension": (CHUNKED + b"1;", b"a" * 8000),
    "trailers": (CHUNKED + b"1\r\na\r\n0\r\n", b"a:b\r\n" * 200),
    "one-byte chunks": (CHUNKED, b"1\r\na\r\n" * 2000),
    "pipelined requests": (b"", GET * 100),
}


async def test_a_head_without_end_is_refused_after_16_kb() -> None:
    web = Starlette(routes=[Route("/slow", body_of, methods=["GET", "POST"])])
    taken: dict[str, int] = {}
    async with serving(web, "127.0.0.1", 0) as url:
        for name, (beginning, repeated) in ENDLESS_HEADS.items():
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            writer.write(beginning)
            closed = asyncio.create_task(closes(reader))
            taken[name] = 0
            while not closed.done() and taken[name] < 2_000_000:
                writer.write(repeated)
                taken[name] += len(repeated)
                await asyncio.wait([closed], timeout=0.002)
            writer.close()
            await closed
    assert {name: number for name, number in taken.items() if number > 400_000} == {}


@pytest.mark.parametrize(("size", "status"), [(7_900, b"200"), (8_100, b"414")])
async def test_a_long_url_is_refused_before_it_is_decoded(port: int, size: int, status: bytes) -> None:
    long = b"GET /slow?" + b"%41" * (size // 3) + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answered = await send(port, long)
    assert answered.startswith(b"HTTP/1.1 " + status)
    assert answered.count(b"HTTP/1.1") == 1


async def test_a_sender_with_a_secret_may_send_a_body_in_thousands_of_chunks() -> None:
    async def authenticated(request: Request) -> PlainTextResponse:
        request.scope["extensions"][connections.AUTHENTICATED]()
        return PlainTextResponse(str(len(await request.body())))

    chunked = CHUNKED.replace(b"Host: x", b"Host: x\r\nConnection: close")
    chunks = b"64\r\n" + b"a" * 100 + b"\r\n"
    async with serving(Starlette(routes=[Route("/slow", authenticated, methods=["POST"])]), "127.0.0.1", 0) as url:
        answered = await send(int(url.rpartition(":")[2]), chunked, *([chunks * 100] * 50), b"0\r\n\r\n")
    assert answered.endswith(b"500000")


async def test_empty_lines_do_not_keep_a_connection_open(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b"\r\n\r\nNot Found")
    monkeypatch.setattr(connections, "HEAD_SECONDS", SECONDS)
    closed = asyncio.create_task(closes(reader))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not closed.done():
            writer.write(b"\r\n")
            await asyncio.wait([closed], timeout=0.05)
    writer.close()


# memory of requests that are over


def heads_in_memory() -> list[int]:
    """Return the sizes of the query strings and URLs that live requests and connections hold."""
    held = [
        instance
        for instance in gc.get_objects()
        if isinstance(instance, RequestResponseCycle | connections.HttpProtocol)
    ]
    texts = [instance.scope.get("query_string", b"") for instance in held if isinstance(instance, RequestResponseCycle)]
    texts += [getattr(instance, "url", b"") for instance in held if isinstance(instance, connections.HttpProtocol)]
    return [len(text) for text in texts if text]


async def until_gone(request: Request) -> PlainTextResponse:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return PlainTextResponse("gone")


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("ending", ["closed by the client", "reset by the client", "kept open", "closed to make room"])
async def test_the_head_of_a_request_that_is_over_is_freed_at_once(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when garbage is collected: a flood of long heads would take hundreds of megabytes until then."""
    monkeypatch.setattr(server, "UNAUTHENTICATED_BYTES_MAX", 18_000)
    is_answered = ending != "closed to make room"
    writers = []
    async with serving(
        Starlette(routes=[Route("/slow", answer if is_answered else until_gone)]), "127.0.0.1", 0
    ) as url:
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            writers.append(writer)
            writer.write(GET.replace(b"/slow", b"/slow?" + b"a" * 7_000))
            async with asyncio.timeout(PATIENCE_SECONDS):
                if is_answered:
                    await reader.readuntil(b"served")
            if ending == "closed by the client":
                writer.close()
            if ending == "reset by the client":
                writer.transport.abort()
        await poll_until(lambda: len(heads_in_memory()) == (0 if is_answered else 2))
        for writer in writers:
            writer.close()


async def test_a_body_in_many_pieces_is_refused_before_its_sender_is_authenticated(port: int) -> None:
    pieces = connections.PIECES_MAX + 1
    assert b"400 Bad Request" in await send(port, CHUNKED + b"1\r\na\r\n" * pieces)
    assert b"served" in await send(
        port, CHUNKED.replace(b"Host: x", b"Host: x\r\nConnection: close") + b"1\r\na\r\n" * (pieces - 1) + b"0\r\n\r\n"
    )


async def test_a_thousand_senders_that_connect_at_once_are_all_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 120.0)  # the first one sends nothing until the last one is there
    web = Starlette(routes=[Route("/slow", answer, methods=["POST"])])
    async with serving(web, "127.0.0.1", 0) as url:
        port = int(url.rpartition(":")[2])
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(1000)]
        try:
            for _, writer in opened:
                writer.write(b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
            async with asyncio.timeout(60):
                answers = await asyncio.gather(*(reader.read() for reader, _ in opened), return_exceptions=True)
        finally:
            for _, writer in opened:
                writer.close()

    assert [response for response in answers if not isinstance(response, bytes) or b" 200 " not in response] == []


UPGRADE = b"HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"


@pytest.mark.parametrize(
    "framed",
    [
        b"Content-Length: %d\r\n\r\n%s" % (len(GET), GET),
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(GET), GET),
    ],
)
async def test_the_body_of_a_request_to_change_the_protocol_is_never_taken_for_a_request(
    port: int, framed: bytes
) -> None:
    head, body = framed.split(b"\r\n\r\n", 1)
    answers = await send(port, b"POST /slow " + UPGRADE + head + b"\r\n\r\n", body)

    assert answers.startswith(b"HTTP/1.1 400 ")
    assert answers.count(b"HTTP/1.1 ") == 1


async def test_a_request_to_change_the_protocol_without_a_body_is_served_as_the_last_one(port: int) -> None:
    answers = await send(port, b"GET /slow " + UPGRADE + b"\r\n" + GET)

    assert answers.endswith(b"served")
    assert (answers.count(b"HTTP/1.1 "), answers.lower().count(b"connection: close")) == (1, 1)


async def test_a_body_that_arrives_after_its_answer_does_not_delay_the_next_request(port: int) -> None:
    """Many clients send head and body apart, and the answer may not need the body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /unknown HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\nNot Found")).startswith(b"HTTP/1.1 404 ")
    writer.write(b"x" * 20_000 + GET)

    async with asyncio.timeout(PATIENCE_SECONDS):  # the server would close the connection before
        assert (await reader.readuntil(b"served")).startswith(b"HTTP/1.1 200 ")
    writer.close()


async def test_a_connection_whose_body_came_after_the_answer_waits_for_over_a_minute_too(port: int) -> None:
    loop_clock = LoopClock()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /unknown HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n")
    await reader.readuntil(b"\r\n\r\nNot Found")
    [served] = [item for item in gc.get_objects() if isinstance(item, connections.HttpProtocol) and item.scope]
    writer.write(b"x" * 9000)
    await poll_until(lambda: not served.scope)
    loop_clock.advance(70.0)
    for _turn in range(3):
        await asyncio.sleep(0)  # every timer that is over fires

    writer.write(GET)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await reader.readuntil(b"served")
    writer.close()


async def test_what_follows_a_body_does_not_become_a_header_of_the_request() -> None:
    async def echo(request: Request) -> PlainTextResponse:
        await request.body()
        return PlainTextResponse(request.headers.get("a", "none"))

    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    wire = head + b"1\r\na\r\n0\r\nA: b\r\n\r\n"
    async with serving(Starlette(routes=[Route("/", echo, methods=["POST"])]), "127.0.0.1", 0) as url:
        assert (await send(int(url.rpartition(":")[2]), wire)).endswith(b"\r\n\r\nnone")
