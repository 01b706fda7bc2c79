"""`genlock sandbox`: run the product with simulators of Telegram and all providers, and a chat page.

Starts the simulators, one or more real `genlock serve` processes and, with --postgres, a local PostgreSQL. Restarts
instances that end, and shows their log lines on the chat page, until Ctrl-C.
"""

import asyncio
import fcntl
import json
import secrets
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import IO, Any
from urllib.parse import urlsplit

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from genlock.catalog import load
from genlock.domain.catalog import Model
from genlock.domain.errors import Refusal
from genlock.domain.printable import escape_unprintable
from genlock.sandbox.fleet import WEBHOOK_KEY, Fleet, running_fleet
from genlock.sandbox.kie.persistence import resume_tasks, save_tasks
from genlock.sandbox.kie.simulator import running_kie
from genlock.sandbox.postgres import PostgresServer
from genlock.sandbox.processes import ProgramFailed, find_free_port, guarded_folder, is_free_port
from genlock.sandbox.providers import running_more_providers
from genlock.sandbox.samples import write_samples
from genlock.sandbox.settings_file import SettingsFile
from genlock.sandbox.telegram.chats import User
from genlock.sandbox.telegram.simulator import DashboardLogin, TelegramSimulator, running_telegram
from genlock.sandbox.try_page.access import TryKey
from genlock.sandbox.try_page.routes import TryAccess

STATE = Path(".sandbox")
#: port of the chat page; the service, the Kie.ai simulator and its file host use the next three
FIRST_PORT = 8080
WELCOME_CREDITS = 500
#: language by name; the chat page opens with the one who speaks the browser's language
FIRST_USERS = {"Ann": "en", "Аня": "ru"}
OPERATOR = "Olga"
WATCH_SECONDS = 0.25
#: an instance that ends within FAST_SECONDS, FAST_ENDS_MAX times in a row, is not started again
FAST_SECONDS = 5.0
FAST_ENDS_MAX = 3
PRINTED_EVENTS = {"STAGE_ERROR", "ALARM", ""}


@dataclass(frozen=True, kw_only=True)
class Options:
    postgres: bool = False
    instances: int = 1
    #: folder that keeps chats and database; None: use a temporary one
    state: Path | None = STATE
    #: first of four ports; None: the default ports, or free ones where those are taken
    port: int | None = None
    #: models take their usual time divided by this
    speed: float = 6.0
    #: variables of the service, besides those of the sandbox or instead of them
    settings: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        if self.instances > 1 and not self.postgres:
            raise Refusal("SQLite serves one process: add --postgres to run several instances")


def read_given_settings(given: Sequence[str]) -> dict[str, str]:
    """Read settings as NAME=VALUE. Raises Refusal."""
    settings: dict[str, str] = {}
    for text in given:
        name, is_given, value = text.partition("=")
        if not is_given or not name.startswith("GENLOCK_"):
            raise Refusal(f"--set {text}: write GENLOCK_NAME=VALUE")
        settings[name] = value
    return settings


def run(options: Options) -> int:
    """Run until Ctrl-C; return the exit status."""
    options.check()
    console = Console(stderr=True)
    with ExitStack() as stack:
        folder = _open_folder(options.state, stack)
        try:
            database = _start_database(options, folder, stack)
            asyncio.run(_run_sandbox(options, folder, database, console))
        except ProgramFailed as error:
            console.print(escape_unprintable(str(error), keep="\n"), style="red", highlight=False, markup=False)
            return 1
    return 0


def _open_folder(state: Path | None, stack: ExitStack) -> Path:
    """Return the folder of this run, locked. Raises Refusal if it cannot be written."""
    try:
        folder = stack.enter_context(guarded_folder(state))
        stack.enter_context(_locked(folder))
    except OSError as error:
        if state is None:
            raise
        reason = error.strerror or str(error)
        raise Refusal(
            f"cannot keep the state in {state} ({reason}): give a folder that you may write to with --state, "
            "or use --fresh"
        ) from None
    return folder


def _start_database(options: Options, folder: Path, stack: ExitStack) -> str:
    if not options.postgres:
        return f"sqlite:///{folder}/genlock.db"
    kept = folder / "postgres" if options.state else None
    return stack.enter_context(PostgresServer.running(kept)).url("postgres")


