"""`genlock orphans` and `genlock updates`: what came in and found nobody to deal with it."""

from typing import Annotated

import typer

from genlock.cli.options import Json, Limit, choice
from genlock.cli.output import show
from genlock.cli.store import with_store

orphans = typer.Typer(no_args_is_help=True, help="Callbacks whose job is not known.")
updates = typer.Typer(no_args_is_help=True, help="Messages and presses of the chat.")


@orphans.command("ls")
def orphans_ls(
    state: Annotated[str, typer.Option(help="orphan, matched, expired, unreadable, …")] = "orphan",
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List stored callbacks by what became of them."""
    from genlock.domain.inbox import InboxState

    wanted = choice(InboxState, state)
    found = with_store(lambda store, _: store.callbacks(wanted, limit))
    rows = [
        {
            "id": callback.id,
            "provider": callback.provider,
            "task": callback.task_id,
            "job": callback.job_id,
            "received": callback.received_at.replace(microsecond=0),
            "note": callback.note,
            "body": callback.body[:80].decode(errors="replace"),
        }
        for callback in found
    ]
    show(rows, as_json=as_json, empty=f"No callbacks are {state}.")


@updates.command("ls")
def updates_ls(
    state: Annotated[str, typer.Option(help="aside, new, done or repeated.")] = "aside",
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List updates by what became of them; those set aside could not be handled."""
    from genlock.domain.update import UpdateState

    wanted = choice(UpdateState, state)
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
    show(rows, as_json=as_json, empty=f"No updates are {state}.")


@updates.command("retry")
def updates_retry(update_id: Annotated[int, typer.Argument(metavar="ID")]) -> None:
    """Work off an update that was set aside."""
    from genlock.domain.errors import ActionNotAllowed

    if not with_store(lambda store, _: store.retry_update(update_id)):
        raise ActionNotAllowed(f"nothing under {update_id} was set aside")
    typer.echo(f"Update {update_id} is due. A running instance goes on with it.")
