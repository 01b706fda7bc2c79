"""`genlock orphans`: stored callbacks whose job is not known."""

from typing import Annotated

import typer

from genlock.cli.options import Json, Limit, choice
from genlock.cli.output import show
from genlock.cli.store import with_store

app = typer.Typer(no_args_is_help=True, help="Callbacks whose job is not known.")


@app.command()
def ls(
    state: Annotated[str, typer.Option(metavar="STATE", help="orphan, matched, expired, unreadable, …")] = "orphan",
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List stored callbacks by their state."""
    from genlock.domain.inbox import InboxState

    wanted = choice(InboxState, state, "--state")
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
    nothing = "No orphaned callbacks." if wanted is InboxState.ORPHAN else f"No callbacks in state {state}."
    show(rows, as_json=as_json, empty=nothing)
