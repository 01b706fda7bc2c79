"""The files that operators copy name existing commands and settings, and the image's health check works."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml  # type: ignore[import-untyped]

from genlock import cli
from genlock.sandbox.processes import find_free_port
from genlock.settings.reading import own_variables

PAGES = [*sorted(Path("docs").rglob("*.md")), *sorted(Path().glob("*.md"))]
FILES = [Path("Dockerfile"), Path("compose.yaml"), Path(".env.example"), *sorted(Path("deploy").iterdir())]
ALIASES = {"PORT", "DATABASE_URL", "RENDER_EXTERNAL_URL", "TELEGRAM_BOT_TOKEN", "KIE_API_KEY"}
SETTINGS = set(own_variables())
#: variables of the tests and of the bench
OTHERS = {"GENLOCK_TEST_CHROMIUM", "GENLOCK_TEST_POSTGRES_URL", "GENLOCK_BENCH_DATABASE_URL"}
#: the setting of the plug-in that the guide writes
EXAMPLES = {"GENLOCK_ACME_KEY", "GENLOCK_ACME_API_URL"}


def commands() -> Iterator[str]:
    root: Any = typer.main.get_command(cli.app)
    for name, command in root.commands.items():
        yield name
        yield from (f"{name} {inner}" for inner in getattr(command, "commands", {}))


COMMANDS = set(commands())


@pytest.mark.parametrize("file", [*PAGES, *FILES], ids=str)
def test_every_named_setting_exists(file: Path) -> None:
    named = set(re.findall(r"GENLOCK_[A-Z0-9_]*[A-Z0-9]", file.read_text(encoding="utf-8")))
    assert named <= SETTINGS | OTHERS | EXAMPLES


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_named_command_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```.*?```", text, re.DOTALL))
    word = r"([a-z]+(?:-[a-z]+)*)"
    in_code = re.finditer(rf"(?:bin/|^ *|genlock )genlock {word}(?: {word})?", code, re.MULTILINE)
    in_backticks = re.finditer(rf"(?:`|bin/)genlock {word}(?: {word})?", text)
    for match in (*in_code, *in_backticks):
        command, inner = match[1], match[2]
        if command in {"serve", "genlock"}:
            continue
        assert command in COMMANDS, match[0]
        if inner and any(known.startswith(f"{command} ") for known in COMMANDS):
            assert f"{command} {inner}" in COMMANDS, match[0]


def test_compose_runs_two_instances_on_one_postgresql() -> None:
    services = yaml.safe_load(Path("compose.yaml").read_text(encoding="utf-8"))["services"]
    assert services["genlock"]["deploy"]["replicas"] == 2
    assert services["genlock"]["mem_limit"] == "1g"
    assert services["genlock"]["environment"]["GENLOCK_DATABASE_URL"].startswith("postgresql://")
    assert services["genlock"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert services["genlock"]["stop_grace_period"] == "30s"


def test_render_asks_for_the_required_settings() -> None:
    [service] = yaml.safe_load(Path("deploy/render.yaml").read_text(encoding="utf-8"))["services"]
    named = {variable["key"] for variable in service["envVars"]}
    assert {"GENLOCK_TELEGRAM_TOKEN", "GENLOCK_KIE_API_KEY", "DATABASE_URL"} <= named
    assert named <= SETTINGS | ALIASES | {"PYTHON_IMAGE"}
    assert service["healthCheckPath"] == "/ready"


def test_the_image_runs_without_rights_and_copies_only_what_it_needs() -> None:
    dockerfile = Path("Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER genlock$", dockerfile, re.MULTILINE)
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE):
        for name in source.split():
            assert Path(name).exists(), name
            assert f"!{name}" in Path(".dockerignore").read_text(encoding="utf-8").splitlines()


def health_check() -> list[str]:
    found = re.search(r"HEALTHCHECK .*?CMD (\[.*?\])$", Path("Dockerfile").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found
    command: list[str] = json.loads(found[1])
    return [sys.executable, *command[1:]]


@pytest.mark.process
@pytest.mark.parametrize(("status", "healthy"), [(200, True), (500, False), (None, False)])
def test_the_health_check_of_the_image_reports_the_status(status: int | None, healthy: bool) -> None:  # noqa: FBT001 - a case
    port = find_free_port()
    server = f"""
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({status} if self.path == "/health" else 404)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", {port}), Handler)
print("ready", flush=True)
server.serve_forever()
"""
    process = None
    if status is not None:
        process = subprocess.Popen([sys.executable, "-c", server], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        process.stdout.readline()
    done = subprocess.run(health_check(), env={"GENLOCK_PORT": str(port)}, capture_output=True, check=False, timeout=30)
    if process is not None:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert (done.returncode == 0) is healthy


def test_the_example_file_names_every_setting() -> None:
    text = Path(".env.example").read_text(encoding="utf-8")
    assert set(re.findall(r"^#?(GENLOCK_[A-Z0-9_]+)=", text, re.MULTILINE)) == SETTINGS
    assert set(re.findall(r"^(GENLOCK_[A-Z0-9_]+)=", text, re.MULTILINE)) == {
        "GENLOCK_TELEGRAM_TOKEN",
        "GENLOCK_KIE_API_KEY",
    }


def test_the_systemd_unit_allows_enough_time_to_stop() -> None:
    unit = Path("deploy/genlock.service").read_text(encoding="utf-8")
    assert "TimeoutStopSec=30" in unit
    assert "ExecStart=/opt/genlock/bin/genlock serve" in unit
