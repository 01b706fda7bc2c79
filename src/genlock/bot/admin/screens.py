"""Screens for operators: figures, accounts, orders, money. Pure functions; every screen leads back to the overview."""

import hashlib
from collections.abc import Mapping, Sequence

from genlock.bot.admin.margin import margin_lines
from genlock.bot.buttons import Row, button
from genlock.bot.screen_context import code, public_code, shorten
from genlock.channels.telegram.text import without_tags
from genlock.domain.audit import AuditLine
from genlock.domain.broadcast import Broadcast
from genlock.domain.figures import JobFigures, TopupFigures
from genlock.domain.job import AttentionCode, Delivery, Job
from genlock.domain.margin import Money
from genlock.domain.money import HoldState, Wallet
from genlock.domain.payment import Payment, PaymentState
from genlock.domain.profile import Profile
from genlock.domain.result import PartKind
from genlock.domain.value import value
from genlock.i18n.audit_words import describe
from genlock.i18n.translator import Html, Translator
from genlock.ports import Button, OutgoingMessage

OPEN = ("queued", "submitting", "running")
#: a phone cuts the text of a button at about forty characters
NAME_IN_ROW = 26
TITLE_IN_ROW = 18
ERROR_SHOWN = 300
DETAIL_SHOWN = 80
#: actions whose detail is a message in Telegram's HTML
_WITH_MARKUP = frozenset({"broadcast", "test broadcast"})
PROMPT_SHOWN = 300
#: how much of a result the card of an order shows: addresses of files, or the beginning of a text
RESULT_SHOWN = 400
RESULTS_SHOWN = 4
#: a receipt is too long for the data of a button, so its digest stands for it
DIGEST_LENGTH = 12
#: commands that are listed together
COMMAND_GROUPS = (
    ("find", "user"),
    ("credit", "debit"),
    ("ban", "unban", "erase"),
    ("order", "stars"),
    ("promo", "close"),
    ("broadcast",),
    ("maintenance",),
)


def admin_button(t: Translator, name: str, *args: object, **values: object) -> Button:
    """Return a button for operators, with the text `admin.button_NAME`."""
    return button(t.plain(f"admin.button_{name}", **values), "adm", *args)


def home(t: Translator) -> Row:
    return (admin_button(t, "home", "today"),)


def with_note(note: Html | None, screen: OutgoingMessage) -> OutgoingMessage:
    """Return a screen with a note above it about what has just been done."""
    return OutgoingMessage(text=f"{note}\n\n{screen.text}", buttons=screen.buttons) if note else screen


def message(t: Translator, text: Html, *rows: Row) -> OutgoingMessage:
    """Return a text with the button to the overview."""
    return OutgoingMessage(text=text, buttons=(*rows, home(t)))


def reached(t: Translator, *, reached: bool) -> str:
    """Return the text that says whether the user was notified of what the operator did."""
    return t.plain("admin.user_told" if reached else "admin.user_not_reached")


def commands(t: Translator, names: Sequence[str], *, note: Html | None = None) -> OutgoingMessage:
    """How every command is written, in groups by subject."""
    known = {name for group in COMMAND_GROUPS for name in group}
    groups = [*COMMAND_GROUPS, tuple(name for name in names if name not in known)]
    usages = ["\n".join(t.html(f"admin.usage_{name}") for name in group if name in names) for group in groups]
    return message(t, Html("\n\n".join([note or t.html("admin.commands"), *filter(None, usages)])))


def usage(t: Translator, name: str) -> OutgoingMessage:
    """How one command is written."""
    return message(t, Html(f"{t.html('admin.not_understood')}\n{t.html(f'admin.usage_{name}')}"))


# figures


@value
class Sales:
    """The figures of a period."""

    jobs: JobFigures
    money: Money
    topups: TopupFigures
    #: who ordered
    users: int
    newcomers: int


