"""What the channel says about an order: while it is made, under its results, at its end."""

from collections.abc import Callable

from genlock.bot.buttons import button
from genlock.bot.look import code, prompt_of, shorten, text_of, titled
from genlock.bot.tongue import DEFAULT, Html, Tongue, tongue
from genlock.domain.catalog import Model
from genlock.domain.delivery import Part
from genlock.domain.errors import NoSuchModel
from genlock.domain.job import Job, State
from genlock.domain.money import Purse
from genlock.telegram.address import Address
from genlock.telegram.words import Button, Label, Said

BAR = 10
PROMPT_SHOWN = 500
#: an input that some models of music have
TITLE = "title"
TITLE_LENGTH = 60
ASSUMED_SECONDS = 60
#: failures that the same order would meet again
SAME_AGAIN_FAILS = ("moderation", "bad_input", "file_unreachable")


class ChatWords:
    """The Words port in both languages. Pure: the same job gives the same words."""

    def __init__(self, find_model: Callable[[str], Model]) -> None:
        self._find_model = find_model

    def label(self, job: Job) -> Label:
        name = self._title(job, tongue(DEFAULT))
        words = text_of(job, TITLE) or prompt_of(job, self._model(job)) or name
        return Label(title=shorten(words, TITLE_LENGTH), performer=name)

    def waiting(self, job: Job, address: Address, fraction: float | None) -> Said:
        t = tongue(address.language)
        facts = {"title": self._title(job, t), "code": code(job.id), "time": t.lasting(self._expected(job))}
        if fraction is None:
            key = "order.queued" if job.state is State.QUEUED else "order.running_unknown"
            text = t.say(key, **facts)
        else:
            share = min(max(fraction, 0.0), 1.0)
            full = round(share * BAR)
            text = t.say("order.running", **facts, bar="▓" * full + "░" * (BAR - full), percent=round(share * 100))
        return Said(text=text, buttons=((button(t.tag("button.stop"), "cancel", job.id),),))

    def place(self, job: Job, address: Address, index: int) -> Said:
        t = tongue(address.language)
        if index == 0 and not job.ended:
            text = t.say("order.accepted", title=self._title(job, t), time=t.lasting(self._expected(job)))
            return Said(text=text, buttons=((button(t.tag("button.stop"), "cancel", job.id),),))
        return Said(text=t.say("order.next_part", title=self._title(job, t), code=code(job.id), index=index + 1))

    def caption(self, job: Job, address: Address, index: int, part: Part) -> Said:
        t = tongue(address.language)
        lines: list[str] = [self._head(job, t, index)]
        if index == 0 and (prompt := prompt_of(job, self._model(job))):
            lines.append(t.say("order.caption_prompt", text=shorten(prompt, PROMPT_SHOWN)))
        return Said(text="\n".join(lines), buttons=_original(part, t))

    def _head(self, job: Job, t: Tongue, index: int) -> Html:
        title, number = self._title(job, t), code(job.id)
        if len(job.parts) > 1:
            return t.say("order.caption_many", title=title, code=number, index=index + 1, count=len(job.parts))
        return t.say("order.caption", title=title, code=number)

    def link(self, job: Job, address: Address, index: int, part: Part) -> Said:
        t = tongue(address.language)
        text = t.say("order.link", title=self._title(job, t), code=code(job.id), link=part.value)
        return Said(text=text, buttons=_original(part, t))

    def failed(self, job: Job, address: Address) -> Said:
        t = tongue(address.language)
        if job.state is State.CANCELLED:
            text = t.say("order.cancelled", code=code(job.id), money=_money(job, t))
            return Said(text=text, buttons=_again_or_menu(job, t))
        lines = [
            t.say("failed.head", code=code(job.id), title=self._title(job, t)),
            "",
            _reason(job, t),
            _money(job, t),
        ]
        return Said(text="\n".join(lines), buttons=_after_failure(job, t))

    def notice(self, job: Job, address: Address) -> Said:
        t = tongue(address.language)
        title, number = self._title(job, t), code(job.id)
        if job.state is State.CANCELLED:
            if job.error_text.startswith("by person"):
                return Said(text="")  # they have just seen it
            return Said(text=t.say("order.cancelled_notice", code=number))
        if job.state is not State.SUCCEEDED:
            return Said(text=t.say("failed.notice", code=number))  # the message above has the buttons
        if job.late:
            text = t.say("order.done_late", title=title, code=number)
        elif job.price == 0:
            text = t.say("order.done_free", title=title, code=number)
        else:
            text = t.say("order.done", title=title, code=number, price=t.credits(job.price))
        rows = (
            (button(t.tag("button.again"), "again", job.id), _repeat(job, t, "button.repeat")),
            (button(t.tag("button.change_repeat"), "change", job.id), _menu(t)),
        )
        return Said(text=text, buttons=rows)

    def _model(self, job: Job) -> Model | None:
        try:
            return self._find_model(job.model)
        except NoSuchModel:
            return None

    def _expected(self, job: Job) -> int:
        model = self._model(job)
        return model.expected_seconds if model else ASSUMED_SECONDS

    def _title(self, job: Job, t: Tongue) -> str:
        model = self._model(job)
        return titled(model, t) if model else job.model


def _original(part: Part, t: Tongue) -> tuple[tuple[Button, ...], ...]:
    if not part.value.startswith(("https://", "http://")):
        return ()
    return ((Button(text=t.tag("button.original"), url=part.value),),)


def _reason(job: Job, t: Tongue) -> Html:
    key = f"failed.{job.error_code}"
    return t.say(key if job.error_code and key in t else "failed.other")


def _money(job: Job, t: Tongue) -> Html:
    if job.purse is Purse.FREE or job.price == 0:
        return t.say("failed.money_none")
    return t.say("failed.money_back", credits=t.credits(job.price))


def _after_failure(job: Job, t: Tongue) -> tuple[tuple[Button, ...], ...]:
    change = button(t.tag("button.change_repeat"), "change", job.id)
    if job.error_code in SAME_AGAIN_FAILS:
        return ((change, _menu(t)),)
    return ((_repeat(job, t, "button.try_again"), change), (_menu(t),))


def _again_or_menu(job: Job, t: Tongue) -> tuple[tuple[Button, ...], ...]:
    return ((_repeat(job, t, "button.try_again"), _menu(t)),)


def _repeat(job: Job, t: Tongue, key: str) -> Button:
    return button(t.tag(key), "repeat", job.id)


def _menu(t: Tongue) -> Button:
    return button(t.tag("button.menu"), "menu")
