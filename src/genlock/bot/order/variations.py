"""Variations: the same order several times, each with another seed. Pure functions."""

from dataclasses import replace
from random import Random

from genlock.bot.order.draft import Draft
from genlock.bot.order.questions import main_text
from genlock.domain.catalog import Model, Output
from genlock.domain.field import Field, FieldType

#: how many orders a press may make
COUNTS = (2, 3, 4)
SEED = "seed"
SEED_MAX = 2**31 - 1


def varies(model: Model) -> bool:
    """Whether the same order again makes another result: the model makes media from a text."""
    return main_text(model) is not None and Output.TEXT not in model.outputs


def with_copies(draft: Draft, model: Model, count: int, rng: Random) -> Draft:
    """Return the draft as an order that is made `count` times; the first keeps the seed that the user chose."""
    copies = count if count in COUNTS and varies(model) else 1
    field = _seed_field(model)
    seeds = tuple(_draw(field, rng) for _ in range(copies)) if field is not None and copies > 1 else ()
    if seeds and draft.values.get(SEED) is not None:
        seeds = (draft.values[SEED], *seeds[1:])
    return replace(draft, copies=copies, seeds=seeds, price=None, other_prices=())


def copies_of(draft: Draft) -> list[Draft]:
    """Return the orders of the draft, each with its seed and its price."""
    prices = [draft.price, *draft.other_prices, *[None] * draft.copies]
    orders = [replace(draft, copies=1, seeds=(), price=price) for price in prices[: draft.copies]]
    seeds = draft.seeds[: len(orders)]
    orders[: len(seeds)] = [
        replace(order, values={**order.values, SEED: seed}) for order, seed in zip(orders, seeds, strict=False)
    ]
    return orders


def without_ordered(draft: Draft, ordered: int) -> Draft:
    """Return the draft without the orders that have been made."""
    return replace(draft, copies=draft.copies - ordered, seeds=draft.seeds[ordered:], price=None, other_prices=())


def _seed_field(model: Model) -> Field | None:
    field = model.field(SEED)
    return field if field is not None and field.type is FieldType.INTEGER and not field.internal else None


def _draw(field: Field, rng: Random) -> int:
    low, high = max(int(field.min or 0), 0), min(int(field.max or SEED_MAX), SEED_MAX)
    return rng.randint(low, max(low, high))
