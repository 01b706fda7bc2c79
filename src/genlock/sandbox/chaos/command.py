"""`genlock chaos`: kill, pause and disconnect real processes while orders are placed; report the guarantees."""

import asyncio
import json
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from time import time
from typing import Any

from genlock.domain.printable import escape_unprintable
from genlock.sandbox.chaos import chaos
from genlock.sandbox.chaos.disrupted_run import DisruptedRun, Load, Plan
from genlock.sandbox.postgres import PostgresServer
from genlock.sandbox.processes import guarded_folder

PRINT_SECONDS = 5.0


def run(plan: Plan, *, as_json: bool) -> int:
    """Run, print the report, and return the exit status."""
    plan.check()
    with ExitStack() as stack:
        folder = stack.enter_context(guarded_folder())
        database = stack.enter_context(PostgresServer.running()) if plan.store == "postgres" else None
        through = _through_api if plan.through == "api" else _through_chats
        report, histories = asyncio.run(through(plan, folder, database))
    if as_json:
        text = json.dumps(report, ensure_ascii=False, indent=2)
        sys.stdout.write(escape_unprintable(text, keep="\n") + "\n")
    else:
        _print(report)
    for lines in histories:
        sys.stderr.write(escape_unprintable("\n".join(lines), keep="\n") + "\n\n")
    return 0 if report["ok"] else 1


async def _through_chats(
    plan: Plan, folder: Path, database: PostgresServer | None
) -> tuple[dict[str, Any], list[list[str]]]:
    async with chaos.running_chaos(plan, folder, database) as running:
        await chaos.run_orders(running, ProgressPrinter(running, running.users))
        return await chaos.report(running)


async def _through_api(
    plan: Plan, folder: Path, database: PostgresServer | None
) -> tuple[dict[str, Any], list[list[str]]]:
    from genlock.sandbox.chaos import api_chaos  # noqa: PLC0415 - needs a package that chaos in chats does not

    async with api_chaos.running_api_chaos(plan, folder, database) as running:
        await api_chaos.run_orders(running, ProgressPrinter(running, running.clients))
        return await api_chaos.report(running)


class ProgressPrinter:
    """Print progress: on one changing line in a terminal, else on a new line every few seconds."""

    def __init__(self, running: DisruptedRun, load: Load) -> None:
        from rich.console import Console  # noqa: PLC0415 - slow to import

        self._console = Console(stderr=True)
        self._run = running
        self._load = load
        self._printed_at = 0.0
        self._started = time()

    def __call__(self) -> None:
        load, disruptor = self._load, self._run.disruptor
        now = time()
        disruptions = Counter(disruption.what for disruption in disruptor.disruptions)
        text = (
            f"{now - self._started:5.0f} s  {load.ended} of {self._run.plan.jobs} orders ended, "
            f"{load.placed - load.ended} open, {disruptions['kill']} kills, "
            f"{disruptions['pause']} pauses, {disruptor.restarts} database restarts"
        )
        if self._console.is_terminal:
            self._console.print(text, end="\r", highlight=False, soft_wrap=True)
        elif now - self._printed_at >= PRINT_SECONDS:
            self._printed_at = now
            self._console.print(text, highlight=False, soft_wrap=True)


def _print(report: dict[str, Any]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, show_header=False)
    for key, value in report.items():
        if key in {"violations", "concerned"}:
            value = "\n".join(value) or "none"  # noqa: PLW2901 - shown, not changed
        if isinstance(value, dict):
            value = ", ".join(f"{name} {count}" for name, count in value.items()) or "none"  # noqa: PLW2901
        table.add_row(key.replace("_", " "), Text(escape_unprintable(str(value), keep="\n")))
    console = Console()
    console.print()
    console.print(table)
    good = "[green]Every order ended exactly once.[/green]"
    console.print(good if report["ok"] else "[red]A guarantee was broken: see above.[/red]")
