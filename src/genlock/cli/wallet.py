"""`genlock wallet`: balances and ledger."""

from dataclasses import asdict
from decimal import Decimal
from typing import Annotated, Any

import typer

from genlock.cli.options import AccountId, Json, Limit, amount
from genlock.cli.output import echo, echo_json, in_credits, show
from genlock.cli.store import ACTOR, with_store
from genlock.domain.profile import AccountSummary
from genlock.ports import Database, Observer, Store

app = typer.Typer(no_args_is_help=True, help="Balances and ledger.")
#: characters of a reason in the audit log; the ledger has all of it
AUDIT_DETAIL = 500


@app.command()
def ls(
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="Only accounts with this number, @username or part of a name.")
    ] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List accounts with their balances, newest first."""
    wanted = text.removeprefix("@") if text else None
    found = with_store(lambda store, _: store.account_summaries(wanted, limit))
    if as_json:
        echo_json([asdict(holder) for holder in found])
        return
    rows = [
        {
            "account": holder.account_id,
            "name": " ".join(filter(None, (holder.name, holder.username and f"@{holder.username}"))),
            "channel and id": f"{holder.channel} {holder.external_id}",
            "credits": _balance(holder),
            "since": holder.since,
        }
        for holder in found
    ]
    show(rows, as_json=False, empty="No accounts." if text is None else f"No accounts match {text!r}.")


def _balance(holder: AccountSummary) -> str:
    """Return what an account has, and what is held or owed of it."""
    parts = [in_credits(holder.available)]
    parts += [f"{in_credits(holder.held)} held"] if holder.held else []
    parts += [f"owes {in_credits(holder.debt)}"] if holder.debt else []
    return ", ".join(parts)


@app.command("show")
def show_wallet(account: AccountId, limit: Limit = 20, as_json: Json = False) -> None:
    """Show the balance of an account and its last ledger entries."""

    async def work(store: Store, _: Observer) -> tuple[Any, Any]:
        return await store.wallet(account), await store.ledger_entries(account, limit)

    wallet, entries = with_store(work)
    if as_json:
        echo_json({**asdict(wallet), "ledger_entries": [asdict(line) for line in entries]})
        return
    debt = f", debt {in_credits(wallet.debt)}" if wallet.debt else ""
    echo(f"available {in_credits(wallet.available)}, held {in_credits(wallet.held)}{debt} credits")
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
        for line in entries
    ]
    show(rows, as_json=False, empty="No ledger entries.")


# A negative number would otherwise be parsed as an option.
@app.command(context_settings={"ignore_unknown_options": True})
def credit(
    account: AccountId,
    credits_: Annotated[
        Decimal,
        typer.Argument(metavar="CREDITS", parser=amount, help="The number of credits; a negative number deducts them."),
    ],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="The reason, stored in the ledger.", prompt=True)],
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Idempotency key: repeating the command with it changes nothing.")
    ] = None,
) -> None:
    """Add credits to an account, or deduct them."""
    import secrets

    from genlock.domain.errors import InsufficientBalance, Refusal
    from genlock.domain.money import THOUSANDTHS, EntryKind, write_amount

    thousandths = int(abs(credits_) * THOUSANDTHS)
    if thousandths == 0:
        raise typer.BadParameter("the amount is 0")
    kind = EntryKind.GRANT if credits_ > 0 else EntryKind.DEBIT
    name = f"operator:{key or secrets.token_hex(8)}"

    async def work(store: Database, _: Observer) -> tuple[bool, Any]:
        try:
            moved = await store.transfer(account, kind, thousandths, name, reason)
        except InsufficientBalance as short:
            available, wanted = in_credits(short.available), in_credits(short.price)
            raise Refusal(f"Nothing was deducted: the balance is {available}, less than {wanted}.") from None
        await store.add_audit(
            key=name,
            actor=ACTOR,
            action="credit" if kind is EntryKind.GRANT else "debit",
            subject=str(account),
            detail=f"{write_amount(thousandths)}: {reason}"[:AUDIT_DETAIL],
            bot=(await store.account(account)).bot,
        )
        return moved, await store.wallet(account)

    done, wallet = with_store(work)
    outcome = "Done" if done else "This was already done"
    left = in_credits(wallet.available)
    echo(f"{outcome} (key {name.removeprefix('operator:')}): account {account} has {left} credits available.")
