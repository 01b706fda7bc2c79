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
    started = replace(draft.cleared(), model=model.id, category=category, aspects=draft.aspects)
    for file in draft.sent:
        target = field_for_file(started, model, file.kind)
        if target is not None:
            started = add_file(started, target, file)
    error = started.problem
    started = fit_picture(started, model)
    if draft.text and (main := main_text(model)) is not None:
        started = _with_main_text(started, main, draft.text)
        if started.problem:
            return started
    return _ask(started, error.field, error) if error else advance(started, model)


def start_with_defaults(draft: Draft, model: Model, category: str) -> Draft:
    """Start an order that asks only for what has no default; a refused text or file stays refused."""
    started = start_order(draft, model, category)
    return _settle_optional(started, model) if started.problem else skip_rest(started, model)


def draft_from_job(draft: Draft, model: Model, values: Mapping[str, Any], seconds: Mapping[str, float]) -> Draft:
    """Return a draft with the values of a past job."""
    known = {field.name for field in editable_fields(model)}
    editable = {name: value for name, value in values.items() if name in known}
    started = replace(
        draft.cleared(),
        model=model.id,
        category=model.category.value,
        values=editable,
        seconds=dict(seconds),
        settled=tuple(
            field.name
            for field in asked_fields(model, model.category.value)
            if field.name in editable or may_skip(field)
        ),
    )
    return advance(started, model)


def refused_text(draft: Draft, model: Model) -> str:
    """Return the text that is too long for the model; empty if that is not the problem."""
    main, problem = main_text(model), draft.problem
    if main is None or problem is None or problem.field != main.name or problem.name not in ("length", "range"):
        return ""
    text = draft.text if problem.name == "length" else str(draft.values.get(main.name, ""))
    return text if len(text) > main.min_length else ""


def can_skip(draft: Draft, model: Model, field: Field) -> bool:
    """Whether the field may be skipped with the values given so far: a rule may require it."""
    if not may_skip(field):
        return False
    try:
        model.validate({name: value for name, value in draft.values.items() if name != field.name})
    except InvalidInput as error:
        return not (error.field == field.name and error.problem == "missing")
    return True


# answers


def answer(draft: Draft, model: Model, value: object) -> Draft:
    """Set the field that is asked for; an invalid value keeps the question and adds the problem."""
    field = model.field(draft.field)
    assert field is not None, "the draft asks for no field"
    if isinstance(value, str) and field.many and field.type not in FILES:
        value = read_list(field, value)
    if field.many and field.type in FILES:
        value = [*draft.values.get(field.name, []), *str(value).split()]
    taken = _with_main_text(draft, field, value) if field is main_text(model) else _with_value(draft, field, value)
    if taken.problem or (field.many and field.type in FILES and _has_room(taken, field)):
        return taken
    return _continue(taken, model)


def answer_text(draft: Draft, model: Model, text: str) -> Draft:
    """Take a text message as the answer; while a file is asked for, a text without a link is the prompt."""
    field, main = model.field(draft.field), main_text(model)
    asks_file = field is not None and field.type in FILES and draft.step is Step.ASK
    if asks_file and main is not None and main.name not in draft.values and "://" not in text:
        return _with_main_text(draft, main, text)
    return answer(draft, model, text)


def pick(draft: Draft, model: Model, index: int) -> Draft:
    """Set the field to the value of a button."""
    field = model.field(draft.field)
    offered = choices_of(field) if field else ()
    return answer(draft, model, offered[index]) if 0 <= index < len(offered) else draft


def skip(draft: Draft, model: Model) -> Draft:
    """Skip the field, or continue with the files given so far."""
    field = model.field(draft.field)
    if field is None or (not may_skip(field) and field.name not in draft.values):
        return draft
    return _continue(_settle(draft, field), model)


def clear(draft: Draft, model: Model) -> Draft:
    """Remove the value of the field; its files may then be sent again."""
    values = {name: value for name, value in draft.values.items() if name != draft.field}
    field = model.field(draft.field)
    others = () if field is not None and field.type in FILES else draft.others
    without = replace(draft, values=values, others=others, problem=None)
    return without if field is not None and field.type in FILES else _continue(without, model)


def skip_rest(draft: Draft, model: Model) -> Draft:
    """Use the defaults for all questions that are left."""
    return advance(_settle_optional(draft, model), model)


def _settle_optional(draft: Draft, model: Model) -> Draft:
    left = [field.name for field in asked_fields(model, draft.category) if may_skip(field)]
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
    fitting = [field for field in model.fields if field.type is kind and _has_room(draft, field)]
    now = model.field(draft.field)
    if now is not None and now.type is kind and draft.step in (Step.ASK, Step.EDIT):
        return now
    return next((field for field in fitting if not field.advanced), fitting[0] if fitting else None)