@contextmanager
def _locked(folder: Path) -> Iterator[IO[str]]:
    """Lock the folder: two sandboxes in one folder would overwrite each other's chats."""
    with (folder / "lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            page = SettingsFile(folder).read().get("GENLOCK_TELEGRAM_API_URL")
            where = f"; its chat page is {page}/" if page else ""
            raise Refusal(
                f"another sandbox is using {folder}{where}. Stop it first, or use --fresh or --state FOLDER "
                "(with make: ARGS=--fresh)"
            ) from None
        yield lock


async def _run_sandbox(options: Options, folder: Path, database: str, console: Console) -> None:
    stop_requests = _listen_for_signals()
    began = time()
    settings_file = SettingsFile(folder)
    settings_file.remove()  # an earlier sandbox that was killed left it
    ports = _ports(options.port)
    if taken := _taken_ports(options.port, ports):
        console.print(taken, style="yellow", highlight=False, markup=False, soft_wrap=True)
    async with AsyncExitStack() as stack:
        with console.status("Starting…"):
            fleet = await _start_fleet(options, ports, folder, database, stack)
        stack.callback(settings_file.remove)
        service = urlsplit(fleet.url)
        settings_file.write(fleet.settings | {"GENLOCK_HOST": str(service.hostname), "GENLOCK_PORT": str(service.port)})
        console.print(_welcome_panel(fleet, options, folder, time() - began))
        await _watch(fleet, stop_requests, console)
        if options.state:
            save_tasks(fleet.kie, folder)
        await _stop(fleet, stop_requests, console)


async def _start_fleet(
    options: Options, ports: Sequence[int], folder: Path, database: str, stack: AsyncExitStack
) -> Fleet:
    """Start the simulators and the instances; `stack` ends them."""
    overlay = _write_fast_catalog(folder, options.speed)
    page_port, service_port, kie_port, files_port = ports
    catalog = load(overlay)
    kie_simulator = running_kie(
        catalog=catalog, webhook_key=WEBHOOK_KEY, speed=1.0, seed=None, port=kie_port, files_port=files_port
    )
    kie = await stack.enter_async_context(kie_simulator)
    kie.service.hold_tasks()
    resume_tasks(kie, folder)
    more = await stack.enter_async_context(running_more_providers(catalog))
    token, chats = secrets.token_hex(24), folder / "telegram"
    telegram_simulator = running_telegram(
        limiter=True,
        seed=None,
        port=page_port,
        folder=chats if options.state else None,
        files=chats,  # a watchdog removes the temporary folder, even if this process is killed
        kie_url=kie.url,
    )
    telegram = await stack.enter_async_context(telegram_simulator)
    telegram.providers = more.beside(kie)
    operators = _add_users(telegram)
    instances = running_fleet(
        telegram=telegram,
        kie=kie,
        more=more,
        folder=folder,
        database_url=database,
        port=service_port,
        settings={
            "GENLOCK_ADMIN_IDS": ",".join(str(user.id) for user in operators),
            "GENLOCK_DASHBOARD_TOKEN": token,
            "GENLOCK_WELCOME_CREDITS": str(WELCOME_CREDITS),
            "GENLOCK_CATALOG_OVERLAY": str(overlay),
            "GENLOCK_MEDIA_URL": (folder / "media").absolute().as_uri(),
            **options.settings,
        },
    )
    fleet = await stack.enter_async_context(instances)
    telegram.dashboard = DashboardLogin(url=f"{fleet.url}/dashboard", token=token)
    await fleet.start(options.instances)
    kie.service.release_tasks()  # not before the service can take their callbacks
    telegram.try_access = TryAccess(url=fleet.url, key=TryKey(database, folder).read)
    return fleet


def _add_users(telegram: TelegramSimulator) -> list[User]:
    """Add the first users, one for each language, and an operator; return the operators."""
    users = telegram.state.users
    if not users:
        for name, language in FIRST_USERS.items():
            telegram.add_user(name, language=language, started=False)
    if not any(user.operator for user in users.values()):
        telegram.add_user(OPERATOR, language="en", started=False, operator=True)
    return [user for user in users.values() if user.operator]


def _write_fast_catalog(folder: Path, speed: float) -> Path:
    """Write the catalog overlay of all parts of the sandbox: painted samples, shorter times, and every offer in use.

    Offers that are not verified are used, too: their provider is simulated from the same data.
    """
    file = folder / "catalog.toml"
    catalog = load()
    tables = "".join(_fast_table(model, speed) for model in catalog.models.values())
    file.write_text(tables + write_samples(folder / "samples", catalog))
    return file


def _fast_table(model: Model, speed: float) -> str:
    seconds = max(2, round(model.expected_seconds / speed))
    offers = f"offers = {json.dumps([offer.provider for offer in model.offers])}\n" if model.more_offers else ""
    return f'[models."{model.id}"]\nexpected_seconds = {seconds}\n{offers}'


@dataclass(frozen=True)
class StopRequests:
    """Signals received: the first asks for a graceful stop, the second for an immediate one."""

    once: asyncio.Event
    again: asyncio.Event

    def record(self) -> None:
        (self.again if self.once.is_set() else self.once).set()


def _listen_for_signals() -> StopRequests:
    stop_requests = StopRequests(asyncio.Event(), asyncio.Event())
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, stop_requests.record)
    return stop_requests


