"""`genlock dashboard`: logins to the operator's dashboard, and its figures."""

from typing import Annotated

import typer

from genlock.cli.options import Json
from genlock.cli.output import echo, echo_json
from genlock.cli.store import with_store
from genlock.ports import Database, Observer

app = typer.Typer(no_args_is_help=True, help="The operator's dashboard in the browser.")


@app.command()
def link(
    operator: Annotated[
        str,
        typer.Option(metavar="ID", help="Telegram id of the operator to log in as. Default: an owner without a chat."),
    ] = "",
    as_json: Json = False,
) -> None:
    """Print a link that logs in to the dashboard once. It works for 10 minutes."""
    from genlock.app.logins import make_logins, public_url
    from genlock.domain.errors import Refusal
    from genlock.domain.operator import LoginMethod
    from genlock.engine.logins import COMMAND_OPERATOR
    from genlock.settings import Settings, read_settings

    settings = read_settings(Settings)

    async def work(store: Database, _: Observer) -> str | None:
        return await make_logins(settings, store).make_link(operator or COMMAND_OPERATOR, LoginMethod.COMMAND)

    path = with_store(work)
    if path is None:
        raise Refusal(
            f"{operator} is not an operator: add the id to GENLOCK_ADMIN_IDS, or give it a role in the dashboard"
        )
    url = f"{public_url(settings)}{path}"
    if as_json:
        echo_json({"url": url})
    else:
        echo(url)


@app.command("rebuild-figures")
def rebuild_figures() -> None:
    """Count the figures of the overview again. Reads all orders, accounts and payments."""

    async def work(store: Database, _: Observer) -> int:
        await store.clear_figures()
        return (await store.figures_progress()).newest_job

    newest = with_store(work)
    echo(
        f"The figures were deleted. The leader counts them again, up to job {newest}: it takes about two"
        " minutes for a million orders. The overview says when recent orders are still missing."
    )
