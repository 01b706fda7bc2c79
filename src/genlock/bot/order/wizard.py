"""From a chosen model to a complete order: a pure machine over drafts. Every step is draft and input -> draft."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from genlock.bot.order.draft import At, Draft, Problem, Sent
from genlock.bot.storefront.storefront import BEGINS_WITH
from genlock.domain.catalog import NOTHING, Category, Model, Rule
from genlock.domain.errors import InvalidInput
from genlock.domain.field import FILES, Field, FieldType

#: numbers with at most so many possible values are offered as buttons
NUMBERS_OFFERED = 15
NUMBER_DIGITS = 10
#: a film of ten seconds may have a frame more
ROUNDING_SECONDS = 0.5
PROMPT = "prompt"
OPTIONS_A_PAGE = 8


def open_model(draft: Draft, model: Model, category: str) -> Draft:
    """Begin an order, with the text and files that were waiting for a model."""
    fresh = replace(draft.emptied(), model=model.id, category=category)
    for one in draft.sent:
        place = place_for(fresh, model, one.kind)
        if place is not None:
            fresh = add_file(fresh, place, one)
    refused = fresh.problem
    if draft.text and (main := main_text(model)) is not None:
        fresh = _with_value(fresh, main, draft.text)
        if fresh.problem:
            return replace(fresh, at=At.ASK, field=main.name)
    return _ask(fresh, refused.field, refused) if refused else advance(fresh, model)


def of_job(draft: Draft, model: Model, values: Mapping[str, Any], seconds: Mapping[str, float]) -> Draft:
    """A draft that says again what was ordered before."""
    known = {one.name for one in listed(model)}
    kept = {name: value for name, value in values.items() if name in known}
    fresh = replace(
        draft.emptied(),
        model=model.id,
        category=model.category.value,
        values=kept,
        seconds=dict(seconds),
        settled=tuple(one.name for one in asked(model, model.category.value) if one.name in kept or may_skip(one)),
    )
    return advance(fresh, model)


def main_text(model: Model) -> Field | None:
    """The input that a plain text is meant for."""
    texts = [one for one in model.fields if one.type is FieldType.TEXT and not one.many and not one.advanced]
    named = next((one for one in texts if one.name == PROMPT), None)
    return named or next((one for one in texts if one.required), None)


def asked(model: Model, category: str) -> list[Field]:
    """What is asked one by one: the required, the prompt, and the file that the shelf is about."""
    begins = BEGINS_WITH.get(Category(category)) if category in set(Category) else None
    if begins and any(one.type is begins and one.required for one in model.fields):
        begins = None
    about = next((one for one in model.fields if one.type is begins and not one.advanced), None) if begins else None
    return [
        one
        for one in model.fields
        if (one.required and not (one.advanced and one.default is not None))
        or (one.name == PROMPT and not one.advanced)
        or one is about
    ]


def listed(model: Model) -> list[Field]:
    """What can be changed, what most people care for first."""
    return sorted((one for one in model.fields if not one.internal), key=lambda one: one.advanced)


def can_skip(draft: Draft, model: Model, one: Field) -> bool:
    """Whether the input may be left out as things are: a rule may want it."""
    if not may_skip(one):
        return False
    try:
        model.validate({name: value for name, value in draft.values.items() if name != one.name})
    except InvalidInput as refused:
        return not (refused.field == one.name and refused.problem == "missing")
    return True


def may_skip(one: Field) -> bool:
    """Whether the input may be left out, as far as it alone is concerned."""
    return not one.required or one.default is not None


def choices_of(one: Field) -> Sequence[Any]:
    """The values to press, if there are few enough to press."""
    if one.many and one.type is not FieldType.CHOICE:
        return ()
    match one.type:
        case FieldType.CHOICE:
            return one.choices
        case FieldType.BOOLEAN:
            return (True, False)
        case FieldType.INTEGER if one.min is not None and one.max is not None:
            step = int(one.step or 1)
            numbers = range(int(one.min), int(one.max) + 1, step)
            return numbers if len(numbers) <= NUMBERS_OFFERED else ()
        case _:
            return ()


# answers


def answer(draft: Draft, model: Model, value: object) -> Draft:
    """A value for the input that is asked for. What does not fit is asked for again, with the reason."""
    one = model.field(draft.field)
    assert one is not None, "nothing is asked for"
    if isinstance(value, str) and one.many and one.type not in FILES:
        value = read_list(one, value)
    if one.many and one.type in FILES:
        value = [*draft.values.get(one.name, []), *str(value).split()]
    taken = _with_value(draft, one, value)
    if taken.problem or (one.many and one.type in FILES and _room(taken, one)):
        return taken
    return _on(taken, model)


def pick(draft: Draft, model: Model, index: int) -> Draft:
    """The value on a button."""
    one = model.field(draft.field)
    offered = choices_of(one) if one else ()
    return answer(draft, model, offered[index]) if 0 <= index < len(offered) else draft


def skip(draft: Draft, model: Model) -> Draft:
    """Leave the input out, or go on with the files there are."""
    one = model.field(draft.field)
    if one is None or (not may_skip(one) and one.name not in draft.values):
        return draft
    return _on(_settle(draft, one), model)


def clear(draft: Draft, model: Model) -> Draft:
    """Forget what was given for an input; files may then be sent anew."""
    values = {name: value for name, value in draft.values.items() if name != draft.field}
    without = replace(draft, values=values, problem=None)
    one = model.field(draft.field)
    return without if one is not None and one.type in FILES else _on(without, model)


def rest(draft: Draft, model: Model) -> Draft:
    """Everything that is still to be asked stays as it is by default."""
    left = [one.name for one in asked(model, draft.category) if may_skip(one)]
    return advance(replace(draft, settled=tuple(dict.fromkeys((*draft.settled, *left)))), model)


def back(draft: Draft, model: Model) -> Draft | None:
    """One step back; None from the first, to whatever was before the model."""
    if draft.at is At.EDIT:
        return _listed(draft, model)
    if draft.at is At.OPTIONS:
        return advance(replace(draft, problem=None), model)
    if not draft.path:
        return None
    *before, last = draft.path
    return replace(
        draft,
        at=At.ASK,
        field=last,
        path=tuple(before),
        settled=tuple(name for name in draft.settled if name != last),
        problem=None,
        page=0,
        price=None,
    )


def options(draft: Draft) -> Draft:
    return replace(draft, at=At.OPTIONS, field="", page=0, problem=None)


def edit(draft: Draft, model: Model, index: int) -> Draft:
    """Change one input out of the list; data that nobody was given a button for may name any other."""
    if not 0 <= index < len(model.fields) or model.fields[index].internal:
        return draft
    return replace(draft, at=At.EDIT, field=model.fields[index].name, page=0, problem=None)


def turn(draft: Draft, page: int) -> Draft:
    return replace(draft, page=max(0, page), problem=None)


# files


def place_for(draft: Draft, model: Model, kind: FieldType) -> Field | None:
    """The input that a file of this kind goes to: the one asked for, else the first that has room."""
    fitting = [one for one in model.fields if one.type is kind and _room(draft, one)]
    now = model.field(draft.field)
    if now is not None and now.type is kind and draft.at in (At.ASK, At.EDIT):
        return now
    return next((one for one in fitting if not one.advanced), fitting[0] if fitting else None)


def files_given(draft: Draft, model: Model) -> tuple[Sent, ...]:
    """The files of an order, as they wait for a model."""
    return tuple(
        Sent(kind=one.type, address=str(address), seconds=draft.seconds.get(str(address)))
        for one in model.fields
        if one.type in FILES and (value := draft.values.get(one.name))
        for address in (value if isinstance(value, list) else [value])
    )


def add_file(draft: Draft, one: Field, sent: Sent) -> Draft:
    """Put a file in its place. A single file replaces the one before."""
    if sent.seconds is not None and one.max_seconds is not None and sent.seconds > one.max_seconds + ROUNDING_SECONDS:
        allowed = {"given": sent.seconds, "most": one.max_seconds}
        return replace(draft, problem=Problem(name="too_long", field=one.name, allowed=allowed))
    before = list(draft.values.get(one.name, [])) if one.many else []
    if one.many and one.max_count is not None and len(before) >= one.max_count:
        return replace(draft, problem=Problem(name="full", field=one.name, allowed={"n": one.max_count}))
    value: object = [*before, sent.address] if one.many else sent.address
    seconds = draft.seconds if sent.seconds is None else {**draft.seconds, sent.address: sent.seconds}
    return replace(
        draft,
        values={**draft.values, one.name: value},
        seconds=seconds,
        settled=tuple(dict.fromkeys((*draft.settled, one.name))),
        problem=None,
    )


def with_caption(draft: Draft, model: Model, caption: str) -> Draft:
    """The words under a file are the text that is still to come, if one is."""
    main = main_text(model)
    if main is None or main.name in draft.settled or draft.problem:
        return draft
    taken = _with_value(draft, main, caption)
    return taken if draft.field != main.name or taken.problem else advance(taken, model)


def after_file(draft: Draft, model: Model, one: Field) -> Draft:
    """Go on when the input that was asked for has all its files; wait for more where more may come."""
    if draft.problem or draft.field != one.name:
        return draft
    if one.many and _room(draft, one):
        return replace(draft, settled=tuple(name for name in draft.settled if name != one.name))
    return _on(draft, model)


def _room(draft: Draft, one: Field) -> bool:
    if not one.many:
        return draft.values.get(one.name) in NOTHING
    return one.max_count is None or len(draft.values.get(one.name, [])) < one.max_count


# the way on


def advance(draft: Draft, model: Model) -> Draft:
    """The next question, or the end of them."""
    for one in asked(model, draft.category):
        if one.name not in draft.settled:
            return _ask(draft, one.name)
    try:
        model.validate(draft.values)
    except InvalidInput as refused:
        return _refused(draft, model, refused)
    path = (*draft.path, draft.field) if draft.at is At.ASK and draft.field else draft.path
    return replace(draft, at=At.CONFIRM, field="", path=path, problem=None, page=0, price=None)


def _ask(draft: Draft, name: str, problem: Problem | None = None) -> Draft:
    path = (*draft.path, draft.field) if draft.at is At.ASK and draft.field not in ("", name) else draft.path
    return replace(draft, at=At.ASK, field=name, path=path, problem=problem, page=0)


def _on(draft: Draft, model: Model) -> Draft:
    """After an answer: back to the options, or to the next question."""
    if draft.at is not At.EDIT:
        return advance(draft, model)
    there = _listed(draft, model)
    try:
        model.validate(there.values)
    except InvalidInput as refused:
        return replace(there, problem=problem_of(refused))
    return there


def _listed(draft: Draft, model: Model) -> Draft:
    """The list of everything, at the place that one has come from."""
    places = [one.name for one in listed(model)]
    page = places.index(draft.field) // OPTIONS_A_PAGE if draft.field in places else 0
    return replace(draft, at=At.OPTIONS, field="", page=page, problem=None)


def _refused(draft: Draft, model: Model, refused: InvalidInput) -> Draft:
    """What is missing is asked for; what does not go together is shown in the list."""
    one = model.field(refused.field)
    if one is not None and refused.problem == "missing":
        return _ask(draft, one.name)
    if one is not None and refused.problem == "range" and one.type in (FieldType.TEXT, *FILES):
        return _ask(draft, one.name, problem_of(refused))
    return replace(draft, at=At.OPTIONS, field="", page=0, problem=problem_of(refused))


def _with_value(draft: Draft, one: Field, value: object) -> Draft:
    try:
        clean = one.clean(value)
    except InvalidInput as refused:
        return replace(draft, problem=problem_of(refused))
    if clean in NOTHING and not may_skip(one):
        return replace(draft, problem=Problem(name="missing", field=one.name))
    return _settle(replace(draft, values={**draft.values, one.name: clean}), one)


def _settle(draft: Draft, one: Field) -> Draft:
    return replace(draft, settled=tuple(dict.fromkeys((*draft.settled, one.name))), problem=None)


def problem_of(refused: InvalidInput) -> Problem:
    allowed = {name: value for name, value in refused.allowed.items() if name != "choices"}
    return Problem(name=refused.problem, field=refused.field, allowed=allowed)


def read_list(one: Field, text: str) -> object:
    """A list typed in a chat: one item a line, the members of an object between bars; or JSON."""
    if one.type is not FieldType.OBJECTS:
        return [line.strip() for line in text.splitlines() if line.strip()]
    if text.lstrip().startswith(("[", "{")):
        return text if text.lstrip().startswith("[") else f"[{text}]"
    rows = [[part.strip() for part in line.split("|")] for line in text.splitlines() if line.strip()]
    return [dict(zip(one.members, map(_scalar, row), strict=False)) for row in rows]


def _scalar(word: str) -> str | int:
    return int(word) if word.isdecimal() and len(word) < NUMBER_DIGITS else word


def broken_rule(model: Model, values: Mapping[str, Any]) -> Rule | None:
    """The first rule that the values break, for telling it in the person's language."""
    whole: dict[str, object] = {one.name: one.default for one in model.fields if one.default is not None}
    whole |= {name: value for name, value in values.items() if value not in NOTHING}
    whole |= model.fixed
    for rule in model.rules:
        try:
            rule.check(whole)
        except InvalidInput:
            return rule
    return None
