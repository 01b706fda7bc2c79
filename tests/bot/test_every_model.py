"""Every offered model is ordered in the chat, and its results arrive."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from genlock.domain.catalog import Model, Output
from genlock.domain.errors import InvalidInput
from genlock.domain.field import FILES, FieldType
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import HoldState
from tests.bot.order_by_chat import TEXT_MAX, ChatOrder
from tests.bot.world import running_bot, sqlite_url
from tests.packaged import CATALOG

AT_ONCE = 4
RULE_PARTS = ("when", "given", "any_of", "require", "forbid", "apart", "never", "most")
KINDS = {Output.IMAGE: {"photo", "document"}, Output.VIDEO: {"video"}, Output.AUDIO: {"audio"}, Output.TEXT: {"text"}}


def least(model: Model) -> dict[str, Any]:
    return model.minimal_input()


def most(model: Model) -> dict[str, Any]:
    """The largest input that fits into chat messages."""
    values: dict[str, Any] = {}
    for name, value in model.maximal_input().items():
        field = model.field(name)
        if field is not None and field.internal:
            continue
        long = field is not None and field.type is FieldType.TEXT and isinstance(value, str) and len(value) > TEXT_MAX
        values[name] = value[:TEXT_MAX] if long and isinstance(value, str) else value
    return values


def shapes(model: Model) -> set[tuple[object, ...]]:
    """Return what the chat treats differently: the kinds of the model's fields, of its rules and of its results."""
    fields: set[tuple[object, ...]] = {
        (
            *(field.type, field.many, field.required, field.advanced, bool(field.choices), bool(field.traits)),
            *(field.default is None, field.min is None, field.max_length is None, field.max_count, bool(field.members)),
        )
        for field in model.fields
        if not field.internal
    }
    rules: set[tuple[object, ...]] = {tuple(bool(getattr(rule, name)) for name in RULE_PARTS) for rule in model.rules}
    return fields | rules | {tuple(model.outputs)}


def representative(models: list[Model]) -> list[Model]:
    """Return models that together have every shape that any of them has."""
    chosen: list[Model] = []
    seen: set[tuple[object, ...]] = set()
    for model in sorted(models, key=lambda model: -len(shapes(model))):
        if not shapes(model) <= seen:
            chosen.append(model)
            seen |= shapes(model)
    return chosen


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("wanted", "by_link"), [(least, False), (most, True)], ids=["least", "most"])
async def test_every_offered_model_can_be_ordered_in_the_chat(tmp_path: Path, wanted: Any, *, by_link: bool) -> None:
    """Every model with the least input, and every kind of field and rule with the most."""
    turns = asyncio.Semaphore(AT_ONCE)
    seen: Counter[str] = Counter()
    problems: list[str] = []
    async with running_bot(sqlite_url(tmp_path), speed=2000.0) as world:

        async def one(number: int, model: Model) -> None:
            async with turns:
                user = await world.add_user(f"P{number}", language="ru" if number % 2 else "en", having=100_000)
                values = wanted(model)
                try:
                    walker = ChatOrder(user, model, values, by_link=by_link)
                    job = await walker.order()
                    check(job, model, values, by_link=by_link)
                    shown = [message for message in user.client.messages if message.sender == world.caller.bot.id]
                    parts = {part.message for part in job.parts}
                    kinds = {message.kind for message in shown if str(message.id) in parts}
                    assert kinds <= set().union(*(KINDS[output] for output in model.outputs)), kinds
                    assert len(parts) == len(job.parts) == expected(model, values)
                    seen.update(kinds)
                except (AssertionError, TimeoutError, StopIteration) as error:
                    problems.append(f"{model.id}: {type(error).__name__} {error}"[:600])

        offered = world.catalog.sold_through({"kie"}).offered()
        ordered = offered if wanted is least else representative(offered)
        await asyncio.gather(*(one(number, model) for number, model in enumerate(ordered)))
        assert problems == []
        assert len(offered) == 149
        assert {"photo", "video", "audio", "text"} <= seen.keys()
        assert await world.store.violations(settled=False) == []


def expected(model: Model, values: dict[str, Any]) -> int:
    return min(model.results(model.validate(values)), 10)


def check(job: Job, model: Model, values: dict[str, Any], *, by_link: bool) -> None:
    """The provider received the wanted values, and the user paid for them."""
    assert (job.state, job.delivery) == (State.SUCCEEDED, Delivery.DELIVERED), (job.error_code, job.error_text)
    assert job.hold_state is (HoldState.CAPTURED if job.price else HoldState.FREE)
    sent, asked = json.loads(job.input), model.validate(values)
    for field in model.fields:
        if field.type in FILES and not by_link and field.name in asked:
            given = sent[field.name]
            assert len(given) == len(asked[field.name]) if field.many else given.startswith("http"), field.name  # type: ignore[arg-type]
            sent.pop(field.name)
            asked.pop(field.name)
    assert sent == asked


def test_the_largest_input_is_still_a_valid_order() -> None:
    refused: dict[str, InvalidInput] = {}
    for model in CATALOG.offered():
        try:
            model.validate(most(model))
        except InvalidInput as error:
            refused[model.id] = error
    assert refused == {}
