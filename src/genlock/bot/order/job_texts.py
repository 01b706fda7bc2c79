"""Texts that the channel shows for a job: progress, captions, the end."""

from genlock.bot.buttons import button, grid, staying
from genlock.bot.order.improve_screens import choice, is_improvement, keep
from genlock.bot.order.improve_screens import notice as improved
from genlock.bot.order.next_step_screens import rows_under_result, vary, what_next
from genlock.bot.order.request_keys import GroupKey, VoiceKey
from genlock.bot.order.variations import varies
from genlock.bot.screen_context import model_label, own_prompt, public_code, shorten, style_of_job, text_of
from genlock.domain.catalog import Model
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.delivery import Part, Step, shown_results
from genlock.domain.job import Actor, AttentionCode, Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.i18n.catalog_texts import in_language
from genlock.i18n.loader import DEFAULT
from genlock.i18n.translator import Html, Texts, Translator, package_texts
from genlock.ports import Button, FileLabel, OutgoingMessage

BAR = 10
#: from this share of the expected time on, the remaining time is not shown: it would be a guess
LATE_SHARE = 0.9
PROMPT_SHOWN = 500
#: an input that some models of music have
TITLE = "title"
TITLE_LENGTH = 60
ASSUMED_SECONDS = 60
#: failures that the same order would meet again
SAME_AGAIN_FAILS = ("moderation", "bad_input", "file_unreachable")


class JobTexts:
    """The MessageTexts port in every language. Pure: the same job gives the same texts."""

    def __init__(self, catalog: CurrentCatalog, texts: Texts | None = None) -> None:
        self._catalog = catalog
        self._texts = texts or package_texts()

    def label(self, job: Job) -> FileLabel:
        name = self._title(job, self._texts.translator(DEFAULT))
        title = text_of(job, TITLE) or own_prompt(job, self._catalog.get()) or name
        model = self._model(job)
        return FileLabel(title=shorten(title, TITLE_LENGTH), performer=name, exact=model.exact if model else False)

    def waiting(self, job: Job, language: str, fraction: float | None) -> OutgoingMessage:
        t = self._texts.translator(language)
        values = {"title": self._title(job, t), "code": public_code(job.id, t), "time": t.duration(self._expected(job))}
        if fraction is None:
            key = "order.queued" if job.state is State.QUEUED else "order.running_unknown"
            text = t.html(key, **values)
        else:
            share = min(max(fraction, 0.0), 1.0)
            full = round(share * BAR)
            values |= {"bar": "▓" * full + "░" * (BAR - full), "percent": str(round(share * 100))}
            values["time"] = t.duration(max(self._expected(job) * (1 - share), 1.0))
            text = t.html("progress.late" if share >= LATE_SHARE else "progress.left", **values)
        return OutgoingMessage(text=text, buttons=((button(t.plain("button.stop"), "cancel", job.id),),))

    def placeholder(self, job: Job, language: str, index: int) -> OutgoingMessage:
        t = self._texts.translator(language)
        if index == 0 and not job.ended:
            text = t.html("order.accepted", title=self._title(job, t), time=t.duration(self._expected(job)))
            return OutgoingMessage(text=text, buttons=((button(t.plain("button.stop"), "cancel", job.id),),))
        return OutgoingMessage(
            text=t.html("order.next_part", title=self._title(job, t), code=public_code(job.id, t), index=index + 1)
        )

    def caption(self, job: Job, language: str, index: int, part: Part) -> OutgoingMessage:
        t = self._texts.translator(language)
        lines: list[str] = [self._head(job, t, index)]
        if index == 0 and (prompt := own_prompt(job, self._catalog.get())):
            lines.append(t.html("order.caption_prompt", text=shorten(prompt, PROMPT_SHOWN)))
        if index == 0 and (style := style_of_job(job, self._catalog.get())):
            lines.append(t.html("style.caption", name=in_language(style.name, t)))
        if is_improvement(job):
            return OutgoingMessage(text="\n".join(lines), buttons=choice(job, t) if index == 0 else ())
        return OutgoingMessage(
            text="\n".join(lines), buttons=rows_under_result(self._catalog.get(), job, index, part, t)
        )

    def _head(self, job: Job, t: Translator, index: int) -> Html:
        title, number = self._title(job, t), public_code(job.id, t)
        if len(job.parts) > 1:
            return t.html("order.caption_many", title=title, code=number, index=index + 1, count=len(job.parts))
        return t.html("order.caption", title=title, code=number)

    def link(self, job: Job, language: str, index: int, part: Part) -> OutgoingMessage:
        t = self._texts.translator(language)
        text = t.html("order.link", title=self._title(job, t), code=public_code(job.id, t), link=part.value)
        return OutgoingMessage(text=text, buttons=_original(part, t))

    def failed(self, job: Job, language: str) -> OutgoingMessage:
        t = self._texts.translator(language)
        if job.has_result:
            return OutgoingMessage(
                text=t.html("order.part_invalid", title=self._title(job, t), code=public_code(job.id, t))
            )
        if job.state is State.CANCELLED:
            text = t.html("order.cancelled", code=public_code(job.id, t), money=_money(job, t))
            return OutgoingMessage(text=text, buttons=_to_own_prompt(job, t) or _again_or_menu(job, t))
        lines = [
            t.html("failed.head", code=public_code(job.id, t), title=self._title(job, t)),
            "",
            _reason(job, t),
            _money(job, t),
        ]
        return OutgoingMessage(text="\n".join(lines), buttons=_to_own_prompt(job, t) or _after_failure(job, t))

    def notice(self, job: Job, language: str) -> OutgoingMessage:
        return staying(self._notice(job, language))

    def _notice(self, job: Job, language: str) -> OutgoingMessage:
        t = self._texts.translator(language)
        title, number = self._title(job, t), public_code(job.id, t)
        if _is_unknown(job) and not job.has_result:
            return self.failed(job, language)  # the message with the reason may be missing
        if _needs_no_notice(job):
            return OutgoingMessage(text="")
        if job.state is State.CANCELLED:
            return OutgoingMessage(text=t.html("order.cancelled_notice", code=number))
        if not job.has_result:
            return OutgoingMessage(text=t.html("failed.notice", code=number))  # the message above has the buttons
        if job.attention_code or (is_improvement(job) and not job.late):
            return self._attention_notice(job, t) if job.attention_code else improved(job, self._model(job), t)
        if job.late:
            text = t.html("order.done_late", title=title, code=number)
        elif job.price == 0:
            text = t.html("order.done_free", title=title, code=number)
        else:
            text = t.html("order.done", title=title, code=number, price=t.credits(job.price))
        return OutgoingMessage(text=text, buttons=self._under_notice(job, t))

    def _under_notice(self, job: Job, t: Translator) -> tuple[tuple[Button, ...], ...]:
        """Return what can be done with the order. What can be done with the result is under the result, just above."""
        model, steps = self._model(job), what_next(self._catalog.get(), job, t)
        buttons = [_repeat(job, t, "button.repeat"), button(t.plain("button.change_repeat"), "change", job.id)]
        if model is not None and varies(model):
            buttons.append(vary(job, t))
        buttons += [steps or button(t.plain("button.again"), "again", job.id), _menu(t)]
        return tuple(grid(buttons, 2))

    def _attention_notice(self, job: Job, t: Translator) -> OutgoingMessage:
        """Return the notice of a result that was not, or perhaps not, shown as a whole."""
        values = {"title": self._title(job, t), "code": public_code(job.id, t), "money": _settled_money(job, t)}
        if _is_unknown(job) and job.attention_code is AttentionCode.POISON:
            return OutgoingMessage(text=t.html("order.unsure_listed", **values), buttons=((_menu(t),),))
        if _is_unknown(job):
            key = "order.unsure" if job.delivery is Delivery.UNKNOWN else "order.unsure_part"
            text = t.html(key, **values)
        elif all(part.step is Step.DONE for part in job.parts):
            text = t.html("order.done_broken_part", **values)
        else:
            text = t.html("order.done_partly", **values, n=shown_results(job.parts), count=len(job.parts))
        return OutgoingMessage(text=text, buttons=((button(t.plain("button.again"), "again", job.id), _menu(t)),))

    def _model(self, job: Job) -> Model | None:
        return self._catalog.get().models.get(job.model)

    def _expected(self, job: Job) -> int:
        model = self._model(job)
        return model.expected_seconds if model else ASSUMED_SECONDS

    def _title(self, job: Job, t: Translator) -> str:
        model = self._model(job)
        return model_label(model, t) if model else job.model