def files_given(draft: Draft, model: Model) -> tuple[SentFile, ...]:
    """Return the files of the order, as files that wait for a model."""
    given = (
        SentFile(kind=field.type, url=str(url), seconds=draft.seconds.get(str(url)))
        for field in model.fields
        if field.type in FILES and (value := draft.values.get(field.name))
        for url in (value if isinstance(value, list) else [value])
    )
    return (*given, *draft.others)


def add_file(draft: Draft, field: Field, sent: SentFile) -> Draft:
    """Add a file to a field; a field for one file replaces it."""
    if (
        sent.seconds is not None
        and field.max_seconds is not None
        and sent.seconds > field.max_seconds + ROUNDING_SECONDS
    ):
        allowed = {"given": sent.seconds, "most": field.max_seconds}
        return replace(draft, problem=Problem(name="too_long", field=field.name, allowed=allowed))
    before = list(draft.values.get(field.name, [])) if field.many else []
    if field.many and field.max_count is not None and len(before) >= field.max_count:
        return replace(draft, problem=Problem(name="full", field=field.name, allowed={"n": field.max_count}))
    value: object = [*before, sent.url] if field.many else sent.url
    seconds = draft.seconds if sent.seconds is None else {**draft.seconds, sent.url: sent.seconds}
    return replace(
        draft,
        values={**draft.values, field.name: value},
        seconds=seconds,
        settled=tuple(dict.fromkeys((*draft.settled, field.name))),
        problem=None,
    )


def with_caption(draft: Draft, model: Model, caption: str) -> Draft:
    """Use the caption of a file as the prompt if the prompt is not given yet."""
    main = main_text(model)
    if main is None or main.name in draft.settled or draft.problem:
        return draft
    taken = _with_main_text(draft, main, caption)
    return taken if draft.field != main.name or taken.problem else advance(taken, model)


def after_file(draft: Draft, model: Model, field: Field) -> Draft:
    """Continue when the field asked for has all its files; wait while it has room for more."""
    if draft.problem or draft.field != field.name:
        return draft
    if field.many and _has_room(draft, field):
        return replace(draft, settled=tuple(name for name in draft.settled if name != field.name))
    return _continue(draft, model)


def _has_room(draft: Draft, field: Field) -> bool:
    if not field.many:
        return draft.values.get(field.name) in NOTHING
    return field.max_count is None or len(draft.values.get(field.name, [])) < field.max_count


# the next step


def advance(draft: Draft, model: Model) -> Draft:
    """Ask the next question, or go to the confirmation when there is none."""
    for field in asked_fields(model, draft.category):
        if field.name not in draft.settled:
            return _ask(draft, field.name)
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
    field = model.field(draft.field)
    if field is not None and field.traits:
        return advance(replace(draft, step=Step.HOME, field="", problem=None), model)
    names = [field.name for field in editable_fields(model)]
    page = names.index(draft.field) // OPTIONS_A_PAGE if draft.field in names else 0
    return replace(draft, step=Step.OPTIONS, field="", page=page, problem=None)


def _after_refusal(draft: Draft, model: Model, error: InvalidInput) -> Draft:
    """Ask for a missing field; show the options for values that do not go together."""
    field = model.field(error.field)
    if field is not None and error.problem == "missing":
        return _ask(draft, field.name)
    if field is not None and error.problem == "range" and field.type in (FieldType.TEXT, *FILES):
        return _ask(draft, field.name, to_problem(error))
    return replace(draft, step=Step.OPTIONS, field="", page=0, problem=to_problem(error))


def _with_value(draft: Draft, field: Field, value: object) -> Draft:
    try:
        clean = field.clean(value)
    except InvalidInput as error:
        return replace(draft, problem=to_problem(error))
    if clean in NOTHING and not may_skip(field):
        return replace(draft, problem=Problem(name="missing", field=field.name))
    return _settle(replace(draft, values={**draft.values, field.name: clean}), field)


def _with_main_text(draft: Draft, main: Field, text: object) -> Draft:
    """Set the main text; a refused one is asked for again and kept, because another model may take it."""
    taken = _with_value(draft, main, text)
    if not taken.problem:
        return replace(taken, text="")
    step = Step.EDIT if draft.step is Step.EDIT else Step.ASK
    return replace(taken, step=step, field=main.name, text=str(text).strip())


def _settle(draft: Draft, field: Field) -> Draft:
    return replace(draft, settled=tuple(dict.fromkeys((*draft.settled, field.name))), problem=None)


def to_problem(error: InvalidInput) -> Problem:
    allowed = {name: value for name, value in error.allowed.items() if name != "choices"}
    return Problem(name=error.problem, field=error.field, allowed=allowed)
