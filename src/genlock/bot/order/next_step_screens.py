"""Buttons and screens of next steps: what can be done with a result. Pure functions."""

from collections.abc import Sequence

from genlock.bot.buttons import Row, button, grid, pairs
from genlock.bot.order.results import is_document, is_sent_to_chat, kind_of_part
from genlock.bot.order.variations import varies
from genlock.bot.screen_context import ScreenContext, model_label, public_code
from genlock.domain.catalog import Catalog
from genlock.domain.delivery import Part
from genlock.domain.field import FieldType
from genlock.domain.job import Job
from genlock.domain.next_step import NextStep
from genlock.i18n.translator import Translator
from genlock.ports import Button, OutgoingMessage

#: steps shown under a result; the others are one press away
SHOWN = 3
PARTS_A_ROW = 5


def steps_of(catalog: Catalog, job: Job, part: Part) -> Sequence[NextStep]:
    """Return the next steps of a part."""
    model = catalog.models.get(job.model)
    kind = kind_of_part(part, model)
    return catalog.steps_for(kind, model.category if model else None) if kind else []


def rows_under_result(catalog: Catalog, job: Job, index: int, part: Part, t: Translator) -> tuple[Row, ...]:
    """Return the likely steps of a part, its original and the way to all steps, two in a row: more would not fit."""
    steps = steps_of(catalog, job, part)
    buttons = [_step(job, index, step, t) for step in steps[:SHOWN]]
    if has_original(catalog, job, part):
        buttons.append(original(job, index, t))
    if len(steps) > SHOWN:
        buttons.append(_more(job, index, t))
    return tuple(pairs(buttons))


def likely_steps_of(catalog: Catalog, job: Job, index: int, t: Translator) -> list[Button]:
    """Return the likely steps of one part and the way to all."""
    steps = steps_of(catalog, job, job.parts[index])
    return [*(_step(job, index, step, t) for step in steps[: SHOWN - 1]), _more(job, index, t)] if steps else []


def likely_steps(catalog: Catalog, job: Job, t: Translator) -> tuple[Row, ...]:
    """Return the likeliest step of a single result and the way to all; several results have only the latter."""
    first = job.parts[0] if job.parts else None
    steps = steps_of(catalog, job, first) if first else []
    if not steps:
        return ()
    likely = [_step(job, 0, steps[0], t)] if len(job.parts) == 1 else []
    return ((*likely, _more(job, 0, t)),)


def what_next(catalog: Catalog, job: Job, t: Translator) -> Button | None:
    """Return the way to all next steps of a result; None if it has none."""
    if not job.parts or not steps_of(catalog, job, job.parts[0]):
        return None
    return button(t.plain("button.what_next"), "nexts", t.numbers.order(job.id), 0)


def has_original(catalog: Catalog, job: Job, part: Part) -> bool:
    """Whether the chat shows a picture that the channel may have compressed."""
    model = catalog.models.get(job.model)
    unchanged = is_document(part) or (model is not None and model.exact)
    return kind_of_part(part, model) is FieldType.IMAGE and not unchanged


def original(job: Job, index: int, t: Translator) -> Button:
    return button(t.plain("button.original"), "original", t.numbers.order(job.id), index)


def vary(job: Job, t: Translator) -> Button:
    """Return the button that makes the same order several times."""
    return button(t.plain("variations.button"), "vary", t.numbers.order(job.id))


def _step(job: Job, index: int, step: NextStep, t: Translator) -> Button:
    return button(t.plain(f"button.next_{step.key}"), "next", t.numbers.order(job.id), index, step.key)


def _more(job: Job, index: int, t: Translator) -> Button:
    return button(t.plain("button.next_more"), "nexts", t.numbers.order(job.id), index)


def all_steps(screen: ScreenContext, job: Job, index: int) -> OutgoingMessage:
    """Return every next step of a part."""
    t, catalog, part = screen.translator, screen.storefront.catalog, job.parts[index]
    model = catalog.models.get(job.model)
    title = model_label(model, t) if model else job.model
    text = t.html("next.choose", title=title, code=public_code(job.id, t))
    buttons = [_step(job, index, step, t) for step in steps_of(catalog, job, part)]
    rows = pairs([*buttons, *([original(job, index, t)] if has_original(catalog, job, part) else [])])
    if len(job.parts) > 1:
        text = t.html("next.choose_of", title=title, code=public_code(job.id, t), index=index + 1, count=len(job.parts))
        rows = [*_parts(job, index, t), *rows]
    rows.append(
        (button(t.plain("button.repeat"), "repeat", job.id), *([vary(job, t)] if model and varies(model) else []))
    )
    again = [button(t.plain("button.again"), "again", job.id)] if is_sent_to_chat(job) else []
    rows.append((*again, button(t.plain("button.menu"), "menu")))
    return OutgoingMessage(text=text, buttons=tuple(rows))


def _parts(job: Job, index: int, t: Translator) -> list[Row]:
    """Return buttons that choose a part by its number."""
    numbers = [
        button(f"• {number + 1} •" if number == index else str(number + 1), "nexts", t.numbers.order(job.id), number)
        for number in range(len(job.parts))
    ]
    return grid(numbers, PARTS_A_ROW)
