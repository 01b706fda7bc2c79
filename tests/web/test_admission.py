"""Requests of unknown senders are handled a few at a time; those of senders who proved a secret lately do not wait."""

import asyncio
import logging
import socket
from collections import Counter

import pytest
import uvloop
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from genlock.web import admission, server
from genlock.web.admission import KNOWN_SECRETS_MAX, SECRETS_PER_SENDER, KnownSecrets, UnknownSenders
from genlock.web.connection_pool import ConnectionPool
from genlock.web.server import ACCEPTED_PER_TURN, serving
from tests.changes import PATIENCE_SECONDS, poll_until
from tests.web.slow_endpoint import PIECE_BYTES, RIGHT, Endpoint, clients, head

SLOTS = 4


@pytest.fixture(autouse=True)
def few_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "SLOTS_MIN", 2)
    monkeypatch.setattr(admission, "SLOTS_MAX", SLOTS)
    monkeypatch.setattr(admission, "SUSPENDED_SECONDS", 60.0)


async def test_a_known_sender_is_served_while_unknown_senders_wait_for_each_other() -> None:
    endpoint = Endpoint()
    async with clients(endpoint) as send:
        assert b"answered" in await (await send(head("/first", RIGHT)))
        unknown = [await send(head("/slow")) for _ in range(SLOTS + 3)]
        await endpoint.wait_for("/slow", SLOTS)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert b"answered" in await (await send(head("/known", RIGHT)))
        assert endpoint.begun["/slow"] == SLOTS
        endpoint.answering.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert all(b"answered" in answer for answer in await asyncio.gather(*unknown))


async def test_a_secret_that_is_refused_is_not_known_any_more() -> None:
    endpoint = Endpoint()
    async with clients(endpoint) as send:
        endpoint.accepted.add("other")
        for secret in ("other", RIGHT):
            await (await send(head("/first", secret)))
        endpoint.accepted.remove(RIGHT)
        await (await send(head("/revoked", RIGHT)))
        for _ in range(SLOTS):
            await send(head("/slow"))
        await endpoint.wait_for("/slow", SLOTS)
        await send(head("/waits", RIGHT))
        await (await send(head("/known", "other")))
        assert endpoint.begun["/waits"] == 0
        endpoint.answering.set()
        await endpoint.wait_for("/waits", 1)


async def test_a_secret_stays_known_when_the_service_fails() -> None:
    endpoint = Endpoint()
    async with clients(endpoint) as send:
        await (await send(head("/first", RIGHT)))
        endpoint.accepted.remove(RIGHT)
        await (await send(head("/broken", RIGHT)))
        for _ in range(SLOTS):
            await send(head("/slow"))
        await endpoint.wait_for("/slow", SLOTS)
        await send(head("/known", RIGHT))
        await endpoint.wait_for("/known", 1)


async def test_downloads_that_are_paused_and_then_left_keep_no_slot() -> None:
    endpoint = Endpoint()
    async with serving(endpoint, "127.0.0.1", 0) as url:
        port = int(url.rpartition(":")[2])
        for number in range(1, 3 * SLOTS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=65_536)
            writer.write(head("/stream"))
            await endpoint.wait_for("piece", 2 * number)  # the second one waits until the client reads on
            await reader.readexactly(PIECE_BYTES)
            await endpoint.wait_for("reading", number)
            writer.transport.abort()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head("/other"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert b"answered" in await reader.read()
        writer.close()


async def test_requests_that_wait_long_for_something_else_leave_their_slots_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "SUSPENDED_SECONDS", 0.02)
    endpoint = Endpoint()
    async with clients(endpoint) as send:
        slow = [await send(head("/slow")) for _ in range(3 * SLOTS)]
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert b"answered" in await (await send(head("/other")))
        await endpoint.wait_for("/slow", 3 * SLOTS)
        endpoint.answering.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert all(b"answered" in answer for answer in await asyncio.gather(*slow))


async def test_a_probe_is_answered_while_all_slots_are_taken() -> None:
    endpoint = Endpoint()
    async with clients(endpoint) as send:
        for _ in range(SLOTS + 3):
            await send(head("/slow"))
        await endpoint.wait_for("/slow", SLOTS)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert b"answered" in await (await send(head("/health")))


