"""`genlock updates`: stored updates from Telegram, and those that could not be handled."""

from typing import Annotated

import typer

from genlock.cli.options import Json, Limit, choice
from genlock.cli.output import echo, show
from genlock.cli.store import audit, with_store
from genlock.ports import Database, Observer

app = typer.Typer(no_args_is_help=True, help="What Telegram sent: messages, button presses, payments.")


@app.command()
def ls(
    state: Annotated[str, typer.Option(metavar="STATE", help="dead, new, done or repeated.")] = "dead",
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List updates by their state. A dead update failed in every attempt."""
    from genlock.domain.update import UpdateState

    wanted = choice(UpdateState, state, "--state")
    found = with_store(lambda store, _: store.updates(wanted, limit))
    rows = [
        {
            "id": update.id,
            "bot": update.bot,
            "update": update.update_id,
            "kind": update.kind,
            "received": update.received_at.replace(microsecond=0),
            "note": update.note,
            "body": update.body if as_json else update.body[:60],
        }
        for update in found
    ]
    nothing = "No dead-lettered updates." if wanted is UpdateState.DEAD else f"No updates in state {state}."
    show(rows, as_json=as_json, empty=nothing)


@app.command()
def retry(update_id: Annotated[int, typer.Argument(metavar="ID", help="As `genlock updates ls` shows it.")]) -> None:
    """Handle a dead update again."""
    from genlock.domain.errors import ActionNotAllowed

    async def work(store: Database, _: Observer) -> bool:
        retried = await store.retry_update(update_id)
        if retried:
            await audit(store, "updates.retry", f"update {update_id}")
        return retried

    if not with_store(work):
        raise ActionNotAllowed(f"There is no dead update {update_id}. `genlock updates ls` lists them.")
    echo(f"Update {update_id} is due again. A running instance will handle it.")
