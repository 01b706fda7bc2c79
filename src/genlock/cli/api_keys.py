"""`genlock api-keys`: keys of API clients."""

from decimal import Decimal
from typing import Annotated, Any

import typer

from genlock.cli.options import Json, Limit, amount, choice
from genlock.cli.output import echo, echo_json, in_credits, show
from genlock.cli.store import audit, with_store
from genlock.domain.api_key import ALL_SCOPES, ApiKey, ApiScope
from genlock.domain.money import THOUSANDTHS
from genlock.ports import Database, Observer

app = typer.Typer(no_args_is_help=True, help="Keys of API clients.")


def _limit(text: str) -> Decimal:
    if (limit := amount(text)) < 0:
        raise typer.BadParameter(f"{text!r} is less than 0")
    return limit


_Account = Annotated[
    str,
    typer.Argument(
        metavar="ACCOUNT",
        help="The client's name, such as `shop`; or the number of an account, as `genlock wallet ls` shows it.",
    ),
]
_Scopes = Annotated[
    list[str] | None,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="What the key may do: order, read, webhooks; may be repeated. Default: everything.",
    ),
]
_SpendLimit = Annotated[
    Decimal | None,
    typer.Option(metavar="CREDITS", parser=_limit, help="Credits that the key may spend per day (UTC)."),
]
_RequestKey = Annotated[
    str | None,
    typer.Option(
        "--key", metavar="KEY", help="Idempotency key: repeating the command with it makes no second API key."
    ),
]


@app.command()
def create(
    account: _Account,
    name: Annotated[str, typer.Option(metavar="TEXT", help="What the key is for, to tell it from others.")] = "",
    scope: _Scopes = None,
    spend_limit: _SpendLimit = None,
    key: _RequestKey = None,
    as_json: Json = False,
) -> None:
    """Create a key for an API client. Its secret is shown once: it is stored only as a hash."""
    import secrets

    from genlock.engine.api_keys import create_api_key, ensure_api_account

    scopes = frozenset(choice(ApiScope, word, "--scope") for word in scope) if scope else ALL_SCOPES

    async def work(store: Database, _: Observer) -> tuple[ApiKey, str | None]:
        account_id = int(account) if account.isdecimal() else await ensure_api_account(store, account)
        bot = (await store.account(account_id)).bot
        request_key = f"operator:{key or secrets.token_hex(8)}"
        made, secret = await create_api_key(
            store,
            account_id,
            name=name or account,
            scopes=scopes,
            spend_limit=None if spend_limit is None else int(spend_limit * THOUSANDTHS),
            request_key=request_key,
            author="operator",
            random_bytes=secrets.token_bytes,
        )
        after = {"key": made.id, "name": made.name, "scopes": sorted(made.scopes)}
        await audit(store, "create_api_key", made.account_id, bot=bot, key=f"api_key:{request_key}", after=after)
        return made, secret

    made, secret = with_store(work)
    if as_json:
        echo_json({**_row(made), "secret": secret})
        return
    if secret is None:
        echo(f"This was already done: key {made.id} of account {made.account_id}. Its secret is not stored.")
        return
    echo(f"Key {made.id} of account {made.account_id}. Copy it now, it is not shown again:")
    echo(secret)
    echo(f"Credit the account with: genlock wallet credit {made.account_id} CREDITS --reason REASON")


@app.command()
def ls(
    account: Annotated[int | None, typer.Argument(metavar="ACCOUNT", help="Only keys of this account.")] = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List keys, newest first: never their secrets."""
    found = with_store(lambda store, _: store.api_keys(account, before=None, limit=limit))
    show([_row(key) if as_json else _shown(key) for key in found], as_json=as_json, empty="No API keys.")


@app.command()
def revoke(
    key_id: Annotated[int, typer.Argument(metavar="KEY", help="The key's number, as `genlock api-keys ls` shows it.")],
    as_json: Json = False,
) -> None:
    """Revoke a key for good: requests with it are refused from now on. Orders already made go on."""

    async def work(store: Database, _: Observer) -> tuple[ApiKey | None, ApiKey | None]:
        revoked = await store.revoke_api_key(key_id)
        if revoked is not None:
            bot = (await store.account(revoked.account_id)).bot
            before = {"key": revoked.id, "name": revoked.name}
            await audit(store, "revoke_api_key", revoked.account_id, bot=bot, before=before)
        return revoked, await store.api_key(key_id)

    revoked, found = with_store(work)
    if found is None:
        echo(f"There is no key {key_id}. `genlock api-keys ls` lists them.", color="red", err=True)
        raise typer.Exit(1)
    if as_json:
        echo_json({**_row(found), "revoked_now": revoked is not None})
        return
    outcome = "is revoked" if revoked is not None else "was revoked before"
    echo(f"Key {found.id} ({found.shown}…) of account {found.account_id} {outcome}.")


def _row(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "account": key.account_id,
        "name": key.name,
        "key": f"{key.shown}…",
        "scopes": " ".join(scope.value for scope in ApiScope if scope in key.scopes),
        "spend_limit": key.spend_limit,
        "spent_today": key.spent_today,
        "created": key.created_at,
        "last_used": key.last_used_at,
        "revoked": key.revoked_at,
    }


def _shown(key: ApiKey) -> dict[str, Any]:
    """Return a key as a row that fits 80 columns; `--json` has every date."""
    limit = "" if key.spend_limit is None else f" of {in_credits(key.spend_limit)}"
    row = _row(key)
    return {
        **{name: row[name] for name in ("id", "account", "name", "key")},
        "scopes": "all" if key.scopes == ALL_SCOPES else row["scopes"],
        "credits today": f"{in_credits(key.spent_today)}{limit}",
        "last used": key.last_used_at,
        "state": "active" if key.revoked_at is None else "revoked",
    }
