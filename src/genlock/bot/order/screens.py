"""Screens of the order wizard: questions and options. Pure functions of draft and context."""

from genlock.bot.buttons import Row, draft_button, grid
from genlock.bot.order import extras, voice_list
from genlock.bot.order.card import card, category_of, example
from genlock.bot.order.draft import Draft, Step
from genlock.bot.order.input_errors import explain
from genlock.bot.order.questions import asked_fields, choices_of, editable_fields, main_text, takes_text
from genlock.bot.order.remembered import settings_of
from genlock.bot.order.voice_list import is_voice, now_played
from genlock.bot.order.wizard import OPTIONS_A_PAGE, can_skip, files_given, refused_text
from genlock.bot.screen_context import (
    ANY,
    ScreenContext,
    choice_label,
    field_label,
    field_question,
    members,
    model_label,
    shorten,
    value_label,
)
from genlock.bot.storefront.screens import back_and_cancel, pager, row
from genlock.bot.storefront.storefront import code_of
from genlock.domain.catalog import NOTHING, Model
from genlock.domain.field import FILES, Field, FieldType
from genlock.i18n.translator import Html, Translator
from genlock.ports import Button, OutgoingMessage

CHOICE_ROWS = 8
ADDED_SHOWN = 3
#: models offered for a text that is too long for the chosen one
TAKERS_SHOWN = 3
#: the largest file that Telegram lets bots download
MEGABYTES_MAX = 20
WIDTHS = ((5, 4), (7, 3), (16, 2), (10**6, 1))
"""Longest button label in characters, and how many such buttons fit in a row."""
#: lengths in characters: phones cut a button's label at about forty
MAIN_LENGTH, OPTION_LENGTH, OPTION_VALUE = 30, 34, 12
CARRIED_SHOWN = 200


def ask(draft: Draft, model: Model, screen: ScreenContext) -> OutgoingMessage:
    """Ask for one field; the first question of an order shows the model's card."""
    field = model.field(draft.field)
    assert field is not None, "the draft asks for no field"
    t = screen.translator
    first = extras.is_card(draft)
    head = card(draft, model, screen)
    lines: list[str] = [*extras.step_line(draft, t), *(head if first else head[:1])]
    if first:
        lines += extras.last_settings(draft, model, t)
    if draft.problem:
        lines += ["", explain(draft.problem, model, draft.values, t)]
    takers = _takers(draft, model, screen)
    if refused_text(draft, model):
        lines.append(t.html("refused.text_kept" if takers else "refused.text_shorten"))
    lines += ["", *_question(draft, model, field, screen)]
    if screen.group and not choices_of(field):
        lines.append(t.html("ask.in_group"))
    return OutgoingMessage(
        text="\n".join(lines),
        buttons=(
            *extras.order_instead(draft, screen),
            *_take_buttons(draft, takers, screen),
            *_answers(draft, model, field, screen),
        ),
    )


def _takers(draft: Draft, model: Model, screen: ScreenContext) -> list[Model]:
    """Return models of the category that take the text that is too long for this one, and its files; cheapest first."""
    text = refused_text(draft, model)
    if not text:
        return []
    category = category_of(draft, model)
    kinds = {file.kind for file in files_given(draft, model)}
    return [
        other
        for other in screen.storefront.models(category)
        if kinds <= {field.type for field in other.fields} and takes_text(other, text)
    ]


def _take_buttons(draft: Draft, takers: list[Model], screen: ScreenContext) -> list[Row]:
    rows: list[Row] = [
        (draft_button(row(screen, other), draft.version, "take", code_of(other.id)),) for other in takers[:TAKERS_SHOWN]
    ]
    if len(takers) > TAKERS_SHOWN:
        rows.append((draft_button(screen.translator.plain("button.other_model"), draft.version, "other"),))
    return rows


def _question(draft: Draft, model: Model, field: Field, screen: ScreenContext) -> list[Html]:
    t = screen.translator
    lines = _by_type(draft, model, field, screen)
    asking = draft.step is Step.ASK
    main = main_text(model)
    if asking and field.type in FILES and main is not None and (text := draft.values.get(main.name)):
        lines.append(t.html("list.carried_text", text=shorten(str(text), CARRIED_SHOWN)))
    if asking:
        lines += _other_files(draft, model, field, t)
    now = draft.values.get(field.name, field.default)
    if now not in NOTHING and field.type not in FILES and not choices_of(field):
        lines.append(t.html("ask.now", value=shorten(value_label(field, now, t), 300)))
    if asking and field.default in NOTHING and can_skip(draft, model, field):
        lines.append(t.html("ask.not_needed"))
    if field is main and asking and (more := _addable(draft, model, t)):
        lines.append(t.html("ask.may_add", fields=t.list(more).lower()))
    return lines


