"""Commands of the service: serve, migrate, doctor."""

import asyncio
from dataclasses import asdict

import typer

from genlock.cli.options import Json
from genlock.cli.output import echo, echo_json
from genlock.cli.store import with_store
from genlock.ports import Observer, Store

app = typer.Typer()


@app.command()
def serve() -> None:
    """Run the bot: web endpoints and workers in one process.

    SIGTERM or Ctrl-C shuts down gracefully, a second one immediately.
    """
    from genlock.settings import ServiceSettings, read_settings

    settings = read_settings(ServiceSettings)
    from genlock.service import run

    raise typer.Exit(run(settings))


@app.command()
def migrate() -> None:
    """Bring the database schema up to date. Safe to repeat, and to run on several machines at the same time."""

    async def work(store: Store, _: Observer) -> list[str]:
        return store.applied  # opening a store applies the migrations

    applied = with_store(work, existing=False)
    echo(f"Applied {', '.join(applied)}." if applied else "The schema is up to date.")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check database, Telegram, providers and callbacks, and leave nothing behind. Exits 1 if a check fails."""
    from genlock.doctor.doctor import Doctor
    from genlock.settings import Settings, read_settings, unknown_settings_messages

    phases = asyncio.run(Doctor(read_settings(Settings)).examine())
    ok, warnings = all(phase.ok for phase in phases), unknown_settings_messages()
    if as_json:
        report = {"ok": ok, "phases": [asdict(phase) for phase in phases], "warnings": warnings}
        echo_json(report)
    else:
        for warning in warnings:
            echo(f"! {warning}", color="yellow")
        for phase in phases:
            echo(f"{'✔' if phase.ok else '✘'} {phase.name}: {phase.detail}", color=None if phase.ok else "red")
        echo("All checks passed." if ok else "Some checks failed; the lines above say what to do.")
    raise typer.Exit(0 if ok else 1)
