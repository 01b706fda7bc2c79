"""Several orders of one draft: one per file, when the user sends more than one order takes, or one per variation."""

from dataclasses import replace

from genlock.bot.order import wizard
from genlock.bot.order.aspect import refit_picture
from genlock.bot.order.draft import Draft, Problem, SentFile, Step
from genlock.bot.order.variations import copies_of, without_ordered
from genlock.domain.catalog import Model
from genlock.domain.field import FILES, Field, FieldType

#: orders that one press may make
ORDERS_MAX = 10


def single_file_field(model: Model, kind: FieldType) -> Field | None:
    """Return the field for the one file of this kind that an order needs; None if it takes several, or none at all."""
    files = [field for field in model.fields if field.type in FILES]
    fitting = [field for field in files if field.type is kind]
    if len(fitting) != 1 or (fitting[0].many and fitting[0].max_count != 1):
        return None
    return fitting[0] if fitting[0].required or len(files) == 1 else None


def start(draft: Draft, model: Model, category: str, *, defaults: bool) -> Draft:
    """Start an order with what waited for a model; files beyond the first wait for orders of their own."""
    started = (wizard.start_with_defaults if defaults else wizard.start_order)(draft, model, category)
    used = {file.url for file in wizard.files_given(started, model)}
    fields = {field.type for field in model.fields if field.type in FILES}
    left = [file for file in draft.sent if file.url not in used and file.kind in fields]
    for file in left:
        if not started.problem:
            started = add_other(started, model, file)
    return started


def add_other(draft: Draft, model: Model, sent: SentFile) -> Draft:
    """Keep one more file for an order of its own; add a problem if the model takes it in no such order."""
    field = single_file_field(model, sent.kind)
    slots = sum(other.max_count or 1 for other in model.fields if other.type is sent.kind)
    if field is None or len(draft.others) + 1 >= ORDERS_MAX:
        return replace(draft, problem=Problem(name="full", allowed={"n": slots if field is None else ORDERS_MAX}))
    problem = _with_file(draft, model, field, sent).problem
    others = draft.others if problem else (*draft.others, sent)
    return replace(draft, others=others, problem=problem, price=None, other_prices=())


def orders_of(draft: Draft, model: Model) -> list[Draft]:
    """Return the orders that the draft stands for: one, one per file, or one per variation."""
    if draft.copies > 1 and not draft.others:
        return copies_of(draft)
    first = replace(draft, others=(), other_prices=(), copies=1, seeds=())
    field = single_file_field(model, draft.others[0].kind) if draft.others else None
    if field is None:
        return [first]
    rest = [replace(_with_file(first, model, field, other), price=None) for other in draft.others]
    prices = (*draft.other_prices, *[None] * len(rest))
    return [first, *(replace(order, price=price) for order, price in zip(rest, prices, strict=False))]


def without_first(draft: Draft, model: Model, ordered: int) -> Draft:
    """Return the draft without the orders that have been made, ready to be confirmed again."""
    if draft.copies > 1 and not draft.others:
        return replace(without_ordered(draft, ordered), step=Step.CONFIRM, message=None)
    left = orders_of(draft, model)[ordered:]
    others = draft.others[ordered:]
    return replace(left[0], step=Step.CONFIRM, others=others, price=None, other_prices=(), message=None)


def _with_file(draft: Draft, model: Model, field: Field, sent: SentFile) -> Draft:
    values = {name: value for name, value in draft.values.items() if name != field.name}
    return refit_picture(wizard.add_file(replace(draft, values=values), field, sent), model, draft)
