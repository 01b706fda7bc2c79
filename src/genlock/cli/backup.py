"""`genlock backup` and `genlock restore`: the whole database in one file."""

import asyncio
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from genlock.cli.options import Json
from genlock.cli.output import echo, echo_json
from genlock.domain.backup import RestoreSummary

app = typer.Typer()

File = Annotated[Path, typer.Argument(metavar="FILE", help="The backup, such as genlock-2026-11-16.backup.")]
_VIOLATIONS_SHOWN = 5


@app.command()
def backup(
    file: File,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Write the whole database to one file, while the service runs.

    The file is compressed, is complete or absent, is read back before it gets its name, and can be read by its owner
    only. It contains what users wrote: store it like the database.
    """
    from genlock.app.backups import back_up
    from genlock.settings import Settings, read_settings

    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is not signal.SIG_IGN:  # as `nohup` ignores SIGHUP
            signal.signal(ending, signal.default_int_handler)  # as Ctrl-C: unfinished files are removed
    done = asyncio.run(back_up(read_settings(Settings).database_url, file, overwrite=overwrite))
    if as_json:
        echo_json(asdict(done))
        return
    echo(
        f"{file}: {sum(done.rows.values()):,} rows of {len(done.rows)} tables, {done.size_bytes:,} bytes, as of "
        f"{done.created_at:%Y-%m-%d %H:%M:%S} UTC; read back and complete."
    )


@app.command()
def restore(
    file: File,
    force: Annotated[bool, typer.Option("--force", help="Replace everything in a database that is not empty.")] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue open jobs: only if no instance has run since the backup, such as in a move."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Replace the database with a backup. Stop every instance first.

    A backup of SQLite can be restored to PostgreSQL, and the other way round. All of it is restored or nothing. Jobs
    that were open when the backup was made may have ended since, so they wait on the operator's list. Exits 1 if the
    restored ledger does not add up.
    """
    from genlock.app import backups
    from genlock.log import Silent
    from genlock.settings import Settings, read_settings

    url = read_settings(Settings).database_url
    done = asyncio.run(backups.restore(url, file, observer=Silent(), force=force, resume=resume))
    if as_json:
        echo_json(asdict(done))
    else:
        for line in _report(done, resume=resume):
            echo(line)
    raise typer.Exit(1 if done.violations else 0)


def _report(done: RestoreSummary, *, resume: bool) -> list[str]:
    """Return what was restored, and what the operator does next."""
    lines = [f"Restored {sum(done.rows.values()):,} rows, as of {done.created_at:%Y-%m-%d %H:%M:%S} UTC."]
    if done.left_out:
        lines.append(f"Left out, because genlock does not know it: {', '.join(done.left_out)}.")
    if done.migrated:
        lines.append(f"The backup was of an older version: {', '.join(done.migrated)} applied.")
    lines += _violations(done)
    if resume:
        lines.append("Open jobs continue when an instance starts.")
    elif done.parked_jobs or done.parked_updates or done.stopped_broadcasts:
        lines.append(
            f"Waiting for you, because they may have been done after the backup: {done.parked_jobs} jobs (`genlock "
            f"jobs attention`), {done.parked_updates} updates (`genlock updates ls`). `genlock jobs retry JOB` "
            "continues a job on the message it has; `genlock jobs cancel JOB` returns the credits. Broadcasts "
            f"stopped: {done.stopped_broadcasts}."
        )
    return [*lines, "Next: `genlock doctor`, then start the instances. See docs/how-to/backup.md for what was lost."]


def _violations(done: RestoreSummary) -> list[str]:
    if not done.violations:
        return ["Every invariant of money and jobs holds."]
    first = (
        f"{len(done.violations)} invariants do not hold. They did not when the backup was made; `genlock jobs check` "
        "lists them. Look at them before you start an instance:"
    )
    return [first, *(f"  {violation}" for violation in done.violations[:_VIOLATIONS_SHOWN])]
