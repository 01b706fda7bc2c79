"""`genlock models`: the models on sale, their inputs and prices."""

import asyncio
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from genlock.cli.options import Json, choice
from genlock.cli.output import echo, echo_json, show

app = typer.Typer(no_args_is_help=True, help="Models on sale: inputs and prices.")


def _catalog() -> tuple[Any, Any]:
    from genlock.app.plugins import find_plugins
    from genlock.app.providers import load_catalog
    from genlock.settings import Settings, read_settings

    settings = read_settings(Settings)
    return load_catalog(settings, find_plugins()), settings


@app.command()
def ls(
    category: Annotated[str | None, typer.Option(metavar="CATEGORY", help="Only models of this category.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Also models that are not offered, with the reason.")] = False,
    as_json: Json = False,
) -> None:
    """List models with the lowest price a user pays."""
    from genlock.catalog import tables
    from genlock.domain.catalog import Category, Status

    catalog, settings = _catalog()
    wanted = choice(Category, category, "--category")
    rows = [
        tables.brief(model, settings.markup, settings.credit_usd, with_status=all_)
        for model in catalog.models.values()
        if (all_ or model.status is Status.OFFERED) and wanted in (None, model.category, *model.also)
    ]
    if not as_json:
        rows = [row | {"from": "" if row["from"] is None else f"{row['from']:.15g} credits"} for row in rows]
    show(rows, as_json=as_json, empty="No models.")


@app.command("show")
def show_model(
    model_id: Annotated[str, typer.Argument(metavar="MODEL", help="The id, as `genlock models ls` shows it.")],
    as_json: Json = False,
) -> None:
    """Show one model: inputs, rules, prices and providers."""
    from genlock.app.providers import configured_providers
    from genlock.catalog import tables

    catalog, settings = _catalog()
    model = catalog.get(model_id)
    configured = model.made_by(configured_providers())
    if as_json:
        details = tables.details(model, settings.markup, settings.credit_usd) | {"provider_configured": configured}
        echo_json(details, default=tables.plain)
        return
    echo(f"{model.title}, {model.category}, {model.status}" + (f": {model.reason}" if model.reason else ""))
    not_on_sale = "" if configured else " (no key is set for it, so the service does not sell this model)"
    echo(f"Provider: {', '.join(offer.provider for offer in model.used_offers())}{not_on_sale}")
    if model.note:
        echo(model.note)
    echo("")
    show(tables.inputs(model), as_json=False, empty="No inputs.")
    echo("")
    names = {"provider_credits": "provider's credits", "our_credits": "price in credits", "as_of": "as of"}
    prices = tables.prices(model, settings.markup, settings.credit_usd)
    rows = [{names.get(name, name): value for name, value in row.items()} for row in prices]
    show(rows, as_json=False, empty="No price is known.")
    echo("")
    show(tables.offers(model), as_json=False, empty="No provider makes it.")


@app.command()
def check(as_json: Json = False) -> None:
    """Order every offer of every model from its simulated provider.

    Each is ordered with its smallest and its largest input. Exits 1 if one is refused. Offers of a provider without a
    simulator are checked for inputs and prices only.
    """
    from genlock.sandbox.order_all import SIMULATORS, order_all

    catalog, _ = _catalog()
    failures = [asdict(failure) for failure in asyncio.run(order_all(catalog))]
    offered, failed = len(catalog.offered()), len({failure["model"] for failure in failures})
    not_ordered = Counter(
        offer.provider for model in catalog.offered() for offer in model.offers if offer.provider not in SIMULATORS
    )
    if as_json:
        result = {"offered": offered, "failed": failed, "failures": failures, "not_ordered": dict(not_ordered)}
        echo_json(result)
    else:
        for provider, count in not_ordered.items():
            echo(f"{count} offers of {provider} were not ordered: there is no simulator of this provider.")
        show(failures, as_json=False, empty=f"All {offered} offered models can be ordered, and each has a price.")
    raise typer.Exit(1 if failed else 0)


@app.command()
def sync(
    apply: Annotated[bool, typer.Option("--apply", help="Write the differences to the overlay file.")] = False,
    as_json: Json = False,
) -> None:
    """Compare the catalog with what the providers publish.

    Providers that publish a schema of each model are asked if their key is set. A provider that does not answer is
    named, the others are compared, nothing is written, and the exit status is 1.
    """
    from genlock.catalog import load, sync, tables
    from genlock.domain.errors import Refusal
    from genlock.settings import Settings, read_settings

    settings = read_settings(Settings)
    path = settings.catalog_overlay
    if apply and path is None:
        raise Refusal("GENLOCK_CATALOG_OVERLAY is not set, so there is no file to write to: set it to a path")
    catalog = load(path if path and path.exists() else None)
    lists, problems = _fetch_lists(catalog)
    found = sync.diff(catalog, lists)
    if as_json:
        echo_json(asdict(found) | {"problems": problems}, default=tables.plain)
    elif found or not problems:
        show(tables.differences(found), as_json=False, empty="The catalog agrees with the providers' lists.")
        if rows := tables.not_compared(found):
            echo("These prices were not compared. Look them up on the providers' sites.")
            show(rows, as_json=False, empty="")
    for provider, why in problems.items():
        echo(f"{provider} was not compared: {why}", color="red", err=True)
    if problems:
        if apply:
            echo("Nothing was written, because the overlay would lose what an earlier sync found there.", err=True)
        raise typer.Exit(1)
    if apply and path:
        _apply_lists(lists, path)


def _fetch_lists(catalog: Any) -> tuple[Any, dict[str, str]]:
    """Return the lists by provider, and why the lists of the others cannot be read."""
    from genlock.app.providers import fetch_public_lists
    from genlock.ports.provider import ListsIncomplete

    try:
        return asyncio.run(fetch_public_lists(catalog)), {}
    except ListsIncomplete as incomplete:
        return incomplete.lists, dict(incomplete.problems)


def _apply_lists(lists: Any, path: Path) -> None:
    from genlock.catalog import load, overlay, sync

    changes = sync.overlay(load(), lists, datetime.now(UTC).date().isoformat())
    overlay.write(path, overlay.written(path, changes))
    echo(f"{path}: {len(changes)} models differ from the package.", err=True)
