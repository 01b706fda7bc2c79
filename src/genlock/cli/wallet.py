"""`genlock wallet`: people's money."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from genlock.cli.options import Json, Limit, PersonId
from genlock.cli.output import in_credits, show
from genlock.cli.store import with_store
from genlock.ports import Observer, Store

app = typer.Typer(no_args_is_help=True, help="People's money.")


@app.command()
def ls(
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="Only who has this number, @name or part of a name.")
    ] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List people with what they have, the newest first."""
    wanted = text.removeprefix("@") if text else None
    found = with_store(lambda store, _: store.account_summaries(wanted, limit))
    if as_json:
        typer.echo(json.dumps([asdict(holder) for holder in found], default=str, ensure_ascii=False, indent=2))
        return
    rows = [
        {
            "person": holder.account_id,
            "name": holder.name,
            "username": f"@{holder.username}" if holder.username else None,
            "channel": holder.channel,
            "id there": holder.external_id,
            "available": in_credits(holder.available),
            "held": in_credits(holder.held),
            "since": holder.since,
        }
        for holder in found
    ]
    show(rows, as_json=False, empty="Nobody." if text is None else f"Nobody is found by {text!r}.")


@app.command("show")
def show_wallet(person: PersonId, limit: Limit = 20, as_json: Json = False) -> None:
    """Show what a person has and the last movements."""

    async def work(store: Store, _: Observer) -> tuple[Any, Any]:
        return await store.wallet(person), await store.ledger_entries(person, limit)

    hold_state, ledger_entries = with_store(work)
    if as_json:
        typer.echo(
            json.dumps({**asdict(hold_state), "ledger_entries": [asdict(line) for line in ledger_entries]}, default=str)
        )
        return
    typer.echo(f"available {in_credits(hold_state.available)}, held {in_credits(hold_state.held)} credits")
    rows = [
        {
            "at": line.at.replace(microsecond=0),
            "what": line.kind.value,
            "credits": in_credits(line.amount),
            "from": line.debit.value,
            "to": line.credit.value,
            "job": line.job_id,
            "reason": line.reason,
        }
        for line in ledger_entries
    ]
    show(rows, as_json=False, empty="No movements.")


# Otherwise a negative number would be taken for an option.
@app.command(context_settings={"ignore_unknown_options": True})
def credit(
    person: PersonId,
    credits_: Annotated[float, typer.Argument(metavar="CREDITS", help="How many credits; negative takes them back.")],
    reason: Annotated[str, typer.Option(help="Why; kept in the ledger.", prompt=True)],
    key: Annotated[str | None, typer.Option(help="Makes it happen once, however often it is run.")] = None,
) -> None:
    """Give a person credits, or take them back."""
    import secrets

    from genlock.domain.money import EntryKind

    amount = round(abs(credits_) * 1000)
    if amount == 0:
        raise typer.BadParameter("nothing to move")
    kind = EntryKind.GRANT if credits_ > 0 else EntryKind.DEBIT
    name = f"operator:{key or secrets.token_hex(8)}"

    async def work(store: Store, _: Observer) -> tuple[bool, Any]:
        return await store.transfer(person, kind, amount, name, reason), await store.wallet(person)

    done, hold_state = with_store(work)
    said = "Done" if done else "This was done before"
    left = in_credits(hold_state.available)
    typer.echo(f"{said} (key {name.removeprefix('operator:')}): person {person} has {left} credits available.")
