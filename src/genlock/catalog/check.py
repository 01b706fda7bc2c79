"""Checks that every offered model can be ordered: its smallest and its largest input have a price and are accepted.

The same holds for each of its offers: the smallest input, and the largest one that the provider can be asked for.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from genlock.domain.catalog import Catalog, Model
from genlock.domain.errors import GenlockError
from genlock.domain.offer import Offer

Send = Callable[[Offer, Mapping[str, object]], Awaitable[None]]
"""Orders an input, under the provider's names, from the provider; raises GenlockError if the provider refuses it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    model: str
    provider: str
    input: str  #: "minimal" or "maximal"
    why: str


async def check(catalog: Catalog, sends: Mapping[str, Send] | None = None) -> list[Failure]:
    """Return every reason why an offered model cannot be ordered, or one of its offers cannot make it.

    `sends` orders by provider; the offers of other providers are checked without an order.
    """
    failures = []
    for model in catalog.offered():
        for offer in model.offers:
            send = (sends or {}).get(offer.provider)
            for name in ("minimal", "maximal"):
                try:
                    values = model.minimal_input() if name == "minimal" else model.maximal_input(offer.accepts)
                    await _check_one(model, offer, values, send)
                except GenlockError as error:
                    failures.append(Failure(model=model.id, provider=offer.provider, input=name, why=str(error)))
    return failures


async def _check_one(model: Model, offer: Offer, values: dict[str, object], send: Send | None) -> None:
    if model.validate(values) != values:
        raise GenlockError("the input changes when it is validated again")
    if model.credits(values) <= 0 and not model.free and model.own_price is None:
        raise GenlockError("the input costs nothing")
    if not offer.accepts(values):
        raise GenlockError("the offer does not take this input")
    if send is not None:
        await send(offer, offer.input(values))
