"""What operators see of figures, people, orders and money. Every screen leads back to the overview."""

import hashlib
from collections.abc import Mapping, Sequence

from genlock.bot.buttons import Row, button
from genlock.bot.look import code, shorten
from genlock.bot.tongue import Html, Tongue
from genlock.domain.chat import AuditLine, Broadcast, Figures, Payment, PaymentState, Profile
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import Purse, Wallet
from genlock.telegram.words import Button, Said

OPEN = ("queued", "submitting", "running")
#: a phone cuts a button's words at about forty
NAME_IN_ROW = 26
ERROR_SHOWN = 300
DETAIL_SHOWN = 80
#: of a receipt, which is too long for a button
_DIGITS = 12


def key(t: Tongue, name: str, *args: object, **values: object) -> Button:
    """A button of the operators'."""
    return button(t.tag(f"admin.button_{name}", **values), "adm", *args)


def home(t: Tongue) -> Row:
    return (key(t, "home", "today"),)


def noted(note: Html | None, said: Said) -> Said:
    """What has just been done, above where one is now."""
    return Said(text=f"{note}\n\n{said.text}", buttons=said.buttons) if note else said


def word(t: Tongue, text: Html, *rows: Row) -> Said:
    """A few words, and the way back."""
    return Said(text=text, buttons=(*rows, home(t)))


# figures


def figures(
    t: Tongue,
    period: str,
    numbers: Figures,
    counts: Mapping[str, int],
    *,
    refunds: int,
    maintenance: bool,
    broadcast: Broadcast | None,
) -> Said:
    lines = [
        t.say("admin.title", period=t.tag(f"admin.{period}")),
        "",
        t.say("admin.orders", orders=numbers.orders, delivered=numbers.delivered, failed=numbers.failed),
        t.say("admin.people", people=numbers.people, newcomers=numbers.newcomers),
        t.say("admin.revenue", revenue=t.credits(numbers.revenue)),
        t.say("admin.topups", stars=numbers.stars, topups=t.credits(numbers.topups)),
        *([t.say("admin.loss", loss=t.amount(numbers.loss))] if numbers.loss else []),
        "",
        t.say("admin.now"),
        t.say("admin.open", n=sum(counts.get(state, 0) for state in OPEN)),
        t.say("admin.callbacks", callbacks=counts.get("callbacks", 0), orphans=counts.get("orphans", 0)),
        t.say("admin.attention_now", n=counts.get("attention", 0)),
        *([t.say("admin.refunds_now", n=refunds)] if refunds else []),
        *([t.say("admin.maintenance_now")] if maintenance else []),
    ]
    if broadcast is not None:
        lines.append(
            t.say("admin.broadcast_now", number=broadcast.id, sent=broadcast.sent, total=broadcast.total),
        )
    rows: tuple[Row, ...] = (
        (_period(t, "today", period), _period(t, "week", period)),
        (key(t, "find", "find"), key(t, "attention", "attention")),
        (key(t, "promos", "promos"), key(t, "broadcast", "broadcast")),
        (key(t, "maintenance", "maintenance"), key(t, "refunds", "refunds")),
        (key(t, "log", "log"), key(t, "commands", "commands")),
    )
    return Said(text="\n".join(lines), buttons=rows)


def _period(t: Tongue, name: str, now: str) -> Button:
    text = t.tag(f"admin.button_{name}")
    return button(f"• {text}" if name == now else text, "adm", name)


def attention(t: Tongue, jobs: Sequence[tuple[Job, str]]) -> Said:
    if not jobs:
        return word(t, t.say("admin.attention_none"))
    lines = [
        t.say("admin.attention_line", code=code(job.id), title=title, reason=shorten(job.attention or "", ERROR_SHOWN))
        for job, title in jobs
    ]
    rows = [(button(f"{code(job.id)} · {title}", "adm", "order", job.id),) for job, title in jobs]
    return word(t, Html("\n".join([t.say("admin.attention"), *lines])), *rows)


