"""Questions asked before a command takes money or access away: what will happen to the user and to the money."""

from genlock.bot.admin.campaign_screens import gift, maintenance_notice
from genlock.bot.admin.command import Question
from genlock.bot.admin.screens import admin_button
from genlock.bot.screen_context import code, shorten
from genlock.domain.job import Job
from genlock.domain.money import HoldState, Wallet
from genlock.domain.payment import Payment
from genlock.domain.profile import Profile
from genlock.domain.promo import Promo
from genlock.i18n.translator import Html, Translator
from genlock.ports import Button

REASON_SHOWN = 200


def ban(t: Translator, profile: Profile, wallet: Wallet, reason: str) -> Question:
    balance = t.credits(wallet.available)
    text = t.html("admin_ask.ban", name=profile.name, user=str(profile.account_id), balance=balance)
    return Question(text=_with_reason(t, text, reason), yes=t.plain("admin_ask.ban_yes"), back=_to_user(t, profile))


def debit(t: Translator, profile: Profile, wallet: Wallet, amount: int, reason: str) -> Question:
    text = t.html(
        "admin_ask.debit",
        credits=t.credits(amount),
        name=profile.name,
        user=str(profile.account_id),
        balance=t.credits(wallet.available),
        left=t.credits(wallet.available - amount),
    )
    yes = t.plain("admin_ask.debit_yes", credits=t.credits(amount))
    return Question(text=_with_reason(t, text, reason), yes=yes, back=_to_user(t, profile))


def erase(t: Translator, profile: Profile, wallet: Wallet) -> Question:
    balance = t.credits(wallet.available)
    text = t.html("admin_ask.erase", name=profile.name, user=str(profile.account_id), balance=balance)
    return Question(text=text, yes=t.plain("admin_ask.erase_yes"), back=_to_user(t, profile))


def refund(t: Translator, job: Job, title: str, name: str) -> Question:
    price = t.credits(job.price)
    text = t.html("admin_ask.refund", code=code(job.id), title=title, credits=price, name=name)
    back = admin_button(t, "back", "order", job.id)
    return Question(text=text, yes=t.plain("admin_ask.refund_yes", credits=price), back=back)


def resubmit(t: Translator, job: Job, title: str, name: str) -> Question:
    text = t.html("admin_ask.resubmit", code=code(job.id), title=title, name=name)
    return Question(text=text, yes=t.plain("admin_ask.resubmit_yes"), back=admin_button(t, "back", "order", job.id))


def cancel(t: Translator, job: Job, title: str, name: str) -> Question:
    key = "admin_ask.cancel" if job.hold_state is HoldState.HELD else "admin_ask.cancel_free"
    text = t.html(key, code=code(job.id), title=title, credits=t.credits(job.price), name=name)
    return Question(text=text, yes=t.plain("admin_ask.cancel_yes"), back=admin_button(t, "back", "order", job.id))


def stars(t: Translator, payment: Payment, profile: Profile, wallet: Wallet) -> Question:
    text = t.html(
        "admin_ask.stars",
        stars=payment.paid_amount,
        name=profile.name,
        credits=t.credits(payment.amount),
        balance=t.credits(wallet.available),
    )
    back = admin_button(t, "back", "payments", profile.account_id)
    return Question(text=text, yes=t.plain("admin_ask.stars_yes", stars=payment.paid_amount), back=back)


def close_promo(t: Translator, promo: Promo) -> Question:
    text = t.html("admin_ask.close", code=promo.code, gift=gift(t, promo), uses=promo.uses)
    yes = t.plain("admin_ask.close_yes", code=promo.code)
    return Question(text=text, yes=yes, back=admin_button(t, "back", "promos"))


def maintenance(t: Translator, text: str) -> Question:
    asked = t.html("admin_ask.maintenance", text=maintenance_notice(t, text))
    return Question(text=asked, yes=t.plain("admin_ask.maintenance_yes"), back=admin_button(t, "back", "maintenance"))


def _to_user(t: Translator, profile: Profile) -> Button:
    return admin_button(t, "back", "person", profile.account_id)


def _with_reason(t: Translator, text: Html, reason: str) -> Html:
    line = t.html("admin_ask.reason", reason=shorten(reason, REASON_SHOWN))
    return Html(f"{text}\n{line}") if reason else text
