"""`genlock.plugin` has everything that a plug-in names."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_type_hints

import genlock.plugin
from genlock.domain.delivery import Step
from genlock.domain.job import Actor, AttentionCode, Notice
from genlock.domain.offer import Offer
from genlock.ports.plugin import NoSettings

#: plug-ins are handed these and need none of them
INTERNAL = {Actor, AttentionCode, NoSettings, Notice, Offer, Step}
EXPORTED = [getattr(genlock.plugin, name) for name in genlock.plugin.__all__]


def own_types(hint: Any) -> Iterator[type]:
    """Yield the types of this package in an annotation."""
    if inspect.isclass(hint) and hint.__module__.startswith("genlock."):
        yield hint
    for part in hint if isinstance(hint, list) else get_args(hint):
        yield from own_types(part)


def annotated(kind: type) -> Iterator[Callable[..., Any] | type]:
    """Yield a class, and its methods and properties."""
    yield kind
    for name, member in vars(kind).items():
        if name == "__init__" or not name.startswith("_"):
            yield from (each for each in (member, getattr(member, "fget", None)) if inspect.isfunction(each))


def test_every_type_that_a_plug_in_gets_or_gives_can_be_imported_from_one_module() -> None:
    hints = [
        hint
        for exported in EXPORTED
        for place in (annotated(exported) if inspect.isclass(exported) else ())
        for hint in get_type_hints(place).values()
    ] + [exported for exported in EXPORTED if not inspect.isclass(exported)]

    used = {kind for hint in hints for kind in own_types(hint)}
    assert used - set(EXPORTED) - INTERNAL == set()
    assert used | {NoSettings} > INTERNAL
