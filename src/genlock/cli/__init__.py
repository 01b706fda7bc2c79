"""The command line for operators: one module per group of commands."""

import sys
import traceback
from typing import Annotated

import typer

from genlock import __version__
from genlock.cli import (
    api_keys,
    backup,
    dashboard,
    jobs,
    models,
    orphans,
    providers,
    sandbox,
    service,
    updates,
    users,
    wallet,
)
from genlock.cli.output import echo
from genlock.domain.errors import AccountNotFound, GenlockError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the boxes of rich show flags as options with a value of type bool
    help="Bots that sell AI generations: delivered once, charged only if they arrived.",
)
app.add_typer(service.app)
app.add_typer(backup.app)
app.add_typer(sandbox.app)
app.add_typer(jobs.app, name="jobs")
app.add_typer(orphans.app, name="orphans")
app.add_typer(updates.app, name="updates")
app.add_typer(users.app, name="users")
app.add_typer(wallet.app, name="wallet")
app.add_typer(models.app, name="models")
app.add_typer(api_keys.app, name="api-keys")
app.add_typer(providers.app, name="providers")
app.add_typer(dashboard.app, name="dashboard")


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - a flag of the command
    if wanted:
        echo(f"genlock {__version__}")
        raise typer.Exit


@app.callback()
def genlock(
    _: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Bots that sell AI generations: delivered once, charged only if they arrived."""


def main() -> None:
    """Run a command. An expected error is printed as a sentence, any other one as a traceback without secrets."""
    try:
        app()
    except AccountNotFound:
        echo("There is no account with this number. `genlock wallet ls` lists them.", color="red", err=True)
        sys.exit(1)
    except GenlockError as error:
        echo(str(error), color="red", err=True)
        sys.exit(1)
    except Exception:  # noqa: BLE001 - an error of a database or a network may quote an address with a password
        echo(_mask_settings(traceback.format_exc()), err=True)
        sys.exit(1)


def _mask_settings(text: str) -> str:
    from genlock.log import Mask
    from genlock.settings import Settings, read_settings

    try:
        return Mask(read_settings(Settings).secrets())(text)
    except GenlockError:  # the settings are wrong, so no command has used them
        return Mask([])(text)
