"""Screens and texts of *Improve my prompt*: the price before, the old and the new prompt after. Pure functions."""

from genlock.bot.buttons import Row, button, draft_button
from genlock.bot.order.draft import Draft
from genlock.bot.order.questions import main_text
from genlock.bot.order.request_keys import is_improvement_key
from genlock.bot.screen_context import ScreenContext, model_label, shorten, text_of
from genlock.bot.storefront.screens import back_and_cancel
from genlock.domain.catalog import Model
from genlock.domain.errors import InvalidInput
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.engine.sell import Quote
from genlock.i18n.translator import Html, Translator
from genlock.ports import Button, OutgoingMessage

PROMPT_SHOWN = 700
_QUOTES = "\"'`\u00ab\u00bb\u201c\u201d\u201e\u2018\u2019"


def is_improvement(job: Job) -> bool:
    """Whether the order improves a prompt."""
    return is_improvement_key(job.request_key)


def improved_text(job: Job) -> str:
    """Return the improved prompt: all parts of the result, without the quotes that models like to add."""
    return "\n".join(part.value for part in job.parts if part.kind is PartKind.TEXT).strip().strip(_QUOTES).strip()


def quote(draft: Draft, model: Model, screen: ScreenContext) -> tuple[Model, Quote] | None:
    """Return the model that improves the prompt of a draft, and its price; None if there is none on sale."""
    improver, main = screen.storefront.improver(model), main_text(model)
    prompt = str(draft.values.get(main.name, "")) if main else ""
    if improver is None or improver.improves is None or not prompt:
        return None
    values = {improver.improves.field: improver.improves.request(prompt)}
    try:
        return improver, screen.storefront.quote(improver, values, {}, free_left=screen.free.left)
    except InvalidInput:
        return None  # the prompt is too long for it


def confirm(draft: Draft, model: Model, screen: ScreenContext) -> OutgoingMessage:
    """Return which model improves the prompt, and what it costs."""
    t, found, main = screen.translator, quote(draft, model, screen), main_text(model)
    back = back_and_cancel(draft, screen)
    if found is None or main is None:
        return OutgoingMessage(text=t.html("improve.gone"), buttons=(back,))
    improver, cost = found
    have, prompt = screen.wallet.available, shorten(str(draft.values[main.name]), PROMPT_SHOWN)
    lines = [
        t.html("improve.title"),
        t.html("confirm.prompt", text=prompt),
        "",
        t.html("improve.by", title=model_label(improver, t), time=t.duration(improver.expected_seconds)),
    ]
    if cost.price > have:
        missing = t.credits(cost.price - have)
        lines.append(t.html("confirm.short", balance=t.credits(have), missing=missing))
        return OutgoingMessage(text="\n".join(lines), buttons=((button(t.plain("button.topup"), "topup"),), back))
    label = t.plain("improve.go", price=t.credits(cost.price)) if cost.price else t.plain("improve.go_free")
    return OutgoingMessage(text="\n".join(lines), buttons=((draft_button(label, draft.version, "improve_go"),), back))


def choice(job: Job, t: Translator) -> tuple[Row, ...]:
    """Return the buttons under an improved prompt: take it, or keep the old one."""
    return ((button(t.plain("improve.take"), "improved", t.numbers.order(job.id)), keep(job, t)),)


def keep(job: Job, t: Translator) -> Button:
    """Return the button that goes back to the order with the prompt it had."""
    return button(t.plain("improve.keep"), "unimproved", t.numbers.order(job.id))


def notice(job: Job, improver: Model | None, t: Translator) -> OutgoingMessage:
    """Return the message that follows an improved prompt: the old one, and which of both to keep."""
    old = ""
    if improver is not None and improver.improves is not None:
        old = improver.improves.prompt_of(text_of(job, improver.improves.field))
    price = t.credits(job.price) if job.price else t.plain("improve.free")
    lines: list[Html] = [t.html("improve.done", price=price)]
    if old:
        lines.append(t.html("improve.old", text=shorten(old, PROMPT_SHOWN)))
    return OutgoingMessage(text="\n".join(lines), buttons=choice(job, t))