def _addable(draft: Draft, model: Model, t: Translator) -> list[str]:
    """Return names of optional file fields that are not asked for; their files may be sent at any time."""
    wanted = {field.name for field in asked_fields(model, draft.category)}
    free = [field for field in model.fields if field.type in FILES and not field.advanced and field.name not in wanted]
    return list(dict.fromkeys(field_label(field, t) for field in free))[:ADDED_SHOWN]


def _by_type(draft: Draft, model: Model, field: Field, screen: ScreenContext) -> list[Html]:
    t = screen.translator
    about = field_question(field, t)
    if field.type in FILES:
        return [t.html(f"ask.{field.type.value}", about=about), *_file_limits(draft, field, screen)]
    if field.many:
        key = "ask.objects" if field.type is FieldType.OBJECTS else "ask.list"
        return [t.html(key, about=about, members=members(field, t))]
    match field.type:
        case FieldType.CHOICE | FieldType.BOOLEAN:
            hint = [] if field.default in NOTHING else [t.html("ask.choice_hint")]
            hint = [t.html("voice.hint"), *now_played(draft, field, screen)] if is_voice(field) else hint
            return [t.html("ask.choice", about=about), *hint]
        case FieldType.NUMBER | FieldType.INTEGER:
            return [t.html("ask.number", about=about), _range(field, screen)]
        case FieldType.TASK:
            return [t.html("ask.task", about=about)]
        case _:
            return [t.html("ask.text", about=about), *_text_hints(draft, model, field, screen)]


def _other_files(draft: Draft, model: Model, asked_field: Field, t: Translator) -> list[Html]:
    """Return which files the order has already, by the names of their fields."""
    lines = []
    for field in model.fields:
        given = draft.values.get(field.name)
        if field.type not in FILES or field is asked_field or given in NOTHING:
            continue
        more = sum(file.kind is field.type for file in draft.others)
        count = more + (len(given) if isinstance(given, list) else 1)
        lines.append(t.html("ask.have_other", field=field_label(field, t), n=count))
    return lines


def _text_hints(draft: Draft, model: Model, field: Field, screen: ScreenContext) -> list[Html]:
    t = screen.translator
    hints = [t.html("ask.text_hint", n=field.max_length) if field.max_length else t.html("ask.text_hint_any")]
    if main_text(model) is field:
        hints.append(t.html("ask.example", example=example(draft, model, t)))
    return hints


def _range(field: Field, screen: ScreenContext) -> Html:
    if field.min is None or field.max is None or field.max >= ANY:
        return screen.translator.html("ask.number_any")
    high = value_label(field, field.max, screen.translator)
    return screen.translator.html("ask.number_range", low=field.min, high=high)


def _file_limits(draft: Draft, field: Field, screen: ScreenContext) -> list[Html]:
    t = screen.translator
    lines = []
    if field.many and field.max_count != 1:
        low = max(field.min_count, 1)
        if field.max_count is None or low != field.max_count:
            high = "∞" if field.max_count is None else field.max_count
            lines.append(t.html("ask.several", low=low, high=high))
        else:
            lines.append(t.html("ask.several_exactly", n=low))
    if field.max_mb:
        lines.append(t.html("ask.size", size=t.plain("unit.megabytes", n=min(field.max_mb, MEGABYTES_MAX))))
    if field.max_seconds:
        lines.append(t.html("ask.lasting", time=t.duration(float(field.max_seconds))))
    have = draft.values.get(field.name)
    if have not in NOTHING:
        lines.append(t.html("ask.have_files", n=len(have) if isinstance(have, list) else 1))
    return lines


