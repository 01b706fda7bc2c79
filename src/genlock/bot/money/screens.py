"""Screens of the wallet and of past orders. Pure functions."""

from collections.abc import Sequence
from urllib.parse import quote_plus

from genlock.bot.buttons import Row, button
from genlock.bot.money.worth import worth
from genlock.bot.order.next_step_screens import likely_steps
from genlock.bot.order.results import is_sent_to_chat
from genlock.bot.rules import Package
from genlock.bot.screen_context import ICONS, ScreenContext, model_label, own_prompt, public_code, shorten
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import THOUSANDTHS, EntryKind, LedgerAccount, LedgerEntry
from genlock.i18n.translator import Html, Translator
from genlock.ports import Button, OutgoingMessage

HISTORY_A_PAGE = 8
ENTRIES_SHOWN = 10
#: a phone cuts the text of a long button
PROMPT_IN_ROW = 22
PROMPT_SHOWN = 500
#: ledger entries that users do not see: a hold is followed by a capture or a release
HIDDEN = (EntryKind.HOLD, EntryKind.RELEASE)


def balance(screen: ScreenContext, ledger_entries: Sequence[LedgerEntry]) -> OutgoingMessage:
    """Return the balance, what is held for orders, and the last ledger entries."""
    t = screen.translator
    lines: list[str] = [t.html("balance.title", credits=t.credits(screen.wallet.available))]
    lines += _worth_of_balance(screen)
    if screen.wallet.held:
        lines.append(t.html("balance.held", credits=t.credits(screen.wallet.held)))
    if screen.wallet.debt:
        lines.append(t.html("balance.debt", credits=t.credits(screen.wallet.debt)))
    lines += screen.free_runs()
    visible = [entry for entry in ledger_entries if entry.kind not in HIDDEN][:ENTRIES_SHOWN]
    lines += ["", t.html("balance.entries"), *_by_day(visible, t)] if visible else ["", t.html("balance.none")]
    rows: tuple[Row, ...] = (
        (button(t.plain("button.topup"), "topup"), button(t.plain("button.promo"), "promo")),
        (button(t.plain("button.invite"), "invite"), button(t.plain("button.history"), "history")),
        (button(t.plain("button.menu"), "menu"),),
    )
    return OutgoingMessage(text="\n".join(lines), buttons=rows)


def _worth_of_balance(screen: ScreenContext) -> list[Html]:
    things = worth(screen, screen.wallet.available)
    return [screen.translator.html("worth.balance", things=things)] if things else []


def _by_day(ledger_entries: Sequence[LedgerEntry], t: Translator) -> list[Html]:
    """Ledger entries, under the day they were made on."""
    lines: list[Html] = []
    last = ""
    for entry in ledger_entries:
        if (day := t.day(entry.at)) != last:
            lines.append(t.html("balance.day", day=day))
            last = day
        sign = "+" if entry.credit is LedgerAccount.AVAILABLE else "\N{MINUS SIGN}"
        lines.append(t.html("balance.line", amount=sign + t.amount(entry.amount), what=_what(entry, t)))
    return lines


def _what(entry: LedgerEntry, t: Translator) -> str:
    """Return what a ledger entry is for, by the prefix of its key."""
    beginning, _, rest = entry.key.partition(":")
    if beginning in ("welcome", "referral", "promo", "unstars", "restars", "chargeback", "repay"):
        return t.plain(f"balance.{beginning}")
    if beginning == "admin":
        return t.plain(f"balance.admin_{entry.kind.value}")
    job_id = int(rest) if beginning == "refund" and rest.isdecimal() else entry.job_id
    code = public_code(job_id, t) if job_id else "#"
    return t.plain(f"balance.{entry.kind.value}", code=code).removesuffix(" #")


def topup(screen: ScreenContext, packages: Sequence[Package], *, support: str, missing: int = 0) -> OutgoingMessage:
    """Packages of credits for stars. With something missing, an order waits for the payment."""
    t = screen.translator
    back: Row = (
        button(t.plain("button.back"), "here" if missing else "balance"),
        button(t.plain("button.menu"), "menu"),
    )
    if not packages:
        return OutgoingMessage(
            text=t.html("topup.none", support=support or t.plain("paysupport.support_default")), buttons=(back,)
        )
    lines: list[str] = [t.html("topup.title"), t.html("menu.balance", credits=t.credits(screen.wallet.available))]
    if missing > 0:
        lines.append(t.html("topup.missing", credits=t.credits(missing)))
    elif things := worth(screen, packages[0].credits * THOUSANDTHS):
        lines.append(t.html("worth.example", credits=t.credits(packages[0].credits * THOUSANDTHS), things=things))
    lines += ["", t.html("topup.enough" if missing > 0 else "topup.choose")]
    rows = [(_package(package, t, missing),) for package in packages]
    return OutgoingMessage(text="\n".join(lines), buttons=(*rows, back))


