"""Checks that every offered model can be ordered: its smallest and its largest input have a price and are accepted."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from genlock.domain.catalog import Catalog, Model
from genlock.domain.errors import GenlockError

Send = Callable[[Model, Mapping[str, object]], Awaitable[None]]
"""Orders an input of a model from its provider; raises GenlockError if the provider refuses it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    model: str
    input: str  #: "minimal" or "maximal"
    why: str


async def check(catalog: Catalog, sends: Mapping[str, Send] | None = None) -> list[Failure]:
    """Return every reason why an offered model cannot be ordered.

    `sends` orders by provider; the models of other providers are checked without an order.
    """
    failures = []
    for model in catalog.offered():
        for name, make in (("minimal", model.minimal_input), ("maximal", model.maximal_input)):
            try:
                await _check_one(model, make(), (sends or {}).get(model.provider))
            except GenlockError as error:
                failures.append(Failure(model=model.id, input=name, why=str(error)))
    return failures


async def _check_one(model: Model, values: dict[str, object], send: Send | None) -> None:
    if model.validate(values) != values:
        raise GenlockError("the input changes when it is validated again")
    if model.credits(values) <= 0 and not model.free and model.own_price is None:
        raise GenlockError("the input costs nothing")
    if send is not None:
        await send(model, values)
