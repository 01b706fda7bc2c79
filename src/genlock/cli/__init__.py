"""The command line: what an operator can ask and do. A page per group of commands."""

import sys
from typing import Annotated

import typer

from genlock import __version__
from genlock.cli import incoming, jobs, models, service, trials, wallet
from genlock.domain.errors import GenlockError

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Generations, delivered once and charged once.")
app.add_typer(service.app)
app.add_typer(trials.app)
app.add_typer(jobs.app, name="jobs")
app.add_typer(incoming.orphans, name="orphans")
app.add_typer(incoming.updates, name="updates")
app.add_typer(wallet.app, name="wallet")
app.add_typer(models.app, name="models")


def _tell_version(wanted: bool) -> None:  # noqa: FBT001 - a flag of the command
    if wanted:
        typer.echo(f"genlock {__version__}")
        raise typer.Exit


@app.callback()
def genlock(
    _: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """Generations, delivered once and charged once."""


def main() -> None:
    """Run a command; what went wrong is said in a sentence."""
    try:
        app()
    except GenlockError as error:
        typer.secho(str(error), fg="red", err=True)
        sys.exit(1)