def _package(package: Package, t: Translator, missing: int) -> Button:
    amount = package.credits * THOUSANDTHS
    key = "package_enough" if 0 < missing <= amount else "package"
    values = {"stars": t.number(package.stars), "credits": t.credits(amount)}
    if package.bonus:
        return button(t.plain(f"bonus.{key}", percent=package.bonus, **values), "buy", package.stars)
    return button(t.plain(f"topup.{key}", **values), "buy", package.stars)


def invite(t: Translator, link: str, *, inviter: int, invited: int) -> tuple[Html, Row]:
    """Return the user's invitation link, what it brings, and a button that shares it."""
    key = ("both" if invited else "inviter") if inviter else ("invited" if invited else "off")
    terms = t.html(f"invite.{key}", inviter=t.credits(inviter), invited=t.credits(invited))
    share = f"https://t.me/share/url?url={quote_plus(link)}&text={quote_plus(t.plain('invite.share_text'))}"
    text = Html("\n".join([t.html("invite.title"), terms, "", t.html("invite.link", link=link)]))
    return text, (Button(text=t.plain("button.share"), url=share),)


def history(screen: ScreenContext, jobs: Sequence[Job], *, newest: bool, older: int | None) -> OutgoingMessage:
    """Past orders, newest first. `older` is the id below which the next page begins."""
    t = screen.translator
    if not jobs and newest and older is None:
        return OutgoingMessage(text=t.html("history.none"), buttons=((button(t.plain("button.menu"), "menu"),),))
    rows: list[Row] = [(button(_row(screen, job), "order", job.id),) for job in jobs]
    pages: list[Row] = []
    if not newest:
        pages.append((button(t.plain("button.newer"), "history"),))
    if older is not None:
        pages.append((button(t.plain("button.more"), "history", older),))
    rows += [tuple(key for row in pages for key in row)] if pages else []
    rows.append((button(t.plain("button.menu"), "menu"),))
    return OutgoingMessage(text=t.html("history.title"), buttons=tuple(rows))


def cancellable(screen: ScreenContext, jobs: Sequence[Job]) -> OutgoingMessage:
    """Running orders, each with a button that cancels it."""
    t = screen.translator
    rows = [(button(f"✖️ {public_code(job.id, t)} · {_row(screen, job)}", "cancel", job.id),) for job in jobs]
    return OutgoingMessage(
        text=t.html("menu.which_to_cancel"), buttons=(*rows, (button(t.plain("button.menu"), "menu"),))
    )


def _row(screen: ScreenContext, job: Job) -> str:
    model = screen.storefront.catalog.models.get(job.model)
    icon = _state_icon(job) or (ICONS[model.category] if model else "")
    day = screen.translator.day(job.created_at)
    if prompt := own_prompt(job, screen.storefront.catalog):
        return screen.translator.plain("history.row_prompt", icon=icon, text=shorten(prompt, PROMPT_IN_ROW), day=day)
    title = model_label(model, screen.translator) if model else job.model
    return screen.translator.plain("history.row", icon=icon, title=title, day=day)


def _state_icon(job: Job) -> str:
    if not job.ended:
        return "⏳"
    return "" if job.has_result else "✖️"


def order(screen: ScreenContext, job: Job) -> OutgoingMessage:
    """One order, with buttons for what can be done with it."""
    t = screen.translator
    model = screen.storefront.catalog.models.get(job.model)
    text = t.html(
        "history.order",
        title=model_label(model, t) if model else job.model,
        code=public_code(job.id, t),
        when=t.day_and_time(job.created_at),
        state=t.plain(f"history.{_state(job)}"),
    )
    if prompt := own_prompt(job, screen.storefront.catalog):
        text = Html(f"{text}\n{t.html('order.caption_prompt', text=shorten(prompt, PROMPT_SHOWN))}")
    rows: list[Row] = []
    if not job.ended:
        rows.append((button(t.plain("button.stop"), "cancel", job.id),))
    elif job.has_result and job.parts:
        rows += likely_steps(screen.storefront.catalog, job, t)
        if is_sent_to_chat(job):
            rows.append((button(t.plain("button.again"), "again", job.id),))
    if job.erased:
        text = Html(f"{text}\n{t.html('history.erased')}")
    elif screen.storefront.by_id(job.model):
        rows.append(
            (
                button(t.plain("button.repeat"), "repeat", job.id),
                button(t.plain("button.change_repeat"), "change", job.id),
            )
        )
    rows.append((button(t.plain("button.back"), "history", job.id + 1), button(t.plain("button.menu"), "menu")))
    return OutgoingMessage(text=text, buttons=tuple(rows))


def _state(job: Job) -> str:
    if not job.ended or job.delivery in (Delivery.PENDING, Delivery.SENDING):
        return "waiting"
    if job.has_result:
        return "delivered"
    return "cancelled" if job.state is State.CANCELLED else "failed"
