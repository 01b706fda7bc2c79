"""Drafts of next steps: an order that begins with a result or a file. Pure functions."""

from collections.abc import Sequence
from dataclasses import replace

from genlock.bot.order import questions, wizard
from genlock.bot.order.aspect import fit_picture
from genlock.bot.order.draft import Draft, SentFile, Step
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import Catalog, Model
from genlock.domain.field import Field, FieldType
from genlock.domain.next_step import NextStep, PromptSource


def input_field(step: NextStep, model: Model) -> Field:
    """Return the field of a model that takes what the step is done with."""
    field = model.field(step.models[model.id])
    assert field is not None, "the catalog checks the fields of its steps"
    return field


def reply_step(catalog: Catalog, kind: FieldType | None, category: str = "") -> NextStep | None:
    """Return the step that a text asks for when it comes with a file: that of the category, else the usual one."""
    steps = catalog.steps_for(kind) if kind else []
    by_category = next((step for step in steps if step.category == category), None)
    return by_category or next((step for step in steps if step.reply), None)


def asked_step(storefront: Storefront, kind: FieldType | None, text: str, category: str = "") -> NextStep | None:
    """Return the step that a text asks for: that of the words in it, that of the category, else the usual one."""
    request = storefront.intents.read(text)
    steps = storefront.catalog.steps_for(kind) if kind and request else []
    named = next((step for step in steps if request and step.category == request.intent.category), None)
    return named or reply_step(storefront.catalog, kind, category)


def captioned(draft: Draft, storefront: Storefront, category: str) -> Draft:
    """Return the order that waiting files and their text ask for; the draft itself if no model suits them."""
    catalog = storefront.catalog
    step = asked_step(storefront, draft.sent[-1].kind, draft.text, category) if draft.text and draft.sent else None
    if step is None:
        return draft
    longest = max((file.seconds for file in draft.sent if file.seconds is not None), default=None)
    model = fitting(step, catalog.step_models(step), longest, draft.text)
    started = start_step(draft, step, model, draft.sent, draft.text)
    return draft if started.problem and not wizard.refused_text(started, model) else started


def fitting(step: NextStep, models: Sequence[Model], seconds: float | None, text: str = "") -> Model:
    """Return the first model that takes a file of this length and the text, else the file; the first if none does."""
    taking = [model for model in models if _takes(input_field(step, model), seconds)]
    with_text = (model for model in taking if not text or questions.takes_text(model, text))
    return next(iter([*with_text, *taking, *models]))


def _takes(field: Field, seconds: float | None) -> bool:
    return seconds is None or field.max_seconds is None or seconds <= field.max_seconds + wizard.ROUNDING_SECONDS


def start_step(draft: Draft, step: NextStep, model: Model, files: Sequence[SentFile], text: str) -> Draft:
    """Return the order of a step: files in their field, the text as the prompt, defaults for all other questions."""
    started = replace(
        draft.cleared(),
        model=model.id,
        category=step.category,
        next_step=step.key,
        aspects=draft.aspects,
        values={name: value for name, value in step.values.items() if model.field(name)},
    )
    target = input_field(step, model)
    for file in files:
        started = wizard.add_file(started, target, file)
        if started.problem:
            return replace(started, step=Step.ASK, field=target.name)
    started = fit_picture(started, model)
    main = target if not files else questions.main_text(model)
    asked = main if step.prompt is PromptSource.ASK and not text else None
    left = [
        field.name
        for field in questions.asked_fields(model, step.category)
        if questions.may_skip(field) and field is not asked
    ]
    started = replace(started, settled=tuple(dict.fromkeys((*started.settled, *left))))
    if text and main is not None:
        settled = tuple(name for name in started.settled if name != main.name)
        started = wizard.answer(replace(started, settled=settled, step=Step.ASK, field=main.name), model, text)
        return started if started.problem else replace(started, path=())
    return wizard.advance(started, model)