async def test_a_sender_who_proves_a_secret_leaves_the_slot_to_others() -> None:
    endpoint = Endpoint()
    endpoint.accepted = {f"key {number}" for number in range(3 * SLOTS)}
    async with clients(endpoint) as send:
        for secret in endpoint.accepted:
            await send(head("/slow", secret))
        await endpoint.wait_for("/slow", 3 * SLOTS)


async def test_a_sender_who_sends_its_body_slowly_takes_no_slot() -> None:
    endpoint = Endpoint()
    async with clients(endpoint) as send:
        for _ in range(2 * SLOTS):
            await send(head("/body", more="Content-Length: 5\r\n") + b"abc")
        await endpoint.wait_for("waiting for a body", 2 * SLOTS)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert b"answered" in await (await send(head("/other")))
        assert endpoint.begun["/body"] == 0


async def test_a_stop_ends_requests_that_wait_for_a_slot_without_an_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "STOP_SECONDS", 0)
    endpoint = Endpoint()
    with caplog.at_level(logging.ERROR):
        async with serving(endpoint, "127.0.0.1", 0) as url:
            port = int(url.rpartition(":")[2])
            made = [await asyncio.open_connection("127.0.0.1", port) for _ in range(SLOTS + 2)]
            for _, writer in made:
                writer.write(head("/slow"))
            await endpoint.wait_for("/slow", SLOTS)
        for reader, writer in made:
            assert await reader.read() == b""
            writer.close()
    assert [record.exc_info for record in caplog.records if record.exc_info] == []
    assert endpoint.begun["/slow"] == SLOTS


async def test_whole_requests_wait_for_their_answer_until_there_are_far_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(admission, "SLOTS_MAX", 100)
    monkeypatch.setattr(admission, "FIRST_COST_SECONDS", 0.0001)
    endpoint, most = Endpoint(), 2 * (1 + ConnectionPool.ANSWERING_SHARE)
    async with clients(endpoint) as send, asyncio.timeout(PATIENCE_SECONDS):
        answers = []
        for number in range(1, most + 2):
            answers.append(await send(head("/slow")))
            await endpoint.wait_for("/slow", number)
        oldest, *others = await asyncio.gather(answers[0], _answered(endpoint, answers[1:]), return_exceptions=True)
        assert isinstance(oldest, ConnectionError) or oldest == b""
        assert others == [True]


async def _answered(endpoint: Endpoint, answers: list[asyncio.Task[bytes]]) -> bool:
    endpoint.answering.set()
    return all(b"answered" in answer for answer in await asyncio.gather(*answers))


async def test_requests_that_wait_for_nothing_are_handled_in_several_turns_of_the_event_loop() -> None:
    turn, in_turn = 0, Counter[int]()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        in_turn[turn] += 1
        await PlainTextResponse("answered", headers={"Connection": "close"})(scope, receive, send)

    async with serving(answer, "127.0.0.1", 0) as url:
        port, loop = int(url.rpartition(":")[2]), asyncio.get_running_loop()
        made = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5 * SLOTS)]

        def count_turn() -> None:
            nonlocal turn
            turn += 1
            if sum(in_turn.values()) < len(made):
                loop.call_soon(count_turn)

        for _, writer in made:
            writer.write(head("/"))
        loop.call_soon(count_turn)
        async with asyncio.timeout(PATIENCE_SECONDS):
            for reader, _ in made:
                await reader.readuntil(b"answered")
        assert max(in_turn.values()) <= SLOTS
        for _, writer in made:
            writer.close()


async def test_the_number_of_slots_follows_the_time_that_requests_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "SLOTS_MAX", 100)
    for seconds, slots in ((0.001, 5), (0.0001, 50), (5.0, admission.SLOTS_MIN)):
        senders = UnknownSenders()
        for _ in range(200):
            senders.learn(seconds)
        takes = [asyncio.create_task(senders.take(set())) for _ in range(101)]
        await asyncio.sleep(0)
        assert sum(task.done() for task in takes) == slots
        for task in takes:
            task.cancel()
        await asyncio.gather(*takes, return_exceptions=True)


