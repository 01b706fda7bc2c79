"""Everything that a command prints. Much of it comes from outside, so characters that do not print are escaped."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import typer

from genlock.domain.money import write_amount
from genlock.domain.printable import escape_unprintable

#: width of a table that is not printed to a terminal, in columns
UNLIMITED_WIDTH = 10_000


def echo(text: str, *, color: str | None = None, err: bool = False) -> None:
    """Print a text of one or more lines."""
    typer.secho(escape_unprintable(text, keep="\n"), fg=color, err=err)


def echo_json(content: Any, *, default: Callable[[Any], object] = str) -> None:
    echo(json.dumps(content, default=default, ensure_ascii=False, indent=2))


def show(rows: list[dict[str, Any]], *, as_json: bool, empty: str) -> None:
    """Print rows as JSON or as a table."""
    if as_json:
        echo_json(rows, default=_plain)
        return
    if not rows:
        echo(empty)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in rows[0]:
        table.add_column(Text(_cell(name)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    # Output to a file or pipe is searched by programs, so its lines are not cut to a terminal's width.
    Console(width=None if sys.stdout.isatty() else UNLIMITED_WIDTH).print(table)


def show_progress(step: str, rows: int) -> None:
    """Show how far a long command is, on one line of the terminal; nothing if the output goes elsewhere."""
    if sys.stderr.isatty():
        typer.echo(f"\r\033[K{rows:,} rows: {step[:100]}", err=True, nl=False)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _cell(value: object) -> str:
    """Return a value as a cell of a table."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{value.astimezone(UTC):%d %b %H:%M}"
        case dict():
            return ", ".join(
                f"{_cell(key)} {text}" for key, item in value.items() if (text := _cell(item)) not in {"", "no"}
            )
        case list() | tuple():
            return "\n".join(_cell(item) for item in value)
        case _:
            return escape_unprintable(str(value))


def in_credits(thousandths: int) -> str:
    return write_amount(thousandths)
