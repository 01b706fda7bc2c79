"""Commands of the service: serve, migrate, doctor."""

import asyncio
from dataclasses import asdict
from typing import Annotated

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
def doctor(
    as_json: Json = False,
    live: Annotated[
        int | None,
        typer.Option(metavar="CHAT", help="Instead, try every kind of edit in this real chat and print a table."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="With --live: do not delete the messages at the end.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --live: do not ask first.")] = False,
    picture_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="With --live: a picture that Telegram can fetch; by default its own logo."),
    ] = None,
) -> None:
    """Check database, Telegram, providers and callbacks. Leaves nothing behind; exits 1 if a check fails."""
    if live is not None:
        _examine_live(live, keep=keep, ask=not yes, picture_url=picture_url, as_json=as_json)
        return
    from genlock.doctor.doctor import Doctor
    from genlock.settings import Settings, read_settings, unknown_settings_messages

    examination = Doctor(read_settings(Settings))
    phases = asyncio.run(examination.examine())
    ok, warnings = all(phase.ok for phase in phases), unknown_settings_messages(examination.warnings())
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


def _examine_live(chat: int, *, keep: bool, ask: bool, picture_url: str | None, as_json: bool) -> None:
    """Say what will be sent, try it, and print the table.

    Exits 1 if the trial could not be made or a row is not as expected, and with the code of the signal that ended it.
    """
    from genlock.doctor.check_failed import CheckFailed
    from genlock.doctor.live import CALLS, PICTURE_URL
    from genlock.doctor.live_report import Interruption, examine_live, live_table
    from genlock.settings import Settings, read_settings

    settings = read_settings(Settings)
    after = "They stay in the chat." if keep else "They are deleted at the end."
    echo(
        f"The bot will send some 20 silent messages to chat {chat} and edit them into photos, videos, animations, "
        f"sounds and documents: about {CALLS} calls, within Telegram's limits, so it takes one to five minutes. "
        f"{after}",
        err=True,
    )
    if ask:
        typer.confirm("Begin?", abort=True, err=True)
    deletes = "" if keep else " Deleting the messages first; interrupt again to leave them in the chat."
    interruption = Interruption(lambda: echo(f"Interrupted.{deletes}", err=True))
    try:
        found = asyncio.run(
            examine_live(settings, chat, keep=keep, picture_url=picture_url or PICTURE_URL, interruption=interruption)
        )
    except CheckFailed as failed:
        echo(str(failed), color="red", err=True)
        raise typer.Exit(1) from None
    if as_json:
        echo_json([asdict(observation) for observation in found])
    else:
        echo(live_table(found, server=settings.telegram_api_url))
    if interruption.signal is not None:
        raise typer.Exit(128 + interruption.signal)
    raise typer.Exit(0 if all(observation.as_expected for observation in found) else 1)
