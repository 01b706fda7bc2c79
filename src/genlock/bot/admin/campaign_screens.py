"""Screens for operators: promo codes, broadcasts, maintenance. Pure functions."""

from collections.abc import Sequence
from datetime import datetime

from genlock.bot.admin.screens import admin_button, home, message
from genlock.bot.buttons import Row, button
from genlock.domain.broadcast import EVERYONE, Broadcast, BroadcastState, Segment
from genlock.domain.promo import Promo
from genlock.i18n.translator import Html, Translator
from genlock.ports import OutgoingMessage

BAR_LENGTH = 10
#: how many codes have a button that closes them
BUTTONS_MAX = 5


# promo codes


def gift(t: Translator, promo: Promo) -> str:
    return t.credits(promo.amount) if promo.amount else t.plain("unit.runs", n=promo.runs)


def promos(t: Translator, codes: Sequence[Promo], now: datetime) -> OutgoingMessage:
    usage: Html = t.html("admin.usage_promo")
    if not codes:
        return message(t, Html(f"{t.html('admin.promo_none')}\n\n{usage}"))
    lines = [
        t.html("admin.promo_line", code=promo.code, gift=gift(t, promo), facts=" · ".join(_details(t, promo, now)))
        for promo in codes
    ]
    open_ = [promo for promo in codes if not promo.closed and not _is_over(promo, now)][:BUTTONS_MAX]
    rows = [(admin_button(t, "end_promo", "askclose", promo.code, code=promo.code),) for promo in open_]
    return message(t, Html("\n".join([t.html("admin.promos"), *lines, "", usage])), *rows)


def _details(t: Translator, promo: Promo, now: datetime) -> list[str]:
    limited = promo.uses_max is not None
    details = [t.plain("admin.promo_limit" if limited else "admin.promo_used", uses=promo.uses, n=promo.uses_max or 0)]
    if promo.per_account > 1:
        details.append(t.plain("admin.promo_each", n=promo.per_account))
    if promo.closed:
        details.append(t.plain("admin.promo_closed"))
    elif _is_over(promo, now):
        details.append(t.plain("admin.promo_over"))
    elif promo.until is not None:
        details.append(t.plain("admin.promo_until", when=t.date(promo.until)))
    return details


def _is_over(promo: Promo, now: datetime) -> bool:
    return promo.until is not None and promo.until <= now


# broadcasts


def broadcast(t: Translator, count: int) -> OutgoingMessage:
    return message(t, t.html("admin.broadcast_how", people=t.plain("unit.people", n=count)))


def segment_text(t: Translator, segment: Segment) -> str:
    """Return whom a broadcast goes to, in words."""
    parts = []
    if segment.language:
        parts.append(t.plain("admin.segment_language", language=t.language_name(segment.language)))
    if segment.paid is not None:
        parts.append(t.plain("admin.segment_paid" if segment.paid else "admin.segment_unpaid"))
    if segment.silent_days:
        parts.append(t.plain("admin.segment_silent", time=t.plain("unit.days", n=segment.silent_days)))
    return " · ".join(parts)


def preview(t: Translator, number: int, count: int, segment: Segment = EVERYONE) -> OutgoingMessage:
    rows: tuple[Row, ...] = (
        (button(t.plain("admin.broadcast_go", people=t.plain("unit.people", n=count)), "adm", "send", number),),
        (admin_button(t, "discard", "discard", number),),
    )
    text = t.html("admin.preview")
    if segment != EVERYONE:
        text = Html(f"{text}\n{t.html('admin.segment', segment=segment_text(t, segment))}")
    return OutgoingMessage(text=text, buttons=rows)


def progress(broadcast: Broadcast, t: Translator) -> OutgoingMessage:
    """Return how far a broadcast is, with a button that stops it; one that has ended needs no bar."""
    running = broadcast.state is BroadcastState.RUNNING
    lines = [
        t.html("admin.broadcast", number=broadcast.id, state=t.plain(f"admin.broadcast_{broadcast.state.value}")),
        *([_bar(broadcast, t)] if running else []),
        t.html("admin.broadcast_sent", sent=broadcast.sent, total=broadcast.total),
        *([t.html("admin.broadcast_failed", failed=broadcast.failed)] if broadcast.failed else []),
        *([t.html("admin.broadcast_unknown", unknown=broadcast.unknown)] if broadcast.unknown else []),
    ]
    stop: list[Row] = [(admin_button(t, "stop", "stop"),)] if running else []
    return message(t, Html("\n".join(lines)), *stop)


def _bar(broadcast: Broadcast, t: Translator) -> Html:
    done = broadcast.sent + broadcast.failed + broadcast.unknown
    share = min(1.0, done / broadcast.total) if broadcast.total else 1.0
    full = round(share * BAR_LENGTH)
    return t.html("admin.broadcast_bar", bar="▓" * full + "░" * (BAR_LENGTH - full), percent=round(share * 100))


# maintenance


def maintenance(t: Translator, text: str | None) -> OutgoingMessage:
    """Whether maintenance is on, and what users read while it is; None if it is off."""
    if text is None:
        rows: Row = (admin_button(t, "switch_on", "askmaintenance", "on"), *home(t))
        return OutgoingMessage(text=t.html("admin.maintenance"), buttons=(rows,))
    rows = (admin_button(t, "switch_off", "maintenance", "off"), *home(t))
    return OutgoingMessage(text=t.html("admin.maintenance_on", text=maintenance_notice(t, text)), buttons=(rows,))


def maintenance_notice(t: Translator, text: str) -> Html:
    """Return what users read during maintenance; without a text of the operator, our own."""
    return t.html("misc.maintenance", text=text or t.plain("misc.maintenance_default"))
