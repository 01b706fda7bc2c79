"""`genlock sandbox` as a newcomer meets it: a real process that starts others, and takes them along when it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import psutil
import pytest

from genlock.sandbox.processes import find_free_port
from genlock.sandbox.run import describe_line

PATIENCE_SECONDS = 40


def until(holds: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := holds()):
        assert time.monotonic() < deadline, f"it did not come to pass: {what}"
        time.sleep(0.05)
    return found


def four_ports() -> int:
    """The first of four free ones."""
    while True:
        first = find_free_port()
        try:
            for port in range(first, first + 4):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first


class Sandbox:
    def __init__(self, folder: Path, *arguments: str, port: int | None = None) -> None:
        self.port = port or four_ports()
        self.error = folder / f"sandbox-{self.port}.txt"
        with self.error.open("wb") as error:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "genlock", "sandbox", "--port", str(self.port), *arguments],
                cwd=folder,
                stdout=error,
                stderr=error,
                env={**os.environ, "COLUMNS": "200"},
            )

    @property
    def said(self) -> str:
        return self.error.read_text()

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.said
        return "Ctrl-C stops it" in self.said

    def ready(self) -> "Sandbox":
        until(self.is_ready, self.said)
        return self

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def get(self, path: str, *, place: int = 0) -> Any:
        with urlopen(f"http://127.0.0.1:{self.port + place}{path}", timeout=10) as response:
            text = response.read()
            return json.loads(text) if "json" in response.headers["Content-Type"] else text.decode()

    def post(self, path: str, said: Any) -> Any:
        body = json.dumps(said).encode()
        request = Request(f"http://127.0.0.1:{self.port}{path}", body, {"Content-Type": "application/json"})
        with urlopen(request, timeout=10) as response:  # noqa: S310
            return json.loads(response.read())

    def end(self, name: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(name)
        return self.process.wait(PATIENCE_SECONDS)


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Callable[..., Sandbox]]:
    made: list[Sandbox] = []

    def make(*arguments: str, port: int | None = None) -> Sandbox:
        made.append(Sandbox(tmp_path, *arguments, port=port))
        return made[-1]

    yield make
    for one in made:
        one.process.kill()
        one.process.wait()


def test_it_serves_page_and_health_tells_where_and_ends_with_all_it_started(
    sandbox: Callable[..., Sandbox],
) -> None:
    began = time.monotonic()
    world = sandbox("--fresh").ready()
    assert time.monotonic() - began < 20
    children = world.children()
    assert any("serve" in child.cmdline() for child in children)
    assert f"http://127.0.0.1:{world.port}/" in world.said
    assert "<html" in world.get("/")
    assert world.get("/health", place=1)["active"] in {True, False}
    assert [person["first_name"] for person in world.get("/sim/state")["people"]] == ["Ann"]
    until(
        lambda: [event for event in world.get("/sim/page")["journal"] if event["kind"] == "log"],
        "the instance's lines are on the page",
    )
    assert world.end() == 0
    until(lambda: not any(child.is_running() for child in children), "all processes are gone")


def test_nothing_stays_behind_when_it_is_killed(sandbox: Callable[..., Sandbox]) -> None:
    world = sandbox("--fresh").ready()
    children = world.children()
    folders = {Path(child.cwd()) for child in children if "serve" in child.cmdline()}
    assert len(folders) == 1
    world.end(signal.SIGKILL)
    until(lambda: not any(child.is_running() for child in children), "all processes are gone")
    until(lambda: not any(folder.exists() for folder in folders), "what was fresh is thrown away")


def test_a_killed_instance_is_started_again(sandbox: Callable[..., Sandbox]) -> None:
    world = sandbox("--fresh").ready()
    first = world.get("/health", place=1)["instance"]
    [child] = [child for child in world.children() if "serve" in child.cmdline()]
    child.kill()

    def another() -> bool:
        try:
            return bool(world.get("/health", place=1)["instance"] != first)
        except OSError:
            return False

    until(another, "another one answers")
    assert world.end() == 0


def test_the_world_is_there_again_the_next_time(sandbox: Callable[..., Sandbox], tmp_path: Path) -> None:
    first = sandbox("--state", str(tmp_path / "kept")).ready()
    bob = first.post("/sim/people", {"name": "Bob", "language": "ru"})
    first.post(f"/sim/people/{bob['id']}/say", {"text": "/help"})
    assert sandbox("--state", str(tmp_path / "kept")).process.wait(PATIENCE_SECONDS) == 1
    assert first.end() == 0
    again = sandbox("--state", str(tmp_path / "kept"), port=first.port).ready()
    assert [person["first_name"] for person in again.get("/sim/state")["people"]] == ["Ann", "Bob"]
    said = again.get(f"/sim/chats/{bob['id']}?person={bob['id']}")["messages"]
    assert said[0]["message"]["text"] == "/help"
    assert again.end() == 0


def generate(world: Sandbox, person: int, prompt: str) -> str:
    """Order a picture in words; returns its task's id at the simulated Kie.ai."""
    world.post(f"/sim/people/{person}/say", {"text": f"/gen z-image {prompt}"})

    def shown() -> bool:
        messages = world.get(f"/sim/chats/{person}?person={person}")["messages"]
        return any("photo" in one["message"] and prompt in str(one["message"]) for one in messages)

    until(shown, f"the picture of {prompt}")
    [task] = world.get("/_control", place=2)["tasks"]
    return str(task["id"])


