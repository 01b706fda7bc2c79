"""The order wizard: pure functions from a draft and an input to the next draft."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from genlock.bot.order.aspect import fit_picture
from genlock.bot.order.draft import Draft, Problem, SentFile, Step
from genlock.bot.order.questions import asked_fields, choices_of, editable_fields, main_text, may_skip, read_list
from genlock.domain.catalog import NOTHING, Model
from genlock.domain.errors import InvalidInput
from genlock.domain.field import FILES, Field, FieldType

#: tolerance: a video of ten seconds may have one frame more
ROUNDING_SECONDS = 0.5
OPTIONS_A_PAGE = 8


def start_order(draft: Draft, model: Model, category: str) -> Draft:
    """Start an order with the text and files that waited for a model."""
    fresh = replace(draft.cleared(), model=model.id, category=category, aspects=draft.aspects)
    for one in draft.sent:
        target = field_for_file(fresh, model, one.kind)
        if target is not None:
            fresh = add_file(fresh, target, one)
    error = fresh.problem
    fresh = fit_picture(fresh, model)
    if draft.text and (main := main_text(model)) is not None:
        fresh = _with_main_text(fresh, main, draft.text)
        if fresh.problem:
            return fresh
    return _ask(fresh, error.field, error) if error else advance(fresh, model)


def start_with_defaults(draft: Draft, model: Model, category: str) -> Draft:
    """Start an order that asks only for what has no default; a refused text or file stays refused."""
    started = start_order(draft, model, category)
    return _settle_optional(started, model) if started.problem else skip_rest(started, model)


def draft_from_job(draft: Draft, model: Model, values: Mapping[str, Any], seconds: Mapping[str, float]) -> Draft:
    """Return a draft with the values of a past job."""
    known = {one.name for one in editable_fields(model)}
    editable = {name: value for name, value in values.items() if name in known}
    fresh = replace(
        draft.cleared(),
        model=model.id,
        category=model.category.value,
        values=editable,
        seconds=dict(seconds),
        settled=tuple(
            one.name for one in asked_fields(model, model.category.value) if one.name in editable or may_skip(one)
        ),
    )
    return advance(fresh, model)


def refused_text(draft: Draft, model: Model) -> str:
    """Return the text that is too long for the model; empty if that is not the problem."""
    main, problem = main_text(model), draft.problem
    if main is None or problem is None or problem.field != main.name or problem.name not in ("length", "range"):
        return ""
    text = draft.text if problem.name == "length" else str(draft.values.get(main.name, ""))
    return text if len(text) > main.min_length else ""


def can_skip(draft: Draft, model: Model, one: Field) -> bool:
    """Whether the field may be skipped with the values given so far: a rule may require it."""
    if not may_skip(one):
        return False
    try:
        model.validate({name: value for name, value in draft.values.items() if name != one.name})
    except InvalidInput as error:
        return not (error.field == one.name and error.problem == "missing")
    return True


# answers


def answer(draft: Draft, model: Model, value: object) -> Draft:
    """Set the field that is asked for; an invalid value keeps the question and adds the problem."""
    one = model.field(draft.field)
    assert one is not None, "the draft asks for no field"
    if isinstance(value, str) and one.many and one.type not in FILES:
        value = read_list(one, value)
    if one.many and one.type in FILES:
        value = [*draft.values.get(one.name, []), *str(value).split()]
    taken = _with_main_text(draft, one, value) if one is main_text(model) else _with_value(draft, one, value)
    if taken.problem or (one.many and one.type in FILES and _has_room(taken, one)):
        return taken
    return _continue(taken, model)


def answer_text(draft: Draft, model: Model, text: str) -> Draft:
    """Take a text message as the answer; while a file is asked for, a text without a link is the prompt."""
    one, main = model.field(draft.field), main_text(model)
    asks_file = one is not None and one.type in FILES and draft.step is Step.ASK
    if asks_file and main is not None and main.name not in draft.values and "://" not in text:
        return _with_main_text(draft, main, text)
    return answer(draft, model, text)


def pick(draft: Draft, model: Model, index: int) -> Draft:
    """Set the field to the value of a button."""
    one = model.field(draft.field)
    offered = choices_of(one) if one else ()
    return answer(draft, model, offered[index]) if 0 <= index < len(offered) else draft


def skip(draft: Draft, model: Model) -> Draft:
    """Skip the field, or continue with the files given so far."""
    one = model.field(draft.field)
    if one is None or (not may_skip(one) and one.name not in draft.values):
        return draft
    return _continue(_settle(draft, one), model)


def clear(draft: Draft, model: Model) -> Draft:
    """Remove the value of the field; its files may then be sent again."""
    values = {name: value for name, value in draft.values.items() if name != draft.field}
    one = model.field(draft.field)
    others = () if one is not None and one.type in FILES else draft.others
    without = replace(draft, values=values, others=others, problem=None)
    return without if one is not None and one.type in FILES else _continue(without, model)


def skip_rest(draft: Draft, model: Model) -> Draft:
    """Use the defaults for all questions that are left."""
    return advance(_settle_optional(draft, model), model)


def _settle_optional(draft: Draft, model: Model) -> Draft:
    left = [one.name for one in asked_fields(model, draft.category) if may_skip(one)]
    return replace(draft, settled=tuple(dict.fromkeys((*draft.settled, *left))))


def back(draft: Draft, model: Model) -> Draft | None:
    """Go one step back; None from the first question."""
    if draft.step is Step.EDIT:
        return _back_to_options(draft, model)
    if draft.step in (Step.OPTIONS, Step.STYLE, Step.IMPROVE):
        return advance(replace(draft, problem=None), model)
    if not draft.path:
        return None
    *before, last = draft.path
    return replace(
        draft,
        step=Step.ASK,
        field=last,
        path=tuple(before),
        settled=tuple(name for name in draft.settled if name != last),
        problem=None,
        page=0,
        price=None,
    )


def options(draft: Draft) -> Draft:
    return replace(draft, step=Step.OPTIONS, field="", page=0, problem=None)


def edit(draft: Draft, model: Model, index: int) -> Draft:
    """Ask for one field of the options. A client may send any index: invalid and internal ones change nothing."""
    if not 0 <= index < len(model.fields) or model.fields[index].internal:
        return draft
    return replace(draft, step=Step.EDIT, field=model.fields[index].name, page=0, problem=None)


def turn_page(draft: Draft, page: int) -> Draft:
    return replace(draft, page=max(0, page), problem=None)


# files


def field_for_file(draft: Draft, model: Model, kind: FieldType) -> Field | None:
    """Return the field for a file of this kind: the one asked for, else the first with room."""
    fitting = [one for one in model.fields if one.type is kind and _has_room(draft, one)]
    now = model.field(draft.field)
    if now is not None and now.type is kind and draft.step in (Step.ASK, Step.EDIT):
        return now
    return next((one for one in fitting if not one.advanced), fitting[0] if fitting else None)


def files_given(draft: Draft, model: Model) -> tuple[SentFile, ...]:
    """Return the files of the order, as files that wait for a model."""
    given = (
        SentFile(kind=one.type, address=str(address), seconds=draft.seconds.get(str(address)))
        for one in model.fields
        if one.type in FILES and (value := draft.values.get(one.name))
        for address in (value if isinstance(value, list) else [value])
    )
    return (*given, *draft.others)


def add_file(draft: Draft, one: Field, sent: SentFile) -> Draft:
    """Add a file to a field; a field for one file replaces it."""
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
    """Use the caption of a file as the prompt if the prompt is not given yet."""
    main = main_text(model)
    if main is None or main.name in draft.settled or draft.problem:
        return draft
    taken = _with_main_text(draft, main, caption)
    return taken if draft.field != main.name or taken.problem else advance(taken, model)


def after_file(draft: Draft, model: Model, one: Field) -> Draft:
    """Continue when the field asked for has all its files; wait while it has room for more."""
    if draft.problem or draft.field != one.name:
        return draft
    if one.many and _has_room(draft, one):
        return replace(draft, settled=tuple(name for name in draft.settled if name != one.name))
    return _continue(draft, model)


def _has_room(draft: Draft, one: Field) -> bool:
    if not one.many:
        return draft.values.get(one.name) in NOTHING
    return one.max_count is None or len(draft.values.get(one.name, [])) < one.max_count


# the next step


def advance(draft: Draft, model: Model) -> Draft:
    """Ask the next question, or go to the confirmation when there is none."""
    for one in asked_fields(model, draft.category):
        if one.name not in draft.settled:
            return _ask(draft, one.name)
    try:
        model.validate(draft.values)
    except InvalidInput as error:
        return _after_refusal(draft, model, error)
    path = (*draft.path, draft.field) if draft.step is Step.ASK and draft.field else draft.path
    return replace(draft, step=Step.CONFIRM, field="", path=path, problem=None, page=0, price=None)


def _ask(draft: Draft, name: str, problem: Problem | None = None) -> Draft:
    path = (*draft.path, draft.field) if draft.step is Step.ASK and draft.field not in ("", name) else draft.path
    return replace(draft, step=Step.ASK, field=name, path=path, problem=problem, page=0)


def _continue(draft: Draft, model: Model) -> Draft:
    """After an answer: back to the options, or to the next question."""
    if draft.step is not Step.EDIT:
        return advance(draft, model)
    options_draft = _back_to_options(draft, model)
    try:
        model.validate(options_draft.values)
    except InvalidInput as error:
        return replace(options_draft, problem=to_problem(error))
    return options_draft


def _back_to_options(draft: Draft, model: Model) -> Draft:
    """Return the options, on the page of the field that was edited; a voice is chosen from the confirmation, too."""
    one = model.field(draft.field)
    if one is not None and one.traits:
        return advance(replace(draft, step=Step.HOME, field="", problem=None), model)
    names = [one.name for one in editable_fields(model)]
    page = names.index(draft.field) // OPTIONS_A_PAGE if draft.field in names else 0
    return replace(draft, step=Step.OPTIONS, field="", page=page, problem=None)


def _after_refusal(draft: Draft, model: Model, error: InvalidInput) -> Draft:
    """Ask for a missing field; show the options for values that do not go together."""
    one = model.field(error.field)
    if one is not None and error.problem == "missing":
        return _ask(draft, one.name)
    if one is not None and error.problem == "range" and one.type in (FieldType.TEXT, *FILES):
        return _ask(draft, one.name, to_problem(error))
    return replace(draft, step=Step.OPTIONS, field="", page=0, problem=to_problem(error))


def _with_value(draft: Draft, one: Field, value: object) -> Draft:
    try:
        clean = one.clean(value)
    except InvalidInput as error:
        return replace(draft, problem=to_problem(error))
    if clean in NOTHING and not may_skip(one):
        return replace(draft, problem=Problem(name="missing", field=one.name))
    return _settle(replace(draft, values={**draft.values, one.name: clean}), one)


def _with_main_text(draft: Draft, main: Field, text: object) -> Draft:
    """Set the main text; a refused one is asked for again and kept, because another model may take it."""
    taken = _with_value(draft, main, text)
    if not taken.problem:
        return replace(taken, text="")
    step = Step.EDIT if draft.step is Step.EDIT else Step.ASK
    return replace(taken, step=step, field=main.name, text=str(text).strip())


def _settle(draft: Draft, one: Field) -> Draft:
    return replace(draft, settled=tuple(dict.fromkeys((*draft.settled, one.name))), problem=None)


def to_problem(error: InvalidInput) -> Problem:
    allowed = {name: value for name, value in error.allowed.items() if name != "choices"}
    return Problem(name=error.problem, field=error.field, allowed=allowed)
