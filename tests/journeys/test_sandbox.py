"""`genlock sandbox` as a real process: it starts the others, and they end with it."""

import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from genlock.sandbox.run import describe_line
from tests.fork_server import ForkServer
from tests.journeys.sandbox_process import PATIENCE_SECONDS, Sandbox, find_four_ports, wait_until


@pytest.fixture
def sandbox(tmp_path: Path, fork_server: ForkServer) -> Iterator[Callable[..., Sandbox]]:
    started: list[Sandbox] = []

    def make(*arguments: str, port: int | None = None) -> Sandbox:
        started.append(Sandbox(tmp_path, *arguments, port=port, launch=fork_server.launch))
        return started[-1]

    yield make
    for process in started:
        process.process.kill()
        process.process.wait()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Iterator[Sandbox]:
    """One sandbox for the tests that leave it running."""
    sandbox = Sandbox(tmp_path_factory.mktemp("fresh"), "--fresh", "--speed", "60", launch=fork_server.launch).ready()
    yield sandbox
    sandbox.process.kill()
    sandbox.process.wait()


def test_the_sandbox_serves_page_and_health(running: Sandbox) -> None:
    assert any("serve" in child.cmdline() for child in running.children())
    assert f"http://127.0.0.1:{running.port}/" in running.output
    assert "<html" in running.get("/")
    assert running.get("/health", place=1)["active"] in {True, False}
    people = running.get("/sim/state")["people"]
    assert [(person["first_name"], person["language_code"]) for person in people if not person["operator"]] == [
        ("Ann", "en"),
        ("Аня", "ru"),
    ]
    assert [person["first_name"] for person in people if person["operator"]] == ["Olga"]
    assert f"http://127.0.0.1:{running.port}/dashboard" in running.output
    assert 'aria-current="page"' in wait_until(running.open_dashboard, "the dashboard answers")
    assert f"http://127.0.0.1:{running.port}/try" in running.output
    assert running.get("/try/key")["key"].startswith("glk_")
    wait_until(
        lambda: [event for event in running.get("/sim/page")["journal"] if event["kind"] == "log"],
        "the instance's log lines are on the page",
    )


def test_no_process_and_no_folder_remains_after_the_sandbox_is_killed(sandbox: Callable[..., Sandbox]) -> None:
    running = sandbox("--fresh").ready()
    children = running.children()
    folders = {Path(child.cwd()) for child in children if "serve" in child.cmdline()}
    assert len(folders) == 1
    assert [folder for folder in folders if (folder / "telegram").is_dir()], "files of chats are in that folder, too"
    running.end(signal.SIGKILL)
    wait_until(lambda: not any(child.is_running() for child in children), "all processes are gone")
    wait_until(lambda: not any(folder.exists() for folder in folders), "the temporary folder is removed")


def test_a_killed_instance_is_restarted(running: Sandbox) -> None:
    first = running.get("/health", place=1)["instance"]
    [child] = [child for child in running.children() if "serve" in child.cmdline()]
    child.kill()

    wait_until(lambda: running.get("/health", place=1)["instance"] != first, "a new instance answers")


def generate(running: Sandbox, person: int, prompt: str) -> str:
    """Order an image with /gen, wait for it, and return its message."""
    running.post(f"/sim/people/{person}/say", {"text": f"/gen z-image {prompt}"})

    return str(wait_until(lambda: shown_image(running, person, prompt), f"the image for {prompt} is shown"))


def shown_image(running: Sandbox, person: int, prompt: str) -> str | None:
    messages = running.get(f"/sim/chats/{person}?person={person}")["messages"]
    shown = (json.dumps(message["message"]) for message in messages if "photo" in message["message"])
    return next((message for message in shown if prompt in message), None)


def only_task(running: Sandbox) -> str:
    """The id of the one task at the Kie.ai simulator."""
    [task] = running.get("/_control", place=2)["tasks"]
    return str(task["id"])


