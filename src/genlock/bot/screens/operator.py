"""What operators see."""

from collections.abc import Mapping, Sequence

from genlock.bot.buttons import Row, button
from genlock.bot.look import code
from genlock.bot.tongue import Html, Tongue
from genlock.domain.chat import AuditLine, Figures, Payment, Profile, Promo
from genlock.domain.job import Job
from genlock.domain.money import Purse, Wallet
from genlock.telegram.words import Button, Said

OPEN = ("queued", "submitting", "running")


def figures(t: Tongue, period: str, numbers: Figures, counts: Mapping[str, int]) -> Said:
    lines = [
        t.say("admin.title"),
        "",
        t.say(
            "admin.figures",
            period=t.tag(f"admin.{period}"),
            orders=numbers.orders,
            delivered=numbers.delivered,
            failed=numbers.failed,
            people=numbers.people,
            newcomers=numbers.newcomers,
            revenue=t.credits(numbers.revenue),
            topups=t.credits(numbers.topups),
            stars=numbers.stars,
            loss=t.amount(numbers.loss),
        ),
        "",
        t.say(
            "admin.now",
            open=sum(counts.get(state, 0) for state in OPEN),
            callbacks=counts.get("callbacks", 0),
            orphans=counts.get("orphans", 0),
            attention=counts.get("attention", 0),
        ),
        "",
        t.say("admin.commands"),
    ]
    rows: tuple[Row, ...] = (
        (_button(t, "today", "today"), _button(t, "week", "week")),
        (_button(t, "attention", "attention"), _button(t, "promos", "promos"), _button(t, "log", "log")),
    )
    return Said(text="\n".join(lines), buttons=rows)


def _button(t: Tongue, name: str, *args: object) -> Button:
    return button(t.tag(f"admin.button_{name}"), "adm", *args)


def people(t: Tongue, text: str, found: Sequence[Profile]) -> Said:
    if not found:
        return Said(text=t.say("admin.nobody", text=text))
    rows = [(button(f"{one.name} @{one.username} · {one.person_id}", "adm", "person", one.person_id),) for one in found]
    return Said(text=t.say("admin.title"), buttons=tuple(rows))


def person(t: Tongue, profile: Profile, wallet: Wallet) -> Said:
    if profile.banned_at is not None:
        status = t.say("admin.banned", reason=profile.ban_reason or "—")
    else:
        status = t.say("admin.blocked" if profile.blocked_at is not None else "admin.fine")
    text = t.say(
        "admin.person",
        name=profile.name,
        username=f"@{profile.username}" if profile.username else "",
        person=str(profile.person_id),
        outside=profile.outside_id,
        language=profile.language,
        since=t.when(profile.created_at),
        host=str(profile.referred_by or "—"),
        available=t.credits(wallet.available),
        held=t.credits(wallet.held),
        status=status,
    )
    ban = "unban" if profile.banned_at is not None else "ban"
    rows: tuple[Row, ...] = (
        (_button(t, "orders", "orders", profile.person_id), _button(t, "payments", "payments", profile.person_id)),
        (_button(t, ban, ban, profile.person_id),),
    )
    return Said(text=text, buttons=rows)


def orders(t: Tongue, jobs: Sequence[Job], person_id: int) -> Said:
    rows: list[Row] = [
        (button(f"{code(job.id)} · {job.model} · {job.state.value}", "adm", "order", job.id),) for job in jobs
    ]
    return Said(text=t.say("admin.title"), buttons=(*rows, (_button(t, "person", "person", person_id),)))


def order(t: Tongue, job: Job, title: str) -> Said:
    """An order's whole time line, and what can be done about it."""
    times = [
        t.say(f"admin.time_{name}", when=t.when(at))
        for name, at in (
            ("created", job.created_at),
            ("submitted", job.submitted_at),
            ("ended", job.ended_at),
            ("delivered", job.delivered_at),
        )
        if at is not None
    ]
    text = t.say(
        "admin.order",
        code=code(job.id),
        title=title,
        person=str(job.person_id),
        price=t.credits(job.price),
        purse=job.purse.value,
        state=job.state.value,
        delivery=job.delivery.value,
        error=f"{job.error_code} {job.error_text}".strip() or job.attention or "—",
        task=job.task_id or "—",
        mark=job.correlation or "—",
        times=Html("\n".join(times)),
    )
    return Said(text=text, buttons=(*_deeds(t, job), (_button(t, "person", "person", job.person_id),)))


def _deeds(t: Tongue, job: Job) -> list[Row]:
    if not job.ended:
        return [(_button(t, "retry", "retry", job.id), button(t.tag("button.stop"), "adm", "cancel", job.id))]
    refund = [_button(t, "refund", "refund", job.id)] if job.purse is Purse.CAPTURED else []
    return [(_button(t, "resend", "resend", job.id), *refund)]


def payments(t: Tongue, found: Sequence[Payment]) -> Said:
    if not found:
        return Said(text=t.say("admin.no_payments"))
    lines = [
        t.say(
            "admin.payment",
            when=t.when(one.at),
            stars=one.stars,
            credits=t.credits(one.amount),
            state=one.state.value,
            charge=one.charge,
        )
        for one in found
    ]
    return Said(text="\n".join([t.say("admin.payments"), *lines]))


def promos(t: Tongue, found: Sequence[Promo]) -> Said:
    lines = [
        t.say(
            "admin.promo_line",
            code=one.code,
            gift=t.credits(one.amount) if one.amount else t.tag("unit.runs", n=one.runs),
            uses=one.uses,
            limit=t.tag("admin.promo_limit", n=one.uses_max) if one.uses_max is not None else "",
            until=t.tag("admin.promo_until", when=t.when(one.until)) if one.until else "",
            closed=t.tag("admin.promo_closed") if one.closed else "",
        )
        for one in found
    ]
    return Said(text="\n".join(lines) or t.say("admin.promo_none"))


def attention(t: Tongue, jobs: Sequence[Job]) -> Said:
    lines = [
        t.say("admin.attention_line", code=code(job.id), title=job.model, reason=job.attention or "") for job in jobs
    ]
    rows = tuple((button(code(job.id), "adm", "order", job.id),) for job in jobs)
    if not lines:
        return Said(text=t.say("admin.attention_none"))
    return Said(text="\n".join([t.say("admin.attention"), *lines]), buttons=rows)


def log(t: Tongue, lines: Sequence[AuditLine]) -> Said:
    said = [
        t.say(
            "admin.log_line",
            when=t.when(line.at),
            actor=line.actor,
            action=line.action,
            subject=line.subject,
            detail=line.detail[:80],
        )
        for line in lines
    ]
    return Said(text="\n".join([t.say("admin.log"), *said]) if said else t.say("admin.log_none"))


def preview(t: Tongue, number: int, count: int) -> Said:
    rows: tuple[Row, ...] = (
        (button(t.tag("admin.broadcast_go", people=t.tag("unit.people", n=count)), "adm", "send", number),),
        (_button(t, "discard", "discard", number),),
    )
    return Said(text=t.say("admin.preview"), buttons=rows)