def figures(
    t: Translator,
    period: str,
    sales: Sales,
    counts: Mapping[str, int],
    *,
    refunds: int,
    maintenance: bool,
    broadcast: Broadcast | None,
) -> OutgoingMessage:
    jobs, money, topups = sales.jobs, sales.money, sales.topups
    lines = [
        t.html("admin.title", period=t.plain(f"admin.{period}")),
        "",
        t.html("admin.orders", orders=jobs.orders, delivered=jobs.delivered, failed=jobs.failed),
        t.html("admin.people", people=sales.users, newcomers=sales.newcomers),
        *margin_lines(t, jobs.revenue, money),
        t.html("admin.topups", stars=topups.paid_amount, topups=t.credits(topups.credits)),
        *([t.html("admin.loss", loss=t.amount(jobs.loss))] if jobs.loss else []),
        "",
        t.html("admin.now"),
        t.html("admin.open", n=sum(counts.get(state, 0) for state in OPEN)),
        t.html("admin.callbacks", callbacks=counts.get("callbacks", 0), orphans=counts.get("orphans", 0)),
        t.html("admin.attention_now", n=counts.get("attention", 0)),
        *_of_this_bot(t, refunds, broadcast, maintenance=maintenance),
    ]
    rows: tuple[Row, ...] = (
        (_period(t, "today", period), _period(t, "week", period)),
        (admin_button(t, "find", "find"), admin_button(t, "attention", "attention")),
        (admin_button(t, "promos", "promos"), admin_button(t, "broadcast", "broadcast")),
        (admin_button(t, "maintenance", "maintenance"), admin_button(t, "refunds", "refunds")),
        (admin_button(t, "log", "log"), admin_button(t, "commands", "commands")),
        (admin_button(t, "dashboard", "dashboard"),),
    )
    return OutgoingMessage(text="\n".join(lines), buttons=rows)


def _of_this_bot(t: Translator, refunds: int, broadcast: Broadcast | None, *, maintenance: bool) -> list[str]:
    """Return what goes on in this bot, set apart from the lines above it, which count all bots."""
    lines: list[str] = [t.html("admin.refunds_now", n=refunds)] if refunds else []
    if maintenance:
        lines.append(t.html("admin.maintenance_now"))
    if broadcast is not None:
        lines.append(t.html("admin.broadcast_now", number=broadcast.id, sent=broadcast.sent, total=broadcast.total))
    return ["", *lines] if lines else []


def _period(t: Translator, name: str, now: str) -> Button:
    text = t.plain(f"admin.button_{name}")
    return button(f"• {text}" if name == now else text, "adm", name)


def attention(t: Translator, jobs: Sequence[tuple[Job, str]]) -> OutgoingMessage:
    if not jobs:
        return message(t, t.html("admin.attention_none"))
    lines = [
        t.html(
            "admin.attention_line",
            code=code(job.id),
            title=title,
            group=t.plain(f"dashboard.attention.group.{job.attention_code or AttentionCode.OTHER}.title"),
            reason=shorten(job.attention_reason or "", ERROR_SHOWN),
        )
        for job, title in jobs
    ]
    rows = [(button(f"{code(job.id)} · {title}", "adm", "order", job.id),) for job, title in jobs]
    return message(t, Html("\n".join([t.html("admin.attention"), *lines])), *rows)


def log(t: Translator, lines: Sequence[AuditLine], names: Mapping[str, str]) -> OutgoingMessage:
    if not lines:
        return message(t, t.html("admin.log_none"))
    texts = [
        t.html(
            "admin.log_line",
            when=t.day_and_time(line.at),
            actor=names.get(line.actor, line.actor),
            what=_action(t, line),
        )
        for line in lines
    ]
    return message(t, Html("\n".join([t.html("admin.log"), *texts])))


def _action(t: Translator, line: AuditLine) -> str:
    """Return what was done; what only the dashboard can do has the dashboard's name."""
    described = describe(line, t)
    name = line.action.replace(" ", "_").replace(".", "_")
    key = f"admin.audit_{name}_{line.subject}" if name == "maintenance" else f"admin.audit_{name}"
    detail = without_tags(described.detail) if line.action in _WITH_MARKUP else described.detail
    values = {"subject": shorten(described.subject, DETAIL_SHOWN), "detail": shorten(detail, DETAIL_SHOWN)}
    if key in t:
        return t.plain(key, **values).rstrip(": ")
    return t.plain("admin.audit_other", did=described.action, **values).rstrip("·: ")


# accounts