async def _watch(fleet: Fleet, stop_requests: StopRequests, console: Console) -> None:
    """Forward log lines to the page and restart instances that ended, until a stop is requested."""
    fast_ends: Counter[str] = Counter()
    while not stop_requests.once.is_set():
        _forward_log_lines(fleet, console)
        for instance in fleet.instances:
            if not instance.running:
                lived = time() - instance.started_at
                fast_ends[instance.name] = fast_ends[instance.name] + 1 if lived < FAST_SECONDS else 0
                console.print(f"{instance.name} ended with {instance.status} after {lived:.1f} s", style="yellow")
                if fast_ends[instance.name] == FAST_ENDS_MAX:
                    raise ProgramFailed(
                        f"{instance.name} ended {FAST_ENDS_MAX} times right after its start:\n{instance.log_tail()}"
                    )
                instance.start()
        try:
            async with asyncio.timeout(WATCH_SECONDS):
                await stop_requests.once.wait()
        except TimeoutError:
            continue


def _forward_log_lines(fleet: Fleet, console: Console) -> None:
    for line in (line for instance in fleet.instances for line in instance.new_lines()):
        fleet.telegram.state.events.add("log", line=line)
        if line["event"] in PRINTED_EVENTS:
            text = escape_unprintable(f"{line['process']}: {describe_line(line)}")
            console.print(text, style="red", highlight=False, markup=False)


def describe_line(line: Mapping[str, Any]) -> str:
    """Format a log line for the terminal: an alarm with its name, an error with its step."""
    parts = [str(line[key]) for key in ("name", "step", "found", "error") if line.get(key)]
    return str(line.get("text") or f"[{line['event']}] {': '.join(parts)}")


async def _stop(fleet: Fleet, stop_requests: StopRequests, console: Console) -> None:
    """Stop all instances gracefully, or return at once on a second signal."""
    with console.status("Stopping… (Ctrl-C again to stop at once)"):
        loop = asyncio.get_running_loop()
        waiting = [loop.create_task(fleet.stop()), loop.create_task(stop_requests.again.wait())]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def _welcome_panel(fleet: Fleet, options: Options, folder: Path, seconds: float) -> Panel:
    table = Table.grid(padding=(0, 2))
    table.add_row("Chat page", f"[bold link={fleet.telegram.page_url}]{fleet.telegram.page_url}[/]")
    dashboard = f"{fleet.telegram.page_url.rstrip('/')}/dashboard"
    table.add_row("Dashboard", f"[bold link={dashboard}]{dashboard}[/] (logs you in)")
    try_page = f"{fleet.telegram.page_url.rstrip('/')}/try"
    table.add_row("Try the API", f"[bold link={try_page}]{try_page}[/]")
    operators = ", ".join(user.name for user in fleet.telegram.state.users.values() if user.operator)
    table.add_row("Operator", f"{operators}: choose this user on the chat page and write [bold]/admin[/]")
    table.add_row("Health", f"{fleet.url}/health")
    table.add_row("Metrics", f"{fleet.url}/metrics")
    for provider in fleet.telegram.providers.values():
        table.add_row(provider.title, f"{provider.listener.url}/_control (simulated)")
    store = "PostgreSQL" if options.postgres else "SQLite"
    count = len(fleet.instances)
    instances = "1 instance" if count == 1 else f"{count} instances"
    table.add_row("Running", f"genlock serve on {store}, {instances}, ready in {seconds:.1f} s")
    for instance in fleet.instances:
        table.add_row("", f"[dim]{instance.name}: pid {instance.pid}, {instance.url}, log {instance.log}[/]")
    kept = f"{folder} (--fresh starts an empty one)" if options.state else "a temporary folder, removed at the end"
    table.add_row("State", kept)
    table.add_row("Commands", f"in another terminal, first [bold]{escape(SettingsFile(folder).shell_command())}[/]")
    table.add_row("", "")
    table.add_row("Try", "Start, Draw, Z-Image, “cat astronaut”, ✅ Generate")
    table.add_row("", "or write [bold]/gen z-image cat astronaut[/]")
    table.add_row("", f"every user starts with {WELCOME_CREDITS} credits; nothing here costs real money")
    return Panel(table, title="genlock sandbox", subtitle="Ctrl-C stops it", border_style="green", expand=False)


def _ports(first: int | None) -> list[int]:
    """Ports of page, service, Kie.ai and file host: consecutive, or any free ones unless --port was given."""
    row = list(range(first or FIRST_PORT, (first or FIRST_PORT) + 4))
    taken = [port for port in row if not is_free_port(port)]
    if first is not None and taken:
        raise Refusal(f"port {taken[0]} is in use: stop what uses it, or give another first port with --port")
    return [find_free_port() if port in taken else port for port in row]


def _taken_ports(first: int | None, ports: Sequence[int]) -> str:
    """Return in one line which ports are in use and what is used instead; empty if none is."""
    parts = ("the chat page", "the service", "Kie.ai", "Kie.ai's file host")
    expected = range(first or FIRST_PORT, (first or FIRST_PORT) + 4)
    found = [
        f"{default} is in use, so {part} is on {port}"
        for default, port, part in zip(expected, ports, parts, strict=True)
        if default != port
    ]
    return f"Port {'; port '.join(found)}. --port N uses four ports from N on." if found else ""