def test_what_is_ordered_in_a_kept_world_never_meets_what_was_ordered_before(
    sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    port, tasks = four_ports(), []
    for prompt in ("a cat", "a dog"):
        world = sandbox("--state", str(tmp_path / "kept"), "--speed", "60", port=port).ready()
        [ann] = world.get("/sim/state")["people"]
        world.post(f"/sim/people/{ann['id']}/say", {"text": "/start"})
        tasks.append(generate(world, ann["id"], prompt))
        assert "STAGE_ERROR" not in world.said
        assert world.end() == 0
    assert tasks[0] != tasks[1]


def test_a_result_is_put_by_its_address_and_an_answer_lost_after_that_changes_nothing(
    sandbox: Callable[..., Sandbox],
) -> None:
    world = sandbox("--fresh", "--speed", "60").ready()
    [ann] = world.get("/sim/state")["people"]
    world.post(f"/sim/people/{ann['id']}/say", {"text": "/start"})
    world.post("/sim/faults", {"fault": "drop_after", "method": "editMessageMedia", "times": 1})
    generate(world, ann["id"], "a cat")

    def puts() -> list[Any]:
        calls = [event["call"] for event in world.get("/sim/page")["journal"] if event["kind"] == "call"]
        return [call for call in calls if call["method"] == "editMessageMedia"]

    until(lambda: len(puts()) > 1, "it is put again")
    lost, again = puts()
    assert (lost["executed"], lost["answered"], lost["faults"]) == (True, False, ["drop_after"])
    assert (again["answered"], again["faults"]) == (True, [])
    messages = world.get(f"/sim/chats/{ann['id']}?person={ann['id']}")["messages"]
    assert sum("photo" in one["message"] for one in messages) == 1
    assert world.end() == 0


def test_the_terminal_names_each_alarm_and_error() -> None:
    alarm = {"process": "a", "event": "ALARM", "name": "undelivered", "found": "3 results, the oldest for 90 s"}
    error = {"process": "a", "event": "STAGE_ERROR", "step": "claim", "error": "KeyError('x')"}
    assert describe_line(alarm) == "[ALARM] undelivered: 3 results, the oldest for 90 s"
    assert describe_line(error) == "[STAGE_ERROR] claim: KeyError('x')"
    assert describe_line({"process": "a", "event": "", "text": "no JSON"}) == "no JSON"


def check_two_instances(world: Sandbox) -> None:
    children = world.children()
    assert sum("serve" in child.cmdline() for child in children) == 2
    until(lambda: world.get("/health", place=1)["instances"] == 2, "both are known")
    assert world.end() == 0
    until(lambda: not any(child.is_running() for child in children), "all are gone")


def test_two_instances_on_a_postgres_that_is_kept(sandbox: Callable[..., Sandbox]) -> None:
    with tempfile.TemporaryDirectory(prefix="genlock-kept-") as folder:
        Path(folder).chmod(0o755)  # PostgreSQL's own user must get in
        for _ in range(2):
            check_two_instances(sandbox("--postgres", "--instances", "2", "--state", f"{folder}/world").ready())
        assert (Path(folder) / "world" / "postgres" / "data" / "PG_VERSION").exists()


def test_a_port_that_is_taken_is_named(sandbox: Callable[..., Sandbox]) -> None:
    port = four_ports()
    with socket.create_server(("127.0.0.1", port + 1)):
        world = sandbox("--fresh", port=port)
        assert world.process.wait(PATIENCE_SECONDS) == 1
    assert f"port {port + 1} is in use" in world.said


def test_several_instances_need_postgres(sandbox: Callable[..., Sandbox]) -> None:
    world = sandbox("--fresh", "--instances", "2")
    assert world.process.wait(PATIENCE_SECONDS) == 1
    assert "--postgres" in world.said