def log(t: Tongue, lines: Sequence[AuditLine], names: Mapping[str, str]) -> Said:
    if not lines:
        return word(t, t.say("admin.log_none"))
    said = [
        t.say("admin.log_line", when=t.when(line.at), actor=names.get(line.actor, line.actor), what=_deed(t, line))
        for line in lines
    ]
    return word(t, Html("\n".join([t.say("admin.log"), *said])))


def _deed(t: Tongue, line: AuditLine) -> str:
    name = f"admin.did_{line.action.replace(' ', '_')}"
    detail = shorten(line.detail, DETAIL_SHOWN)
    if line.action == "maintenance":
        name = f"{name}_{line.subject}"
    if name not in t:
        return f"{line.action} {line.subject} {detail}".strip()
    return t.tag(name, subject=shorten(line.subject, DETAIL_SHOWN), detail=detail).strip()


# people


def people(t: Tongue, text: str, found: Sequence[Profile], *, more: bool) -> Said:
    if not found:
        return word(t, t.say("admin.nobody", text=text))
    if not text:
        head = t.say("admin.find")
    elif more:
        head = t.say("admin.found_many", text=text, count=len(found))
    else:
        head = t.say("admin.found", text=text, n=len(found))
    rows = [(button(f"{_row_name(one)} · {one.person_id}", "adm", "person", one.person_id),) for one in found]
    return word(t, head, *rows)


def _row_name(profile: Profile) -> str:
    sign = "🚫 " if profile.banned_at is not None else ""
    return sign + (shorten(profile.name, NAME_IN_ROW) or f"@{profile.username}")


def person(t: Tongue, profile: Profile, wallet: Wallet) -> Said:
    number = str(profile.person_id)
    lines: list[str] = [
        t.say("admin.person", name=profile.name),
        *([f"@{profile.username}"] if profile.username else []),
        t.say(
            "admin.person_ids",
            person=number,
            outside=profile.outside_id,
            language=t.tag(f"admin.language_{profile.language}"),
        ),
        t.say("admin.person_since", since=t.date(profile.created_at)),
    ]
    if profile.referred_by is not None:
        lines.append(t.say("admin.person_host", host=str(profile.referred_by)))
    if profile.banned_at is not None:
        banned = "admin.banned" if profile.ban_reason else "admin.banned_for_nothing"
        lines.append(t.say(banned, reason=profile.ban_reason))
    if profile.blocked_at is not None:
        lines.append(t.say("admin.blocked"))
    lines += ["", t.say("admin.person_balance", available=t.credits(wallet.available))]
    if wallet.held:
        lines.append(t.say("admin.person_held", held=t.credits(wallet.held)))
    lines += ["", t.say("admin.person_money", person=number)]
    ban = "unban" if profile.banned_at is not None else "ban"
    rows: tuple[Row, ...] = (
        (key(t, "orders", "orders", number), key(t, "payments", "payments", number)),
        (key(t, ban, ban, number), *home(t)),
    )
    return Said(text="\n".join(lines), buttons=rows)


# orders


def orders(t: Tongue, jobs: Sequence[tuple[Job, str]], profile: Profile) -> Said:
    back: Row = (key(t, "person", "person", profile.person_id), *home(t))
    if not jobs:
        return Said(text=t.say("admin.no_orders", name=profile.name), buttons=(back,))
    rows = [(button(_order_row(t, job, title), "adm", "order", job.id),) for job, title in jobs]
    return Said(text=t.say("admin.orders_of", name=profile.name), buttons=(*rows, back))


def _order_row(t: Tongue, job: Job, title: str) -> str:
    icon = t.tag(f"admin.state_{standing(job)}").partition(" ")[0]
    return t.tag("admin.order_row", icon=icon, code=code(job.id), title=title, when=t.when(job.created_at))


def standing(job: Job) -> str:
    """Where an order stands, in one word."""
    if not job.ended:
        return job.state.value
    if job.delivery in (Delivery.PENDING, Delivery.SENDING):
        return "delivering"
    if job.delivery in (Delivery.UNDELIVERABLE, Delivery.UNKNOWN):
        return job.delivery.value
    return "delivered" if job.state is State.SUCCEEDED else job.state.value


