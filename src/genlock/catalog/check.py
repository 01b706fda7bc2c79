"""Proves that what is offered can be ordered: the least and the most of every model has a price and is accepted."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from genlock.domain.catalog import Catalog, Model
from genlock.domain.errors import GenlockError

Send = Callable[[Model, Mapping[str, object]], Awaitable[None]]
"""Orders this input of a model from a provider; raises GenlockError if it is not accepted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    model: str
    input: str  #: minimal or maximal
    why: str


async def check(catalog: Catalog, send: Send | None = None) -> list[Failure]:
    """Everything that stands in the way of an offered model."""
    failures = []
    for model in catalog.offered():
        for name, make in (("minimal", model.minimal_input), ("maximal", model.maximal_input)):
            try:
                await _check_one(model, make(), send)
            except GenlockError as error:
                failures.append(Failure(model=model.id, input=name, why=str(error)))
    return failures


async def _check_one(model: Model, values: dict[str, object], send: Send | None) -> None:
    if model.validate(values) != values:
        raise GenlockError("the input changes when it is checked again")
    if model.credits(values) <= 0 and not model.free and model.own_price is None:
        raise GenlockError("the input costs nothing")
    if send is not None:
        await send(model, values)
