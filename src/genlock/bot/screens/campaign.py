"""What operators see of promo codes, broadcasts and maintenance."""

from collections.abc import Sequence
from datetime import datetime

from genlock.bot.buttons import Row, button
from genlock.bot.screens.operator import home, key, word
from genlock.bot.tongue import Html, Tongue
from genlock.domain.chat import Broadcast, BroadcastState, Promo
from genlock.telegram.words import Said

BAR = 10
ENDED_BY_BUTTON = 5
#: the commands that want words behind them, as they are listed
COMMANDS = (
    "find", "person", "credit", "debit", "ban", "unban", "order", "stars", "promo", "close", "broadcast",
    "maintenance",
)  # fmt: skip


def commands(t: Tongue, *, note: Html | None = None) -> Said:
    lines = [note or t.say("admin.commands"), "", *(t.say(f"admin.how_{name}") for name in COMMANDS)]
    return word(t, Html("\n".join(lines)))


def usage(t: Tongue, name: str) -> Said:
    """How one command is written."""
    return word(t, Html(f"{t.say('admin.usage')}\n{t.say(f'admin.how_{name}')}"))


# promo codes


def gift(t: Tongue, promo: Promo) -> str:
    return t.credits(promo.amount) if promo.amount else t.tag("unit.runs", n=promo.runs)


def promos(t: Tongue, found: Sequence[Promo], now: datetime) -> Said:
    how: Html = t.say("admin.how_promo")
    if not found:
        return word(t, Html(f"{t.say('admin.promo_none')}\n\n{how}"))
    lines = [
        t.say("admin.promo_line", code=one.code, gift=gift(t, one), facts=" · ".join(_facts(t, one, now)))
        for one in found
    ]
    usable = [one for one in found if not one.closed and not _over(one, now)][:ENDED_BY_BUTTON]
    rows = [(key(t, "end_promo", "close", one.code, code=one.code),) for one in usable]
    return word(t, Html("\n".join([t.say("admin.promos"), *lines, "", how])), *rows)


def _facts(t: Tongue, promo: Promo, now: datetime) -> list[str]:
    limited = promo.uses_max is not None
    facts = [t.tag("admin.promo_limit" if limited else "admin.promo_used", uses=promo.uses, n=promo.uses_max or 0)]
    if promo.per_person > 1:
        facts.append(t.tag("admin.promo_each", n=promo.per_person))
    if promo.closed:
        facts.append(t.tag("admin.promo_closed"))
    elif _over(promo, now):
        facts.append(t.tag("admin.promo_over"))
    elif promo.until is not None:
        facts.append(t.tag("admin.promo_until", when=t.date(promo.until)))
    return facts


def _over(promo: Promo, now: datetime) -> bool:
    return promo.until is not None and promo.until <= now


# broadcasts


def broadcast(t: Tongue, count: int) -> Said:
    return word(t, t.say("admin.broadcast_how", people=t.tag("unit.people", n=count)))


def preview(t: Tongue, number: int, count: int) -> Said:
    rows: tuple[Row, ...] = (
        (button(t.tag("admin.broadcast_go", people=t.tag("unit.people", n=count)), "adm", "send", number),),
        (key(t, "discard", "discard", number),),
    )
    return Said(text=t.say("admin.preview"), buttons=rows)


def progress(broadcast: Broadcast, t: Tongue) -> Said:
    """How far a broadcast is."""
    done = broadcast.sent + broadcast.failed
    share = min(1.0, done / broadcast.total) if broadcast.total else 1.0
    full = round(share * BAR)
    text = t.say(
        "admin.broadcast",
        number=broadcast.id,
        state=t.tag(f"admin.broadcast_{broadcast.state.value}"),
        bar="▓" * full + "░" * (BAR - full),
        percent=round(share * 100),
        sent=broadcast.sent,
        total=broadcast.total,
    )
    if broadcast.failed:
        text = Html(f"{text}\n{t.say('admin.broadcast_failed', failed=broadcast.failed)}")
    stop: list[Row] = [(key(t, "stop", "stop"),)] if broadcast.state is BroadcastState.RUNNING else []
    return word(t, text, *stop)


# maintenance


def maintenance(t: Tongue, text: str | None) -> Said:
    """Whether the bot is being worked on; with what words, if it is."""
    if text is None:
        rows: Row = (key(t, "switch_on", "maintenance", "on"), *home(t))
        return Said(text=t.say("admin.maintenance"), buttons=(rows,))
    shown = t.say("misc.maintenance", text=text or t.tag("misc.maintenance_default"))
    rows = (key(t, "switch_off", "maintenance", "off"), *home(t))
    return Said(text=t.say("admin.maintenance_on", text=shown), buttons=(rows,))
