"""The last screen of the order wizard: what is ordered, its price, and the buttons that order it. Pure."""

from genlock.bot.buttons import Row, button, draft_button, grid
from genlock.bot.order import extras
from genlock.bot.order.draft import Draft
from genlock.bot.order.input_errors import explain
from genlock.bot.order.per_file import orders_of
from genlock.bot.order.questions import asked_fields, main_text
from genlock.bot.order.variations import COUNTS, varies
from genlock.bot.screen_context import (
    ScreenContext,
    field_label,
    model_label,
    quote_each,
    shorten,
    value_label,
)
from genlock.bot.storefront.menu_screens import other_wishes
from genlock.bot.storefront.screens import back_and_cancel
from genlock.bot.storefront.storefront import text_only
from genlock.domain.catalog import NOTHING, Model
from genlock.domain.errors import InvalidInput
from genlock.domain.field import Field
from genlock.engine.sell import Quote
from genlock.i18n.translator import Html
from genlock.ports import OutgoingMessage

LINES_MAX = 14
#: length in characters
PROMPT_SHOWN = 600


def confirm(draft: Draft, model: Model, screen: ScreenContext, *, note: Html | None = None) -> OutgoingMessage:
    """Return the values, the exact price, and the balance after it."""
    t = screen.translator
    lines: list[str] = [*([note, ""] if note else []), *extras.step_line(draft, t)]
    lines.append(t.html("confirm.title", title=model_label(model, t)))
    main = main_text(model)
    if main is not None and draft.values.get(main.name):
        lines.append(t.html("confirm.prompt", text=shorten(str(draft.values[main.name]), PROMPT_SHOWN)))
    lines += [*extras.style_line(draft, model, screen), *_summary(draft, model, main, screen)]
    if draft.problem:
        lines += ["", explain(draft.problem, model, draft.values, t)]
    try:
        costs = quote_each(orders_of(draft, model), model, screen)
    except InvalidInput as refused:
        lines += ["", t.html("refused.price") if refused.problem == "price" else t.html("refused.combination")]
        return OutgoingMessage(text="\n".join(lines), buttons=tuple(_confirm_rows(draft, model, screen, [])))
    if len(costs) > 1:
        lines.append(t.html("confirm.each" if draft.others else "variations.count", n=len(costs)))
    time = t.duration(screen.storefront.expected_seconds(model))
    lines += ["", *_money(costs, screen), t.html("confirm.time", time=time)]
    return OutgoingMessage(
        text="\n".join(lines), buttons=tuple(_confirm_rows(draft, model, screen, _go(draft, costs, screen)))
    )


def _summary(draft: Draft, model: Model, main: Field | None, screen: ScreenContext) -> list[Html]:
    t = screen.translator
    lines = []
    for field in model.fields:
        value = draft.values.get(field.name)
        if field is main or (value in NOTHING and (field.advanced or field.default in NOTHING)):
            continue
        if draft.others and field.type is draft.others[0].kind:  # the line about all files says it
            continue
        effective = value if value not in NOTHING else field.default
        lines.append(
            t.html("confirm.line", about=field_label(field, t), value=shorten(value_label(field, effective, t)))
        )
    return lines[:LINES_MAX]


def _money(costs: list[Quote], screen: ScreenContext) -> list[Html]:
    t = screen.translator
    have, price = screen.wallet.available, sum(cost.price for cost in costs)
    if all(cost.free for cost in costs):
        return [t.html("confirm.price_free", runs=screen.free.left)]
    lines = [t.html("confirm.price" if len(costs) == 1 else "confirm.price_all", price=t.credits(price))]
    assumed = [cost.assumed_seconds for cost in costs if cost.assumed_seconds is not None]
    if assumed:
        lines.append(t.html("confirm.price_about", time=t.duration(max(assumed))))
    if screen.group:
        return [*lines, t.html("confirm.short_group")] if have < price else lines
    if have < price:
        missing = t.credits(price - have)
        return [*lines, t.html("confirm.short", balance=t.credits(have), missing=missing)]
    return [*lines, t.html("confirm.balance", before=t.amount(have), after=t.credits(have - price))]


def _go(draft: Draft, costs: list[Quote], screen: ScreenContext) -> list[Row]:
    t, have, total = screen.translator, screen.wallet.available, sum(cost.price for cost in costs)

    def go(verb: str, price: int, key: str, key_if_free: str) -> Row:
        text = t.plain(key if price else key_if_free, n=len(costs), price=t.credits(price))
        return (draft_button(text, draft.version, verb),)

    rows: list[Row] = [] if total <= have else [(draft_button(t.plain("button.topup"), draft.version, "topup"),)]
    if len(costs) == 1:
        return rows or [go("go", total, "button.generate", "button.generate_free")]
    rows = rows or [go("all", total, "button.generate_all", "button.generate_all_free")]
    if not draft.others:
        return [*rows, _counts(draft)]
    if costs[0].price > have:
        return rows
    return [*rows, go("go", costs[0].price, "button.generate_first", "button.generate_first_free")]


def _counts(draft: Draft) -> Row:
    """Return a button for each number of variations; one of them is a single order."""
    labels = {count: f"• {count} •" if count == draft.copies else str(count) for count in (1, *COUNTS)}
    return tuple(draft_button(label, draft.version, "copies", count) for count, label in labels.items())


def _confirm_rows(draft: Draft, model: Model, screen: ScreenContext, go: list[Row]) -> list[Row]:
    t = screen.translator
    small = [draft_button(t.plain("button.options"), draft.version, "options")]
    if draft.copies == 1 and not draft.others and varies(model):
        small.append(draft_button(t.plain("variations.button"), draft.version, "copies", COUNTS[0]))
    small += extras.style_button(draft, model, screen)
    if draft.next_step or draft.suggested or (not draft.path and text_only(model)):
        small.append(draft_button(t.plain("button.other_model"), draft.version, "other"))
    rows = [*extras.order_instead(draft, screen), *go, *extras.prompt_rows(draft, model, screen)]
    if not any(field.name in draft.values for field in asked_fields(model, draft.category)):
        return [*rows, *grid(small, 2), (button(t.plain("button.menu"), "menu"),)]
    return [*rows, *grid([*small, *other_wishes(draft, screen)], 2), back_and_cancel(draft, screen)]
