"""The command line for operators: one module per group of commands."""

import sys
from typing import Annotated

import typer

from genlock import __version__
from genlock.cli import jobs, models, orphans, sandbox, service, updates, users, wallet
from genlock.domain.errors import GenlockError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Bots that sell AI generations: delivered once, charged only if they arrived.",
)
app.add_typer(service.app)
app.add_typer(sandbox.app)
app.add_typer(jobs.app, name="jobs")
app.add_typer(orphans.app, name="orphans")
app.add_typer(updates.app, name="updates")
app.add_typer(users.app, name="users")
app.add_typer(wallet.app, name="wallet")
app.add_typer(models.app, name="models")


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - a flag of the command
    if wanted:
        typer.echo(f"genlock {__version__}")
        raise typer.Exit


@app.callback()
def genlock(
    _: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Bots that sell AI generations: delivered once, charged only if they arrived."""


def main() -> None:
    """Run a command. An expected error is printed as a sentence, without a traceback."""
    try:
        app()
    except GenlockError as error:
        typer.secho(str(error), fg="red", err=True)
        sys.exit(1)
