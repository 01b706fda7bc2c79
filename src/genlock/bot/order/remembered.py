"""The settings that a user last ordered a model with: what is remembered, and how a new order begins with it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from genlock.bot.order import questions, wizard
from genlock.bot.order.aspect import aspect_field
from genlock.bot.order.draft import Draft, Step
from genlock.domain.catalog import NOTHING, Model
from genlock.domain.errors import InvalidInput
from genlock.domain.field import Field, FieldType

#: a number with a larger range is not a preference of the user but a random value, such as a seed
RANGE_MAX = 1000


def settings_of(model: Model, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is remembered of an order: choices and numbers, but neither texts nor files."""
    return {field.name: values[field.name] for field in model.fields if field.name in values and _is_setting(field)}


def _is_setting(field: Field) -> bool:
    if field.internal or field.many:
        return False
    if field.type in (FieldType.CHOICE, FieldType.BOOLEAN):
        return True
    if field.type not in (FieldType.NUMBER, FieldType.INTEGER) or field.min is None or field.max is None:
        return False
    return field.max - field.min <= RANGE_MAX


def read(body: str | None) -> dict[str, Any]:
    """Return stored settings; none if there are none."""
    values = json.loads(body) if body else None
    return values if isinstance(values, dict) else {}


def begin_with(draft: Draft, model: Model, settings: Mapping[str, Any]) -> Draft:
    """Return a draft that has just been started with the last settings of its model; what it asks for may be less."""
    fitting = {name: value for name, value in _valid(draft, model, settings).items() if name not in draft.values}
    if not fitting or questions.broken_rule(model, {**fitting, **draft.values}) is not None:
        return draft
    settled = tuple(dict.fromkeys((*draft.settled, *fitting)))
    begun = replace(draft, values={**draft.values, **fitting}, settled=settled, price=None)
    if draft.problem:
        return begun
    # From the start, so that the first question still shows the model's card.
    again = wizard.advance(replace(begun, step=Step.HOME, field="", path=()), model)
    return again if not again.problem else draft


def _valid(draft: Draft, model: Model, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the model still has. The aspect ratio of a picture goes before the remembered one."""
    aspect = aspect_field(model)
    has_picture = any(field.type is FieldType.IMAGE and draft.values.get(field.name) for field in model.fields)
    valid = {}
    for field in model.fields:
        if field.name not in settings or not _is_setting(field) or (has_picture and field is aspect):
            continue
        try:
            valid[field.name] = field.clean(settings[field.name])
        except InvalidInput:
            continue  # the catalog has changed since
    return {name: value for name, value in valid.items() if value not in NOTHING}


def reset(draft: Draft, model: Model) -> Draft:
    """Return the draft with the model's own defaults; texts and files stay, and what has no default."""
    names = {
        name for name in settings_of(model, draft.values) if (one := model.field(name)) and questions.may_skip(one)
    }
    values = {name: value for name, value in draft.values.items() if name not in names}
    return replace(draft, values=values, problem=None, page=0, price=None)
