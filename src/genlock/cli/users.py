"""`genlock users`: the users of the bots."""

import typer

from genlock.cli.options import Json, Limit
from genlock.cli.output import in_credits, show
from genlock.cli.store import with_store

app = typer.Typer(no_args_is_help=True, help="Users of the bots: what they owe.")


@app.command()
def debts(limit: Limit = 20, as_json: Json = False) -> None:
    """List users who owe credits: Telegram refunded stars they had spent. The next top-up repays it."""
    found = with_store(lambda store, _: store.debtors(limit))
    rows = [
        {
            "account": user.account_id,
            "name": user.name,
            "username": f"@{user.username}" if user.username else None,
            "id there": user.external_id,
            "debt": in_credits(user.debt),
            "available": in_credits(user.available),
        }
        for user in found
    ]
    show(rows, as_json=as_json, empty="No user owes credits.")