def test_a_second_run_keeps_users_and_chats_and_its_orders_do_not_collide_with_those_of_the_first(
    sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    state = ("--state", str(tmp_path / "kept"), "--speed", "60")
    first = sandbox(*state).ready()
    bob = first.post("/sim/people", {"name": "Bob", "language": "ru"})
    first.post(f"/sim/people/{bob['id']}/say", {"text": "/help"})
    generate(first, bob["id"], "a cat")
    tasks = [only_task(first)]
    refused = sandbox(*state)
    assert refused.process.wait(PATIENCE_SECONDS) == 1, "one sandbox at a time"
    assert f"its chat page is {first.url}" in refused.output
    stop_without_errors(first)
    again = sandbox(*state, port=first.port).ready()
    assert [person["first_name"] for person in again.get("/sim/state")["people"]] == ["Ann", "Аня", "Olga", "Bob"]
    said = again.get(f"/sim/chats/{bob['id']}?person={bob['id']}")["messages"]
    assert said[0]["message"]["text"] == "/help"
    generate(again, bob["id"], "a dog")
    tasks.append(only_task(again))
    stop_without_errors(again)
    assert tasks[0] != tasks[1]


def test_an_order_that_runs_when_the_sandbox_is_stopped_arrives_after_the_next_start(
    sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    state = ("--state", str(tmp_path / "kept"))
    first = sandbox(*state).ready()
    ann = first.get("/sim/state")["people"][0]["id"]
    first.post(f"/sim/people/{ann}/say", {"text": "/gen z-image an owl"})
    task = str(wait_until(lambda: first.get("/_control", place=2)["tasks"], "the task runs")[0]["id"])
    stop_without_errors(first)
    again = sandbox(*state, port=first.port).ready()
    wait_until(lambda: shown_image(again, ann, "an owl"), "the image is shown")
    assert only_task(again) == task
    stop_without_errors(again)


def stop_without_errors(running: Sandbox) -> None:
    children = running.children()
    assert "STAGE_ERROR" not in running.output
    assert running.end() == 0
    wait_until(lambda: not any(child.is_running() for child in children), "all processes are gone")


def test_a_lost_answer_to_a_media_edit_does_not_show_the_result_twice(running: Sandbox) -> None:
    ann = running.get("/sim/state")["people"][0]
    running.post(f"/sim/people/{ann['id']}/say", {"text": "/start"})
    running.post("/sim/faults", {"fault": "drop_after", "method": "editMessageMedia", "times": 1})
    generate(running, ann["id"], "a cat")

    def media_edits() -> list[Any]:
        calls = [event["call"] for event in running.get("/sim/page")["journal"] if event["kind"] == "call"]
        return [call for call in calls if call["method"] == "editMessageMedia"]

    wait_until(lambda: len(media_edits()) > 1, "the edit is repeated")
    lost, again = media_edits()
    assert (lost["executed"], lost["answered"], lost["faults"]) == (True, False, ["drop_after"])
    assert (again["answered"], again["faults"]) == (True, [])
    messages = running.get(f"/sim/chats/{ann['id']}?person={ann['id']}")["messages"]
    assert sum("photo" in message["message"] and "a cat" in str(message["message"]) for message in messages) == 1


def run_beside(running: Sandbox, *command: str) -> Any:
    """Run a command in a new shell that uses the settings of the sandbox, as it prints; return its JSON."""
    use_settings = re.search(r"set -a; .*; set \+a", running.output)
    assert use_settings is not None, running.output
    line = ["sh", "-ec", f'{use_settings[0]}; exec "$@"', "sh", sys.executable, "-m", "genlock", *command, "--json"]
    ended = subprocess.run(line, cwd=running.error.parent, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return json.loads(ended.stdout)


def test_the_commands_beside_the_service_work_in_a_shell_with_the_printed_settings(running: Sandbox) -> None:
    ann = running.get("/sim/state")["people"][0]["id"]
    [number] = set(re.findall(r"#([A-Z][0-9A-Z]{5})\b", generate(running, ann, "an owl")))
    assert "an owl" in json.dumps(run_beside(running, "jobs", "show", number))
    link = run_beside(running, "dashboard", "link")["url"]
    assert link.startswith(f"http://127.0.0.1:{running.port + 1}/")


def test_the_terminal_names_each_alarm_and_error() -> None:
    alarm = {"process": "a", "event": "ALARM", "name": "undelivered", "found": "3 results, the oldest for 90 s"}
    error = {"process": "a", "event": "STAGE_ERROR", "step": "claim", "error": "KeyError('x')"}
    assert describe_line(alarm) == "[ALARM] undelivered: 3 results, the oldest for 90 s"
    assert describe_line(error) == "[STAGE_ERROR] claim: KeyError('x')"
    assert describe_line({"process": "a", "event": "", "text": "no JSON"}) == "no JSON"


def check_two_instances(running: Sandbox) -> None:
    children = running.children()
    assert sum("serve" in child.cmdline() for child in children) == 2
    wait_until(lambda: running.get("/health", place=1)["instances"] == 2, "both instances are registered")
    assert all(phase["ok"] for phase in run_beside(running, "doctor")["phases"])
    assert running.end() == 0
    wait_until(lambda: not any(child.is_running() for child in children), "all processes are gone")


def test_two_instances_run_on_a_kept_postgres(sandbox: Callable[..., Sandbox]) -> None:
    with tempfile.TemporaryDirectory(prefix="genlock-kept-") as folder:
        Path(folder).chmod(0o755)  # PostgreSQL's own user must be able to enter it
        for _ in range(2):
            check_two_instances(sandbox("--postgres", "--instances", "2", "--state", f"{folder}/world").ready())
            assert not (Path(folder) / "world" / "env").exists(), "the settings are those of a running sandbox"
        assert (Path(folder) / "world" / "postgres" / "data" / "PG_VERSION").exists()


def test_a_port_in_use_is_named(sandbox: Callable[..., Sandbox]) -> None:
    port = find_four_ports()
    with socket.create_server(("127.0.0.1", port + 1)):
        running = sandbox("--fresh", port=port)
        assert running.process.wait(PATIENCE_SECONDS) == 1
    assert f"port {port + 1} is in use" in running.output


def test_a_state_that_cannot_be_written_is_refused_in_one_line(sandbox: Callable[..., Sandbox], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    state = tmp_path / "file" / "state"
    running = sandbox("--state", str(state))
    assert running.process.wait(PATIENCE_SECONDS) == 1
    assert f"cannot keep the state in {state} (Not a directory): give a folder" in running.output
    assert "Traceback" not in running.output


def test_the_service_runs_with_a_setting_that_is_given(sandbox: Callable[..., Sandbox]) -> None:
    running = sandbox("--fresh", "--set", "GENLOCK_WELCOME_CREDITS=7").ready()
    ann = running.get("/sim/state")["people"][0]["id"]
    running.post(f"/sim/people/{ann}/say", {"text": "/start"})
    wait_until(
        lambda: "7\\u00a0credits" in json.dumps(running.get(f"/sim/chats/{ann}?person={ann}")), "Ann is given 7 credits"
    )


@pytest.mark.parametrize("wrong", ["GENLOCK_ECHO_KEY", "ECHO_KEY=x"])
def test_what_is_no_setting_with_a_value_is_refused(sandbox: Callable[..., Sandbox], wrong: str) -> None:
    running = sandbox("--fresh", "--set", wrong)
    assert running.process.wait(PATIENCE_SECONDS) == 1
    assert f"--set {wrong}: write GENLOCK_NAME=VALUE" in running.output


def test_several_instances_need_postgres(sandbox: Callable[..., Sandbox]) -> None:
    running = sandbox("--fresh", "--instances", "2")
    assert running.process.wait(PATIENCE_SECONDS) == 1
    assert "--postgres" in running.output
