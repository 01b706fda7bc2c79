"""Money and past orders: the balance, packages to buy, results to see again."""

from collections.abc import Sequence

from genlock.bot.buttons import Row, button
from genlock.bot.look import ICONS, Look, code, prompt_of, shorten, titled
from genlock.bot.rules import Package
from genlock.bot.tongue import Html, Tongue
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import THOUSANDTHS, Account, Kind, Movement
from genlock.telegram.words import Said

HISTORY_A_PAGE = 8
MOVEMENTS_SHOWN = 10
#: a phone cuts a long button
WORDS_IN_ROW = 22
PROMPT_SHOWN = 500
#: what is set aside and given back comes to nothing
PASSING = (Kind.HOLD, Kind.RELEASE)


def balance(look: Look, movements: Sequence[Movement]) -> Said:
    """What a person has, what is set aside, what moved last."""
    t = look.tongue
    lines: list[str] = [t.say("balance.title", credits=t.credits(look.wallet.available))]
    if look.wallet.held:
        lines.append(t.say("balance.held", credits=t.credits(look.wallet.held)))
    if look.free.left:
        lines.append(t.say("balance.free", n=look.free.left))
    told = [_movement(line, t) for line in movements if line.kind not in PASSING]
    lines += ["", t.say("balance.movements"), *told[:MOVEMENTS_SHOWN]] if told else ["", t.say("balance.none")]
    rows: tuple[Row, ...] = (
        (button(t.tag("button.topup"), "topup"), button(t.tag("button.promo"), "promo")),
        (button(t.tag("button.invite"), "invite"), button(t.tag("button.history"), "history")),
        (button(t.tag("button.menu"), "menu"),),
    )
    return Said(text="\n".join(lines), buttons=rows)


def _movement(line: Movement, t: Tongue) -> Html:
    sign = "+" if line.credit is Account.AVAILABLE else "-"
    return t.say("balance.line", when=t.when(line.at), amount=sign + t.amount(line.amount), what=_what(line, t))


def _what(line: Movement, t: Tongue) -> str:
    """Why it moved; gifts are told apart by their keys."""
    beginning = line.key.partition(":")[0]
    if beginning in ("welcome", "referral", "promo"):
        return t.tag(f"balance.{beginning}")
    return t.tag(f"balance.{line.kind.value}", code=code(line.job_id or 0))


def topup(look: Look, packages: Sequence[Package], *, support: str, missing: int = 0) -> Said:
    """Packages of credits for stars; with something missing, an order waits behind the page."""
    t = look.tongue
    back: Row = (button(t.tag("button.back"), "here" if missing else "balance"), button(t.tag("button.menu"), "menu"))
    if not packages:
        return Said(text=t.say("topup.none", support=support or t.tag("paysupport.support_default")), buttons=(back,))
    lines: list[str] = [t.say("topup.title"), t.say("menu.balance", credits=t.credits(look.wallet.available))]
    if missing > 0:
        lines.append(t.say("topup.missing", credits=t.credits(missing)))
    lines += ["", t.say("topup.choose")]
    rows = [
        (
            button(
                t.tag(
                    "topup.package",
                    stars=t.number(package.stars),
                    credits=t.credits(package.credits * THOUSANDTHS),
                ),
                "buy",
                package.stars,
            ),
        )
        for package in packages
    ]
    return Said(text="\n".join(lines), buttons=(*rows, back))


def history(look: Look, jobs: Sequence[Job], *, newest: bool, more: bool) -> Said:
    """Past orders, newest first."""
    t = look.tongue
    if not jobs and newest:
        return Said(text=t.say("history.none"), buttons=((button(t.tag("button.menu"), "menu"),),))
    rows: list[Row] = [(button(_row(look, job), "order", job.id),) for job in jobs]
    turn: list[Row] = []
    if not newest:
        turn.append((button(t.tag("button.newer"), "history"),))
    if more and jobs:
        turn.append((button(t.tag("button.more"), "history", jobs[-1].id),))
    rows += [tuple(one for row in turn for one in row)] if turn else []
    rows.append((button(t.tag("button.menu"), "menu"),))
    return Said(text=t.say("history.title"), buttons=tuple(rows))


def cancellable(look: Look, jobs: Sequence[Job]) -> Said:
    """Orders in the works, each with a button that stops it."""
    t = look.tongue
    rows = [(button(f"✖️ {code(job.id)} · {_row(look, job)}", "cancel", job.id),) for job in jobs]
    return Said(text=t.say("menu.which_to_cancel"), buttons=(*rows, (button(t.tag("button.menu"), "menu"),)))


def _row(look: Look, job: Job) -> str:
    model = look.shop.catalog.models.get(job.model)
    icon = _state_icon(job) or (ICONS[model.category] if model else "")
    day = look.tongue.day(job.created_at)
    if prompt := prompt_of(job, model):
        return look.tongue.tag("history.row_words", icon=icon, text=shorten(prompt, WORDS_IN_ROW), day=day)
    title = titled(model, look.tongue) if model else job.model
    return look.tongue.tag("history.row", icon=icon, title=title, day=day)


def _state_icon(job: Job) -> str:
    if not job.ended:
        return "⏳"
    return "" if job.state is State.SUCCEEDED else "✖️"


def order(look: Look, job: Job) -> Said:
    """One past order and what can be done with it."""
    t = look.tongue
    model = look.shop.catalog.models.get(job.model)
    text = t.say(
        "history.order",
        title=titled(model, t) if model else job.model,
        code=code(job.id),
        when=t.when(job.created_at),
        state=t.tag(f"history.{_state(job)}"),
    )
    if prompt := prompt_of(job, model):
        text = Html(f"{text}\n{t.say('order.caption_prompt', text=shorten(prompt, PROMPT_SHOWN))}")
    rows: list[Row] = []
    if not job.ended:
        rows.append((button(t.tag("button.stop"), "cancel", job.id),))
    elif job.state is State.SUCCEEDED:
        rows.append((button(t.tag("button.again"), "again", job.id),))
    if look.shop.by_id(job.model):
        rows.append(
            (
                button(t.tag("button.repeat"), "repeat", job.id),
                button(t.tag("button.change_repeat"), "change", job.id),
            )
        )
    rows.append((button(t.tag("button.back"), "history", job.id + 1), button(t.tag("button.menu"), "menu")))
    return Said(text=text, buttons=tuple(rows))


def _state(job: Job) -> str:
    if not job.ended or job.delivery in (Delivery.PENDING, Delivery.SENDING):
        return "waiting"
    if job.state is State.SUCCEEDED:
        return "delivered"
    return "cancelled" if job.state is State.CANCELLED else "failed"
