"""Money and past orders: the balance, packages to buy, results to see again."""

from collections.abc import Sequence
from urllib.parse import quote_plus

from genlock.bot.buttons import Row, button
from genlock.bot.look import ICONS, Look, code, prompt_of, shorten, titled
from genlock.bot.rules import Package
from genlock.bot.tongue import Html, Tongue
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import THOUSANDTHS, Account, Kind, Movement
from genlock.telegram.words import Button, Said

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
    lines += look.free_runs()
    told = [line for line in movements if line.kind not in PASSING][:MOVEMENTS_SHOWN]
    lines += ["", t.say("balance.movements"), *_by_day(told, t)] if told else ["", t.say("balance.none")]
    rows: tuple[Row, ...] = (
        (button(t.tag("button.topup"), "topup"), button(t.tag("button.promo"), "promo")),
        (button(t.tag("button.invite"), "invite"), button(t.tag("button.history"), "history")),
        (button(t.tag("button.menu"), "menu"),),
    )
    return Said(text="\n".join(lines), buttons=rows)


def _by_day(movements: Sequence[Movement], t: Tongue) -> list[Html]:
    """What moved, under the day it moved on."""
    lines: list[Html] = []
    last = ""
    for line in movements:
        if (day := t.day(line.at)) != last:
            lines.append(t.say("balance.day", day=day))
            last = day
        sign = "+" if line.credit is Account.AVAILABLE else "\N{MINUS SIGN}"
        lines.append(t.say("balance.line", amount=sign + t.amount(line.amount), what=_what(line, t)))
    return lines


def _what(line: Movement, t: Tongue) -> str:
    """Why it moved; what is of one kind is told apart by its key."""
    beginning, _, rest = line.key.partition(":")
    if beginning in ("welcome", "referral", "promo", "unstars", "restars"):
        return t.tag(f"balance.{beginning}")
    if beginning == "admin":
        return t.tag(f"balance.admin_{line.kind.value}")
    number = rest if beginning == "refund" and rest.isdecimal() else str(line.job_id or "")
    return t.tag(f"balance.{line.kind.value}", code=f"#{number}").removesuffix(" #")


def topup(look: Look, packages: Sequence[Package], *, support: str, missing: int = 0) -> Said:
    """Packages of credits for stars; with something missing, an order waits behind the page."""
    t = look.tongue
    back: Row = (button(t.tag("button.back"), "here" if missing else "balance"), button(t.tag("button.menu"), "menu"))
    if not packages:
        return Said(text=t.say("topup.none", support=support or t.tag("paysupport.support_default")), buttons=(back,))
    lines: list[str] = [t.say("topup.title"), t.say("menu.balance", credits=t.credits(look.wallet.available))]
    if missing > 0:
        lines.append(t.say("topup.missing", credits=t.credits(missing)))
    lines += ["", t.say("topup.enough" if missing > 0 else "topup.choose")]
    rows = [(_package(package, t, missing),) for package in packages]
    return Said(text="\n".join(lines), buttons=(*rows, back))


def _package(package: Package, t: Tongue, missing: int) -> Button:
    worth = package.credits * THOUSANDTHS
    key = "topup.package_enough" if 0 < missing <= worth else "topup.package"
    return button(t.tag(key, stars=t.number(package.stars), credits=t.credits(worth)), "buy", package.stars)


def invite(t: Tongue, link: str, *, inviter: int, invited: int) -> Said:
    """One's own link, what it brings, and a way to send it to somebody."""
    key = ("both" if invited else "inviter") if inviter else ("invited" if invited else "off")
    terms = t.say(f"invite.{key}", inviter=t.credits(inviter), invited=t.credits(invited))
    share = f"https://t.me/share/url?url={quote_plus(link)}&text={quote_plus(t.tag('invite.words'))}"
    rows: tuple[Row, ...] = (
        (Button(text=t.tag("button.share"), url=share),),
        (button(t.tag("button.back"), "balance"), button(t.tag("button.menu"), "menu")),
    )
    return Said(text="\n".join([t.say("invite.title"), terms, "", t.say("invite.link", link=link)]), buttons=rows)


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
