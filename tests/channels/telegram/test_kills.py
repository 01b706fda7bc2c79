"""A process killed at any step of a delivery, with or without a lost answer, leaves each part on one message."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from genlock.app.clock import SystemClock
from genlock.domain.job import Delivery
from genlock.domain.money import HoldState
from genlock.sandbox.kie.media import make_image
from genlock.stores.sqlite import SqliteStore
from tests.channels.telegram.killable_sender import Case
from tests.databases import new_sqlite
from tests.engine.recorder import Recorder
from tests.media.file_server import FileServer, running_file_server
from tests.media.samples import short_video

ROOT = Path(__file__).parents[3]
KILLED = -9
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.process]


@asynccontextmanager
async def process(module: str, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield running
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()


async def line(running: asyncio.subprocess.Process) -> str:
    assert running.stdout is not None
    async with asyncio.timeout(60):
        return (await running.stdout.readline()).decode().strip()


class Processes:
    """The simulated Telegram in one process, and a process that forks killable senders."""

    def __init__(self, api: str, web: aiohttp.ClientSession, sender: asyncio.subprocess.Process, folder: Path) -> None:
        self._api = api
        self._web = web
        self._sender = sender
        self._folder = folder
        self._number = 0
        self._calls = 0

    async def ask(self, path: str, **body: Any) -> Any:
        method = "POST" if body else "GET"
        async with self._web.request(method, f"{self._api}/sim/{path}", json=body or None) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def deliver(
        self,
        pieces: list[list[str]],
        files: FileServer,
        *,
        die_at: int | None = None,
        lose: bool = False,
        deleted: bool = False,
    ) -> tuple[list[str], list[dict[str, Any]], int]:
        """Deliver once, killed or not, then let a second sender finish; return the steps, messages and uploads."""
        self._number += 1
        user = await self.ask("people", name=f"P{self._number}")
        log = self._folder / f"steps-{self._number}"
        case = Case(
            store=new_sqlite(self._folder, f"store-{self._number}.db"),
            api=self._api,
            log=str(log),
            chat=user["id"],
            key=f"k{self._number}",
            pieces=pieces,
            private=files.host,
            die_at=die_at,
            lose=lose,
            deleted=deleted,
        )
        code = await self._run(case)
        assert code == (0 if die_at is None else KILLED)
        case.pieces, case.die_at, case.ahead = [], None, 60.0
        assert await self._run(case) == 0
        await self._check_row(case)
        calls = [call for call in (await self._new_calls()) if call["uploaded"]]
        seen = await self.ask(f"chats/{case.chat}?person={case.chat}")
        return log.read_text().splitlines(), seen["messages"], len(calls)

    async def _run(self, case: Case) -> int:
        assert self._sender.stdin is not None
        self._sender.stdin.write(f"{json.dumps(asdict(case))}\n".encode())
        return int(await line(self._sender))

    async def _new_calls(self) -> list[dict[str, Any]]:
        found = await self.ask(f"calls?after={self._calls}")
        calls: list[dict[str, Any]] = found["calls"] if isinstance(found, dict) else found
        if calls:
            self._calls = calls[-1]["number"]
        return calls

    async def _check_row(self, case: Case) -> None:
        store = await SqliteStore.open(case.store, clock=SystemClock(), observer=Recorder())
        [job] = await store.jobs()
        unknown = case.deleted and job.delivery is Delivery.UNKNOWN
        expected = (Delivery.UNKNOWN, HoldState.RELEASED) if unknown else (Delivery.DELIVERED, HoldState.CAPTURED)
        assert (job.delivery, job.hold_state, job.due_at) == (*expected, None)
        assert (job.attention_reason is not None) == unknown
        assert await store.violations(settled=True) == []
        await store.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def processes(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Processes]:
    async with (
        process("genlock.sandbox.telegram") as telegram,
        process("tests.channels.telegram.killable_sender") as sender,
        aiohttp.ClientSession() as web,
    ):
        yield Processes(json.loads(await line(telegram))["url"], web, sender, tmp_path_factory.mktemp("kills"))


def pieces_of(what: str, files: FileServer) -> list[list[str]]:
    if what == "one text":
        return [["text", "the text of the result"]]
    if what == "one video":
        return [["file", files.put("video.mp4", short_video(), "video/mp4")]]
    count = 3 if what == "three photos" else 1
    urls = [files.put(f"{number}.png", make_image(what, {}, number), "image/png") for number in range(count)]
    return [["file", url] for url in urls]


def check(messages: list[dict[str, Any]], pieces: list[list[str]]) -> None:
    """Check that every part is on exactly one message, and that there is at most one notice."""
    shown = Counter(
        view["message"]["text"] if view["shown"] == "text" else f"{view['shown']} {view['message']['caption']}"
        for view in messages
    )
    for number, (kind, value) in enumerate(pieces, 1):
        expected = value if kind == "text" else f"{'video' if value.endswith('.mp4') else 'photo'} Part {number}"
        assert shown.pop(expected) == 1, messages
    assert shown.pop("✅ Generation complete", 0) <= 1
    # A placeholder whose sender died before the store knew of it stays in the chat as it is.
    assert all(", part " in text for text in shown), shown


@pytest.mark.timeout(600)
@pytest.mark.parametrize("what", ["one photo", "three photos", "one video", "one text"])
async def test_a_sender_killed_at_any_step_shows_each_part_on_one_message(
    processes: Processes, what: str, record_property: Any
) -> None:
    async with running_file_server() as files:
        pieces = pieces_of(what, files)
        steps, messages, uploads = await processes.deliver(pieces, files)
        check(messages, pieces)
        assert len(messages) == len(pieces) + 1
        file_count = sum(kind == "file" for kind, _ in pieces)
        assert uploads == file_count
        counted: Counter[int] = Counter()
        cases = [(at, False) for at in range(len(steps))]
        cases += [(at, True) for at, step in enumerate(steps) if step.startswith("before ") and _is_call(step)]
        for at, lose in cases:
            passed, messages, uploads = await processes.deliver(pieces, files, die_at=at, lose=lose)
            assert passed[: at + 1] == steps[: at + 1]
            check(messages, pieces)
            assert uploads == file_count, "no file is uploaded twice"
            counted[uploads] += 1
        record_property("steps", len(steps))
        record_property("kills", len(cases))
        record_property("uploads", dict(sorted(counted.items())))
        print(f"\n{what}: {len(steps)} steps, {len(cases)} kills, uploads {dict(sorted(counted.items()))}")  # noqa: T201


@pytest.mark.timeout(600)
async def test_a_sender_killed_while_it_replaces_a_deleted_message_sends_at_most_one(processes: Processes) -> None:
    """A send is not repeated: it is delivered, or its outcome is unknown and the hold is released."""
    async with running_file_server() as files:
        pieces = pieces_of("one photo", files)
        steps, messages, _ = await processes.deliver(pieces, files, deleted=True)
        check(messages, pieces)
        cases = [(at, False) for at in range(len(steps))]
        cases += [(at, True) for at, step in enumerate(steps) if step.startswith("before ") and _is_call(step)]
        for at, lose in cases:
            _, messages, uploads = await processes.deliver(pieces, files, die_at=at, lose=lose, deleted=True)
            assert sum(view["shown"] == "photo" for view in messages) <= 1
            assert uploads <= 2, "one for the edit that found no message, one for the send"


def _is_call(step: str) -> bool:
    return step.removeprefix("before ").startswith(("send_", "edit_"))