def _original(part: Part, t: Translator) -> tuple[tuple[Button, ...], ...]:
    if not part.value.startswith(("https://", "http://")):
        return ()
    return ((Button(text=t.plain("button.original"), url=part.value),),)


def _reason(job: Job, t: Translator) -> Html:
    key = f"failed.{job.told_reason}"
    return t.html(key if job.error_code and key in t else "failed.other")


def _needs_no_notice(job: Job) -> bool:
    """Whether the user knows already, or the bot goes on itself: with the spoken prompt, or for the whole group."""
    if job.state is State.CANCELLED and job.cancelled_by is Actor.USER:
        return True
    if job.attention_code or _is_unknown(job):
        return False
    spoken = job.has_result and VoiceKey.read(job.request_key) is not None
    return spoken or GroupKey.read(job.request_key) is not None


def _is_unknown(job: Job) -> bool:
    """Whether the answer to a send was lost, so that the user may or may not see a part."""
    return job.delivery is Delivery.UNKNOWN or job.attention_code is AttentionCode.UNKNOWN_DELIVERY


def _settled_money(job: Job, t: Translator) -> Html:
    """Say what became of the price of a result."""
    if job.hold_state is HoldState.CAPTURED:
        return t.html("order.paid", credits=t.credits(job.price))
    if job.hold_state is HoldState.RELEASED:
        return t.html("order.returned", credits=t.credits(job.price))
    return t.html("order.not_paid")


def _money(job: Job, t: Translator) -> Html:
    if job.hold_state is HoldState.FREE or job.price == 0:
        return t.html("failed.money_none")
    if any(part.repeated for part in job.parts):  # an earlier message said that the credits are back
        return t.html("failed.money_none")
    return t.html("failed.money_back", credits=t.credits(job.price))


def _to_own_prompt(job: Job, t: Translator) -> tuple[tuple[Button, ...], ...]:
    """Return the way back to the order whose prompt was to be improved; empty for other orders."""
    return ((keep(job, t), _menu(t)),) if is_improvement(job) else ()


def _after_failure(job: Job, t: Translator) -> tuple[tuple[Button, ...], ...]:
    change = button(t.plain("button.change_repeat"), "change", job.id)
    if job.error_code in SAME_AGAIN_FAILS:
        return ((change, _menu(t)),)
    return ((_repeat(job, t, "button.try_again"), change), (_menu(t),))


def _again_or_menu(job: Job, t: Translator) -> tuple[tuple[Button, ...], ...]:
    return ((_repeat(job, t, "button.try_again"), _menu(t)),)


def _repeat(job: Job, t: Translator, key: str) -> Button:
    return button(t.plain(key), "repeat", job.id)


def _menu(t: Translator) -> Button:
    return button(t.plain("button.menu"), "menu")