def profiles(t: Translator, text: str, matches: Sequence[Profile], *, more: bool) -> OutgoingMessage:
    if not matches:
        return message(t, t.html("admin.user_not_found", text=text))
    if not text:
        head = t.html("admin.find")
    elif more:
        head = t.html("admin.found_many", text=text, count=len(matches))
    else:
        head = t.html("admin.found", text=text, n=len(matches))
    rows = [
        (
            button(
                t.plain("admin.user_row", name=_row_name(profile), user=str(profile.account_id)),
                "adm",
                "person",
                profile.account_id,
            ),
        )
        for profile in matches
    ]
    return message(t, head, *rows)


def _row_name(profile: Profile) -> str:
    sign = "🚫 " if profile.banned_at is not None else ""
    return sign + (shorten(profile.name, NAME_IN_ROW) or f"@{profile.username}")


def account(t: Translator, profile: Profile, wallet: Wallet) -> OutgoingMessage:
    number = str(profile.account_id)
    lines: list[str] = [
        t.html("admin.user", name=profile.name),
        *([f"@{profile.username}"] if profile.username else []),
        t.html(
            "admin.user_ids",
            user=number,
            outside=profile.external_id,
            language=t.language_name(profile.language),
        ),
        t.html("admin.user_since", since=t.date(profile.created_at)),
    ]
    if profile.referred_by is not None:
        lines.append(t.html("admin.user_inviter", inviter=str(profile.referred_by)))
    if profile.banned_at is not None:
        banned = "admin.banned" if profile.ban_reason else "admin.banned_without_reason"
        lines.append(t.html(banned, reason=profile.ban_reason))
    if profile.blocked_at is not None:
        lines.append(t.html("admin.blocked"))
    lines += ["", t.html("admin.user_balance", available=t.credits(wallet.available))]
    if wallet.held:
        lines.append(t.html("admin.user_held", held=t.credits(wallet.held)))
    if wallet.debt:
        lines.append(t.html("admin.user_debt", debt=t.credits(wallet.debt)))
    lines += ["", t.html("admin.user_money", user=number)]
    ban = "unban" if profile.banned_at is not None else "ban"
    rows: tuple[Row, ...] = (
        (admin_button(t, "orders", "orders", number), admin_button(t, "payments", "payments", number)),
        (admin_button(t, ban, "askban" if ban == "ban" else ban, number), *home(t)),
    )
    return OutgoingMessage(text="\n".join(lines), buttons=rows)


# orders


def orders(t: Translator, jobs: Sequence[tuple[Job, str]], profile: Profile) -> OutgoingMessage:
    back: Row = (admin_button(t, "user", "person", profile.account_id), *home(t))
    if not jobs:
        return OutgoingMessage(text=t.html("admin.no_orders", name=profile.name), buttons=(back,))
    rows = [(button(_order_row(t, job, title), "adm", "order", job.id),) for job, title in jobs]
    return OutgoingMessage(text=t.html("admin.orders_of", name=profile.name), buttons=(*rows, back))


def _order_row(t: Translator, job: Job, title: str) -> str:
    icon = t.plain(f"admin.state_{state_key(job)}").partition(" ")[0]
    short = shorten(title, TITLE_IN_ROW)
    return t.plain("admin.order_row", icon=icon, code=code(job.id), title=short, when=t.day(job.created_at))


def state_key(job: Job) -> str:
    """Return the end of the text key `admin.state_…` for the state of an order."""
    if not job.ended:
        return job.state.value
    if job.delivery in (Delivery.PENDING, Delivery.SENDING):
        return "delivering"
    if job.delivery in (Delivery.UNDELIVERABLE, Delivery.UNKNOWN):
        return job.delivery.value
    return "delivered" if job.has_result else job.state.value


