"""Screens of the gallery: one result at a time, with what can be done with it. Pure functions."""

from collections.abc import Mapping

from genlock.bot.buttons import Row, button, grid
from genlock.bot.order.next_step_screens import likely_steps_of
from genlock.bot.order.results import file_id, is_sent_to_chat
from genlock.bot.screen_context import ScreenContext, model_label, own_prompt, public_code, shorten
from genlock.bot.screen_files import ScreenFile
from genlock.domain.catalog import Output
from genlock.domain.delivery import Part
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.i18n.translator import Html, Translator
from genlock.ports import Button, OutgoingMessage

ALL = "all"
#: the filters, in the order of their buttons, by the letter that stands for them in buttons
FILTERS: Mapping[str, Output | None] = {
    ALL: None,
    "i": Output.IMAGE,
    "v": Output.VIDEO,
    "a": Output.AUDIO,
    "t": Output.TEXT,
}
PROMPT_SHOWN, TEXT_SHOWN = 350, 3000


def result(
    screen: ScreenContext,
    job: Job,
    index: int,
    *,
    kind: str,
    newer: tuple[int, int] | None,
    older: tuple[int, int] | None,
    sample: bool | None,
    note: Html | None = None,
) -> OutgoingMessage:
    """Return a part of a result. `newer` and `older` are its neighbours, as job and part; `sample` is for operators."""
    t, part = screen.translator, job.parts[index]
    lines = [*([note, ""] if note else []), _head(screen, job, index)]
    if prompt := own_prompt(job, screen.storefront.catalog):
        lines.append(t.html("order.caption_prompt", text=shorten(prompt, PROMPT_SHOWN)))
    if part.kind is PartKind.TEXT:
        lines += ["", t.html("gallery.text", text=part.value[:TEXT_SHOWN])]
    elif not is_sent_to_chat(job):
        lines += ["", t.html("order.by_api")]
    elif part.file is None:
        lines += ["", t.html("gallery.no_file")]
    number = t.numbers.order(job.id)
    rows: list[Row] = [_filters(kind, t), _pager(t, kind, newer, older)]
    buttons = likely_steps_of(screen.storefront.catalog, job, index, t)
    if not job.erased:
        buttons.append(button(t.plain("button.repeat"), "repeat", number))
    if is_sent_to_chat(job):
        buttons.append(button(t.plain("button.again"), "again", number))
    buttons.append(button(t.plain("gallery.remove"), "gdel", number, index, kind))
    rows += grid(buttons, 2)
    if sample is not None:
        text = t.plain("gallery.sample_off" if sample else "gallery.sample")
        rows.append((button(text, "sample", number, index, int(not sample), kind),))
    rows.append((button(t.plain("gallery.list"), "history"), button(t.plain("button.menu"), "menu")))
    return OutgoingMessage(text="\n".join(lines), buttons=tuple(row for row in rows if row))


def file_of(part: Part) -> ScreenFile | None:
    """Return the file of a part, as the channel has it."""
    if part.kind is not PartKind.FILE or part.file is None or file_id(part) is None:
        return None
    return ScreenFile(reference=part.file)


def _head(screen: ScreenContext, job: Job, index: int) -> Html:
    t, model = screen.translator, screen.storefront.catalog.models.get(job.model)
    title, day = model_label(model, t) if model else job.model, t.day(job.created_at)
    if len(job.parts) > 1:
        values = {"index": index + 1, "count": len(job.parts)}
        return t.html("gallery.head_of", title=title, code=public_code(job.id, t), day=day, **values)
    return t.html("gallery.head", title=title, code=public_code(job.id, t), day=day)


def _filters(kind: str, t: Translator) -> Row:
    names = {letter: t.plain(f"gallery.kind_{letter}") for letter in FILTERS}
    return tuple(
        button(f"•\N{NO-BREAK SPACE}{name}" if letter == kind else name, "mine", letter)
        for letter, name in names.items()
    )


def _pager(t: Translator, kind: str, newer: tuple[int, int] | None, older: tuple[int, int] | None) -> Row:
    def go(key: str, place: tuple[int, int] | None) -> list[Button]:
        if place is None:
            return []
        return [button(t.plain(key), "mine", kind, t.numbers.order(place[0]), place[1])]

    return (*go("button.newer", newer), *go("button.more", older))


def empty(screen: ScreenContext, kind: str, *, note: Html | None = None) -> OutgoingMessage:
    """Return the gallery of a user who has no such result."""
    t = screen.translator
    text = t.html("gallery.none" if kind == ALL else "gallery.none_of_kind")
    lines = [*([note, ""] if note else []), text]
    last: Row = (button(t.plain("gallery.list"), "history"), button(t.plain("button.menu"), "menu"))
    rows = (last,) if kind == ALL else (_filters(kind, t), last)
    return OutgoingMessage(text="\n".join(lines), buttons=rows)


def ask_removal(screen: ScreenContext, job: Job, index: int, kind: str) -> OutgoingMessage:
    """Ask whether to remove a result from the gallery."""
    t, number = screen.translator, screen.translator.numbers.order(job.id)
    text = Html("\n".join([_head(screen, job, index), "", t.html("gallery.remove_question")]))
    yes = button(t.plain("gallery.remove_yes"), "ghide", number, index, kind)
    no = button(t.plain("button.back"), "mine", kind, number, index)
    return OutgoingMessage(text=text, buttons=((yes, no),))


def with_undo(message: OutgoingMessage, t: Translator, job: Job, index: int, kind: str) -> OutgoingMessage:
    """Return a screen with a button that takes a removal back."""
    undo = button(t.plain("gallery.undo"), "gundo", t.numbers.order(job.id), index, kind)
    return OutgoingMessage(text=message.text, buttons=((undo,), *message.buttons))
