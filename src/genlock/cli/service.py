"""The service itself: run it, bring its database up to date, try out its world."""

import asyncio
import json
from dataclasses import asdict

import typer

from genlock.cli.options import Json
from genlock.cli.store import with_store
from genlock.ports import Observer, Store

app = typer.Typer()


@app.command()
def serve() -> None:
    """Run the bot: web doors and workers in one process. SIGTERM or Ctrl-C ends it in order, a second one at once."""
    from genlock.settings import ServiceSettings, read_settings

    settings = read_settings(ServiceSettings)
    from genlock.serve import run

    raise typer.Exit(run(settings))


@app.command()
def migrate() -> None:
    """Bring the database's schema up to date. Safe to run again, and by several at once."""

    async def work(store: Store, _: Observer) -> list[str]:
        return store.applied  # opening a store brings it up to date

    applied = with_store(work, existing=False)
    typer.echo(f"Applied {', '.join(applied)}." if applied else "The schema is up to date.")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Try out the whole world this is set up for, and leave nothing behind. Exits 1 if something is not right."""
    from genlock.doctor.doctor import Doctor
    from genlock.settings import Settings, read_settings, unknown_words

    phases = asyncio.run(Doctor(read_settings(Settings)).examine())
    ok, warnings = all(phase.ok for phase in phases), unknown_words()
    if as_json:
        told = {"ok": ok, "phases": [asdict(phase) for phase in phases], "warnings": warnings}
        typer.echo(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        for warning in warnings:
            typer.secho(f"! {warning}", fg="yellow")
        for phase in phases:
            typer.secho(f"{'✔' if phase.ok else '✘'} {phase.name}: {phase.detail}", fg=None if phase.ok else "red")
        typer.echo("All is well." if ok else "Something is not right.")
    raise typer.Exit(0 if ok else 1)