def order(t: Tongue, job: Job, title: str, *, name: str, refunded: bool) -> Said:
    """An order's whole time line, and what can be done about it."""
    purse = "refunded" if refunded else job.purse.value
    lines: list[str] = [
        t.say("admin.order", code=code(job.id), title=title),
        t.say("admin.order_person", name=name, person=str(job.person_id)),
        t.say(f"admin.purse_{purse}", price=t.credits(job.price)),
        t.say(f"admin.state_{standing(job)}"),
    ]
    if job.error_code:
        lines.append(t.say("admin.order_error", code=job.error_code, text=shorten(job.error_text, ERROR_SHOWN)))
    if job.attention:
        lines.append(t.say("admin.order_attention", reason=job.attention))
    lines += ["", t.say("admin.times"), *_times(t, job)]
    lines += ["", t.say("admin.order_marks", task=job.task_id or "—", mark=job.correlation or "—")]
    rows = (*_deeds(t, job, refunded=refunded), (key(t, "person", "person", job.person_id), *home(t)))
    return Said(text="\n".join(lines), buttons=rows)


def _times(t: Tongue, job: Job) -> list[Html]:
    moments = (
        ("created", job.created_at),
        ("submitted", job.submitted_at),
        ("ended", job.ended_at),
        ("delivered", job.delivered_at),
    )
    return [t.say(f"admin.time_{name}", when=t.moment(at)) for name, at in moments if at is not None]


def _deeds(t: Tongue, job: Job, *, refunded: bool) -> list[Row]:
    if not job.ended:
        return [(key(t, "retry", "retry", job.id), button(t.tag("button.stop"), "adm", "cancel", job.id))]
    paid = job.purse is Purse.CAPTURED and not refunded
    refund = [key(t, "refund", "refund", job.id)] if paid else []
    return [(key(t, "resend", "resend", job.id), *refund)]


# stars


def short_receipt(charge: str) -> str:
    """What a button says instead of a receipt."""
    return hashlib.sha256(charge.encode()).hexdigest()[:_DIGITS]


def payments(t: Tongue, found: Sequence[Payment], profile: Profile) -> Said:
    back: Row = (key(t, "person", "person", profile.person_id), *home(t))
    if not found:
        return Said(text=t.say("admin.no_payments", name=profile.name), buttons=(back,))
    lines = [
        t.say(
            "admin.payment",
            when=t.when(one.at),
            stars=one.stars,
            credits=t.credits(one.amount),
            state=t.tag(f"admin.payment_{one.state.value}"),
            charge=one.charge,
        )
        for one in found
    ]
    rows = [
        (
            button(
                t.tag("admin.payment_row", stars=one.stars, when=t.when(one.at)),
                *("adm", "askstars", profile.person_id, short_receipt(one.charge)),
            ),
        )
        for one in found
        if one.state is not PaymentState.REFUNDED
    ]
    return Said(text="\n".join([t.say("admin.payments", name=profile.name), *lines]), buttons=(*rows, back))


def refund_asked(t: Tongue, payment: Payment, profile: Profile, wallet: Wallet) -> Said:
    text = t.say(
        "admin.stars_ask",
        stars=payment.stars,
        name=profile.name,
        credits=t.credits(payment.amount),
        balance=t.credits(wallet.available),
    )
    yes = button(
        t.tag("admin.stars_yes", stars=payment.stars),
        *("adm", "givestars", profile.person_id, short_receipt(payment.charge)),
    )
    back = button(t.tag("button.back"), "adm", "payments", profile.person_id)
    return Said(text=text, buttons=((yes,), (back,)))


def refunds(t: Tongue, found: Sequence[tuple[Payment, str, float]]) -> Said:
    """Refunds that have begun, whose they are and how long ago."""
    if not found:
        return word(t, t.say("admin.refunds_none"))
    lines = [
        t.say("admin.refund_line", stars=payment.stars, name=name, age=t.lasting(age)) for payment, name, age in found
    ]
    rows = [(button(f"👤 {shorten(name, NAME_IN_ROW)}", "adm", "payments", one.person_id),) for one, name, _ in found]
    return word(t, Html("\n".join([t.say("admin.refunds"), "", *lines])), (key(t, "ask_now", "refunds", "now"),), *rows)