def _answers(draft: Draft, model: Model, field: Field, screen: ScreenContext) -> list[Row]:
    t, version = screen.translator, draft.version
    rows = _choices(draft, field, screen)
    have = draft.values.get(field.name)
    more: list[Button] = []
    if field.type in FILES and isinstance(have, list) and len(have) >= max(field.min_count, 1):
        more.append(draft_button(t.plain("button.done_files", n=len(have)), version, "skip"))
    elif draft.step is Step.ASK and not choices_of(field) and have in NOTHING and can_skip(draft, model, field):
        more.append(draft_button(t.plain("button.skip"), version, "skip"))
    if draft.step is Step.EDIT and have not in NOTHING and (not field.required or isinstance(have, list)):
        more.append(draft_button(t.plain("button.clear"), version, "clear"))
    rows += [(other,) for other in more]
    if main_text(model) is field and draft.step is Step.ASK and have in NOTHING and not draft.problem:
        rows.append(extras.prompt_sources(draft, model, screen))
    if extras.is_card(draft):
        rows.append((extras.star(draft, model, screen),))
    if (
        draft.step is Step.ASK
        and field.default not in NOTHING
        and choices_of(field)
        and _more_to_come(draft, model, field)
    ):
        rows.append((draft_button(t.plain("button.rest"), version, "rest"),))
    return [*rows, back_and_cancel(draft, screen)]


def _more_to_come(draft: Draft, model: Model, now: Field) -> bool:
    return any(field is not now and field.name not in draft.settled for field in asked_fields(model, draft.category))


def _choices(draft: Draft, field: Field, screen: ScreenContext) -> list[Row]:
    t = screen.translator
    values = choices_of(field)
    if not values:
        return []
    if is_voice(field):
        return voice_list.rows(draft, field, screen)
    now = draft.values.get(field.name, field.default)
    marks = {True: "✓ ", False: ""} if field.name in draft.values else {True: "• ", False: ""}
    labels = [choice_label(field, value, t) for value in values]
    columns = _columns(max(map(len, labels)), len(labels))
    size = CHOICE_ROWS * columns
    pages = max(1, -(-len(values) // size))
    page = min(draft.page, pages - 1)
    buttons = [
        draft_button(f"{marks[values[index] == now]}{labels[index]}", draft.version, "pick", index)
        for index in range(page * size, min((page + 1) * size, len(values)))
    ]
    rows = grid(buttons, columns)
    return [*rows, pager(draft, screen, page, pages)] if pages > 1 else rows


def _columns(longest: int, count: int) -> int:
    """Return how many buttons per row fit a phone without cut labels, spread evenly over the rows."""
    most = next(columns for width, columns in WIDTHS if longest <= width)
    return -(-count // -(-count // most)) if count <= CHOICE_ROWS * most else most


def options(draft: Draft, model: Model, screen: ScreenContext) -> OutgoingMessage:
    """All fields that can be changed."""
    t = screen.translator
    lines: list[str] = [t.html("options.title", title=model_label(model, t))]
    if draft.problem:
        lines += ["", explain(draft.problem, model, draft.values, t)]
    fields = editable_fields(model)
    pages = max(1, -(-len(fields) // OPTIONS_A_PAGE))
    page = min(draft.page, pages - 1)
    rows = extras.order_instead(draft, screen)
    for field in fields[page * OPTIONS_A_PAGE : (page + 1) * OPTIONS_A_PAGE]:
        text = _option(draft, field, screen, main=field is main_text(model))
        rows.append((draft_button(text, draft.version, "edit", model.fields.index(field)),))
    if pages > 1:
        rows.append(pager(draft, screen, page, pages))
    if settings_of(model, draft.values):
        rows.append((draft_button(t.plain("settings.reset"), draft.version, "reset"),))
    done = draft_button(t.plain("button.done"), draft.version, "done")
    cancel = draft_button(t.plain("button.cancel"), draft.version, "cancel")
    return OutgoingMessage(text="\n".join(lines), buttons=(*rows, (done, cancel)))


def _option(draft: Draft, field: Field, screen: ScreenContext, *, main: bool) -> str:
    t = screen.translator
    value = _effective(draft, field, screen)
    if main and draft.values.get(field.name):
        return t.plain("options.main", value=shorten(value, MAIN_LENGTH))
    about = field_label(field, t)
    return t.plain("options.row", about=about, value=shorten(value, max(OPTION_LENGTH - len(about), OPTION_VALUE)))


def _effective(draft: Draft, field: Field, screen: ScreenContext) -> str:
    value = draft.values.get(field.name)
    if value in NOTHING:
        value = field.default
    if value in NOTHING and field.type in (FieldType.CHOICE, FieldType.BOOLEAN, FieldType.NUMBER, FieldType.INTEGER):
        return screen.translator.plain("options.usual")
    return value_label(field, value, screen.translator)
