"""What operators see of promo codes, broadcasts and maintenance."""

from collections.abc import Sequence
from datetime import datetime

from genlock.bot.admin.screens import home, key, word
from genlock.bot.buttons import Row, button
from genlock.channels.telegram.messages import OutgoingMessage
from genlock.domain.broadcast import Broadcast, BroadcastState
from genlock.domain.promo import Promo
from genlock.i18n.translator import Html, Translator

BAR = 10
ENDED_BY_BUTTON = 5
#: the commands that want words behind them, as they are listed
COMMANDS = (
    "find", "person", "credit", "debit", "ban", "unban", "order", "stars", "promo", "close", "broadcast",
    "maintenance",
)  # fmt: skip


def commands(t: Translator, *, note: Html | None = None) -> OutgoingMessage:
    lines = [note or t.html("admin.commands"), "", *(t.html(f"admin.how_{name}") for name in COMMANDS)]
    return word(t, Html("\n".join(lines)))


def usage(t: Translator, name: str) -> OutgoingMessage:
    """How one command is written."""
    return word(t, Html(f"{t.html('admin.usage')}\n{t.html(f'admin.how_{name}')}"))


# promo codes


def gift(t: Translator, promo: Promo) -> str:
    return t.credits(promo.amount) if promo.amount else t.plain("unit.runs", n=promo.runs)


def promos(t: Translator, found: Sequence[Promo], now: datetime) -> OutgoingMessage:
    how: Html = t.html("admin.how_promo")
    if not found:
        return word(t, Html(f"{t.html('admin.promo_none')}\n\n{how}"))
    lines = [
        t.html("admin.promo_line", code=one.code, gift=gift(t, one), facts=" · ".join(_facts(t, one, now)))
        for one in found
    ]
    usable = [one for one in found if not one.closed and not _over(one, now)][:ENDED_BY_BUTTON]
    rows = [(key(t, "end_promo", "close", one.code, code=one.code),) for one in usable]
    return word(t, Html("\n".join([t.html("admin.promos"), *lines, "", how])), *rows)


def _facts(t: Translator, promo: Promo, now: datetime) -> list[str]:
    limited = promo.uses_max is not None
    facts = [t.plain("admin.promo_limit" if limited else "admin.promo_used", uses=promo.uses, n=promo.uses_max or 0)]
    if promo.per_account > 1:
        facts.append(t.plain("admin.promo_each", n=promo.per_account))
    if promo.closed:
        facts.append(t.plain("admin.promo_closed"))
    elif _over(promo, now):
        facts.append(t.plain("admin.promo_over"))
    elif promo.until is not None:
        facts.append(t.plain("admin.promo_until", when=t.date(promo.until)))
    return facts


def _over(promo: Promo, now: datetime) -> bool:
    return promo.until is not None and promo.until <= now


# broadcasts


def broadcast(t: Translator, count: int) -> OutgoingMessage:
    return word(t, t.html("admin.broadcast_how", people=t.plain("unit.people", n=count)))


def preview(t: Translator, number: int, count: int) -> OutgoingMessage:
    rows: tuple[Row, ...] = (
        (button(t.plain("admin.broadcast_go", people=t.plain("unit.people", n=count)), "adm", "send", number),),
        (key(t, "discard", "discard", number),),
    )
    return OutgoingMessage(text=t.html("admin.preview"), buttons=rows)


def progress(broadcast: Broadcast, t: Translator) -> OutgoingMessage:
    """How far a broadcast is."""
    done = broadcast.sent + broadcast.failed
    share = min(1.0, done / broadcast.total) if broadcast.total else 1.0
    full = round(share * BAR)
    text = t.html(
        "admin.broadcast",
        number=broadcast.id,
        state=t.plain(f"admin.broadcast_{broadcast.state.value}"),
        bar="▓" * full + "░" * (BAR - full),
        percent=round(share * 100),
        sent=broadcast.sent,
        total=broadcast.total,
    )
    if broadcast.failed:
        text = Html(f"{text}\n{t.html('admin.broadcast_failed', failed=broadcast.failed)}")
    stop: list[Row] = [(key(t, "stop", "stop"),)] if broadcast.state is BroadcastState.RUNNING else []
    return word(t, text, *stop)


# maintenance


def maintenance(t: Translator, text: str | None) -> OutgoingMessage:
    """Whether the bot is being worked on; with what words, if it is."""
    if text is None:
        rows: Row = (key(t, "switch_on", "maintenance", "on"), *home(t))
        return OutgoingMessage(text=t.html("admin.maintenance"), buttons=(rows,))
    shown = t.html("misc.maintenance", text=text or t.plain("misc.maintenance_default"))
    rows = (key(t, "switch_off", "maintenance", "off"), *home(t))
    return OutgoingMessage(text=t.html("admin.maintenance_on", text=shown), buttons=(rows,))