def order(t: Translator, job: Job, title: str, *, name: str, prompt: str, refunded: bool) -> OutgoingMessage:
    """Return an order with its input, result and time line, and buttons for what can be done with it."""
    hold_state = "refunded" if refunded else job.hold_state.value
    lines: list[str] = [
        t.html("admin.order", code=code(job.id), title=title),
        *([t.html("admin.order_public", code=seen)] if (seen := public_code(job.id, t)) != code(job.id) else []),
        t.html("admin.order_user", name=name, user=str(job.account_id)),
        t.html(f"admin.hold_{hold_state}", price=t.credits(job.price)),
        t.html(f"admin.state_{state_key(job)}"),
    ]
    if job.error_code:
        lines.append(t.html("admin.order_error", code=job.error_code, text=shorten(job.error_text, ERROR_SHOWN)))
    if job.attention_reason:
        lines.append(t.html("admin.order_attention", reason=job.attention_reason))
    if prompt:
        lines += ["", t.html("admin.order_prompt", text=shorten(prompt, PROMPT_SHOWN))]
    lines += _results(t, job)
    lines += ["", t.html("admin.times"), *_times(t, job)]
    lines += ["", t.html("admin.order_marks", task=job.task_id or "—", mark=job.correlation_id or "—")]
    rows = (*_actions(t, job, refunded=refunded), (admin_button(t, "user", "person", job.account_id), *home(t)))
    return OutgoingMessage(text="\n".join(lines), buttons=rows)


def _results(t: Translator, job: Job) -> list[Html]:
    """Return the files or texts of a result, each on a line."""
    if not job.has_result:
        return []
    found = [part.value for part in job.parts if part.kind is not PartKind.MESSAGE and part.value]
    return [t.html("admin.order_result", value=shorten(value, RESULT_SHOWN)) for value in found[:RESULTS_SHOWN]]


def _times(t: Translator, job: Job) -> list[Html]:
    times = (
        ("created", job.created_at),
        ("submitted", job.submitted_at),
        ("ended", job.ended_at),
        ("delivered", job.delivered_at),
    )
    return [t.html(f"admin.time_{name}", when=t.day_and_second(at)) for name, at in times if at is not None]


def _actions(t: Translator, job: Job, *, refunded: bool) -> list[Row]:
    if not job.ended:
        next_step = ("resubmit", "askresubmit") if job.is_parked_submit else ("retry", "retry")
        return [(admin_button(t, *next_step, job.id), button(t.plain("button.stop"), "adm", "askcancel", job.id))]
    paid = job.hold_state is HoldState.CAPTURED and not refunded
    refund = [admin_button(t, "refund", "askrefund", job.id)] if paid else []
    return [(admin_button(t, "resend", "resend", job.id), *refund)]


# payments


def receipt_digest(charge: str) -> str:
    """Return the digest that identifies a receipt in the data of a button."""
    return hashlib.sha256(charge.encode()).hexdigest()[:DIGEST_LENGTH]


def payments(t: Translator, listed: Sequence[Payment], profile: Profile) -> OutgoingMessage:
    back: Row = (admin_button(t, "user", "person", profile.account_id), *home(t))
    if not listed:
        return OutgoingMessage(text=t.html("admin.no_payments", name=profile.name), buttons=(back,))
    lines = [
        t.html(
            "admin.payment",
            when=t.day_and_time(payment.at),
            stars=payment.paid_amount,
            credits=t.credits(payment.amount),
            state=t.plain(f"admin.payment_{payment.state.value}"),
            charge=payment.charge,
        )
        for payment in listed
    ]
    rows = [
        (
            button(
                t.plain("admin.payment_row", stars=payment.paid_amount, when=t.day_and_time(payment.at)),
                *("adm", "askstars", profile.account_id, receipt_digest(payment.charge)),
            ),
        )
        for payment in listed
        if payment.state is not PaymentState.REFUNDED
    ]
    return OutgoingMessage(text="\n".join([t.html("admin.payments", name=profile.name), *lines]), buttons=(*rows, back))


def refunds(t: Translator, open_refunds: Sequence[tuple[Payment, str, float]]) -> OutgoingMessage:
    """Refunds that Telegram has not confirmed: the payment, the user's name, the age in seconds."""
    if not open_refunds:
        return message(t, t.html("admin.refunds_none"))
    lines = [
        t.html("admin.refund_line", stars=payment.paid_amount, name=name, age=t.duration(age))
        for payment, name, age in open_refunds
    ]
    rows = [
        (button(f"👤 {shorten(name, NAME_IN_ROW)}", "adm", "payments", payment.account_id),)
        for payment, name, _ in open_refunds
    ]
    return message(
        t,
        Html("\n".join([t.html("admin.refunds"), "", *lines])),
        (admin_button(t, "ask_now", "refunds", "now"),),
        *rows,
    )
