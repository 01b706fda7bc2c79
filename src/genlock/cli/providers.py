"""`genlock providers`: which providers are paused because they failed again and again."""

from typing import Annotated

import typer

from genlock.cli.options import Json
from genlock.cli.output import echo, show
from genlock.cli.store import audit, with_store
from genlock.domain.breaker import BreakerState
from genlock.ports import Database, Observer

app = typer.Typer(no_args_is_help=True, help="Providers that are paused after failures.")

#: what operators read instead of the states of a circuit breaker
STATES = {
    BreakerState.CLOSED: "in use",
    BreakerState.OPEN: "paused",
    BreakerState.HALF_OPEN: "being tried",
}


@app.command()
def ls(as_json: Json = False) -> None:
    """List the providers and models that failed lately."""
    found = with_store(lambda store, _: store.breakers())
    rows = [
        {
            "provider": breaker.provider,
            "model": breaker.model,
            "state": breaker.state(breaker.read_at).value if as_json else STATES[breaker.state(breaker.read_at)],
            "failures": breaker.failures,
            "until": breaker.open_until and breaker.open_until.replace(microsecond=0),
            "reason": breaker.reason,
        }
        for breaker in found
    ]
    show(rows, as_json=as_json, empty="No provider has failed lately.")


@app.command()
def reset(
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", help="As `genlock providers ls` shows it.")],
    model: Annotated[str | None, typer.Option(metavar="MODEL", help="Only this model of the provider.")] = None,
) -> None:
    """Use a paused provider again. Its count of failures starts at zero again, and orders go there right away."""
    from genlock.domain.errors import ActionNotAllowed

    async def work(store: Database, _: Observer) -> int:
        closed = await store.reset_breakers(provider, model)
        if closed:
            await audit(store, "reset_provider", f"provider {provider}", **({"before": model} if model else {}))
        return closed

    if not with_store(work):
        raise ActionNotAllowed(f"{provider!r} is not paused. `genlock providers ls` lists what has failed lately.")
    echo(f"Orders go to {provider} again; running instances notice it within seconds.")