async def test_a_slot_is_neither_lost_nor_given_twice() -> None:
    senders = UnknownSenders()
    for _ in range(SLOTS):
        assert await senders.take(set())
    places = set[asyncio.Future[bool]]()
    gone = asyncio.create_task(senders.take(places))
    cancelled = asyncio.create_task(senders.take(set()))
    next_one, last = (asyncio.create_task(senders.take(set())) for _ in range(2))
    await asyncio.sleep(0)
    for place in places:
        place.set_result(False)
    await gone
    senders.give_back()
    cancelled.cancel()  # after it was given the slot, and before it could go on
    await asyncio.gather(gone, cancelled, return_exceptions=True)
    assert gone.result() is False
    assert cancelled.cancelled()
    assert await next_one
    assert not last.done()
    senders.give_back()
    assert await last


async def test_a_request_that_has_begun_gets_the_next_slot() -> None:
    senders, order = UnknownSenders(), list[str]()
    for _ in range(SLOTS):
        await senders.take(set())

    async def take(name: str, *, is_begun: bool) -> None:
        await senders.take(set(), is_begun=is_begun)
        order.append(name)

    tasks = [asyncio.create_task(take(name, is_begun=name == "begun")) for name in ("first", "second", "begun")]
    await asyncio.sleep(0)
    for _ in tasks:
        senders.give_back()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert order == ["begun", "first", "second"]
    await asyncio.gather(*tasks)


async def test_a_client_that_leaves_while_it_waits_for_a_slot_gives_up_its_place() -> None:
    endpoint = Endpoint()
    async with serving(endpoint, "127.0.0.1", 0) as url:
        port = int(url.rpartition(":")[2])

        async def send(path: str) -> asyncio.StreamWriter:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head(path))
            return writer

        answered = [await send("/slow") for _ in range(SLOTS)]
        await endpoint.wait_for("/slow", SLOTS)
        handled = len(asyncio.all_tasks())
        left = [await send("/left") for _ in range(3)]
        await poll_until(lambda: len(asyncio.all_tasks()) == handled + len(left))
        for writer in left:
            writer.close()
        await poll_until(lambda: len(asyncio.all_tasks()) == handled)
        endpoint.answering.set()
        for writer in answered:
            writer.close()
    assert endpoint.begun["/left"] == 0


def test_a_sender_with_many_secrets_replaces_only_its_own() -> None:
    secrets = KnownSecrets()
    secrets.add(-1, "account 1")
    secrets.add(-2)
    for number in range(KNOWN_SECRETS_MAX + 1):
        secrets.add(number, "account 2")
    assert [-1 in secrets, -2 in secrets] == [True, True]
    assert sum(number in secrets for number in range(KNOWN_SECRETS_MAX + 1)) == SECRETS_PER_SENDER
    for number in range(KNOWN_SECRETS_MAX):
        secrets.discard(number)
        secrets.add(number, f"account {number}")
    assert -1 not in secrets


def test_the_key_of_a_request_is_its_secret_whatever_other_headers_come_first() -> None:
    secrets, key = KnownSecrets(), (b"authorization", b"Bearer x")
    assert secrets.find([(b"cookie", b"1"), key]) == secrets.find([key, (b"cookie", b"2")]) == secrets.find([key])


def test_the_oldest_known_secrets_make_room_for_new_ones() -> None:
    secrets = KnownSecrets()
    for number in range(KNOWN_SECRETS_MAX):
        secrets.add(number, f"account {number}")
    secrets.add(0, "account 0")
    secrets.add(-1)
    assert [number in secrets for number in (0, 1, 2, -1, None)] == [True, False, True, True, False]


def test_a_flood_of_connections_is_accepted_in_few_turns_of_the_event_loop() -> None:
    async def count_turns() -> tuple[int, int]:
        accepted, turns = Counter[str](), 0

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            accepted["requests"] += 1
            await PlainTextResponse("answered")(scope, receive, send)

        async with serving(answer, "127.0.0.1", 0) as url:
            port = int(url.rpartition(":")[2])
            made = [socket.create_connection(("127.0.0.1", port)) for _ in range(20 * ACCEPTED_PER_TURN)]
            last = made[-1]
            last.sendall(head("/"))
            while not accepted["requests"]:
                turns += 1
                await asyncio.sleep(0)
            for connection in made:
                connection.close()
        return len(made), turns

    connections, turns = uvloop.run(count_turns())  # as in the service
    assert turns < connections / 4
