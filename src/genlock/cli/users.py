"""`genlock users`: the users of the bots."""

from typing import Annotated

import typer

from genlock.cli.options import AccountId, Json, Limit
from genlock.cli.output import echo, in_credits, show
from genlock.cli.store import ACTOR, with_store
from genlock.ports import Database, Observer

app = typer.Typer(no_args_is_help=True, help="Users of the bots: what they owe, and erasing their data.")


@app.command()
def debts(limit: Limit = 20, as_json: Json = False) -> None:
    """List users who owe credits: Telegram refunded Stars they had spent. The next top-up repays the debt."""
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


@app.command()
def erase(
    account: AccountId, yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False
) -> None:
    """Erase the personal data of a user for good. Removes name, inputs, files, results, messages; keeps the ledger."""
    import secrets

    from genlock.engine.erasure import FILES_OF, Erasure

    if not yes:
        typer.confirm(f"Erase the name, inputs, files and results of account {account} for good?", abort=True)

    async def work(store: Database, _: Observer) -> tuple[bool, bool]:
        erasure = Erasure(store)
        await erasure.request(account, ACTOR, f"erase:{secrets.token_hex(8)}")
        erased = account in await erasure.run((await store.account(account)).bot, older_than=0.0)
        return erased, await store.kv_get(f"{FILES_OF}{account}") is not None

    erased, files = with_store(work)
    if erased:
        echo(
            f"The personal data of account {account} is erased. Balance and ledger stay, without a name. "
            "The service tells the user, if there is a chat."
        )
    elif files:
        echo(f"The rows of account {account} are erased. The service deletes its files in the media store next.")
    else:
        echo(
            f"Not erased yet: account {account} has open orders or messages, a bulk action is searching inputs, or the "
            "database is busy. The service erases the data as soon as it can."
        )
