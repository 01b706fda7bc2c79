"""The daily report: the figures of the last 24 hours, once a day, to every operator or to one chat.

Each recipient's report is claimed in the store before it is sent. So it is sent at most once, also when
the leader changes; only what was certainly not sent is tried again.
"""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from telegram.constants import ParseMode

from genlock.bot.admin.margin import margin_lines
from genlock.bot.bundle import BotBundle
from genlock.bot.rules import ReportRules
from genlock.bot.storefront.storefront import Storefront
from genlock.channels.telegram.caller import Priority
from genlock.domain.catalog import Catalog
from genlock.domain.errors import ChannelError, ChannelOutcomeUnknown, RecipientUnreachable
from genlock.domain.figures import JobFigures, ModelFigures, TopupFigures, hour_number, sum_by_model
from genlock.domain.margin import Rates
from genlock.engine.cancellation import uninterrupted
from genlock.engine.provider_credit import ProviderCredit, provider_credits
from genlock.i18n.catalog_texts import model_title
from genlock.i18n.loader import DEFAULT
from genlock.i18n.translator import Translator
from genlock.ports import Database

PERIOD_SECONDS = 60.0
DAY_HOURS = 24
#: after the hour, so that the figures contain its last orders
DELAY = timedelta(minutes=2)
#: a report that is later than this is left out: the service was down, or the report has just been switched on
LATEST = timedelta(hours=6)
#: prefix of the bot's kv entries that say which reports were sent
SENT = "chat:report:"
KEPT_SECONDS = 3 * 86_400.0
TOP_MODELS = 5
FAILING_MODELS = 3


class DailyReport:
    def __init__(self, *, bundle: BotBundle, store: Database, storefront: Storefront) -> None:
        self._bundle = bundle
        self._store = store
        self._storefront = storefront

    async def round(self) -> int:
        """Send the report that is due to every recipient who has not got it. Returns how many were sent."""
        rules = self._bundle.rules.report
        if rules is None:
            return 0
        due = _due(await self._store.read_clock(), rules)
        if due is None:
            return 0
        sent = 0
        for chat, thread, language in await self._recipients(rules):
            sent += await uninterrupted(self._send(due, chat, thread, language))
        await self._prune_old()
        return sent

    async def _recipients(self, rules: ReportRules) -> Sequence[tuple[int, int | None, str]]:
        """Return chat, topic and language of each recipient. A group reads the language of the first operator."""
        operators: list[tuple[int, int | None, str]] = [
            (operator, None, await self._language(operator)) for operator in sorted(self._bundle.admin_ids)
        ]
        if rules.chat is None:
            return operators
        return [(rules.chat, rules.thread, operators[0][2] if operators else DEFAULT)]

    async def _language(self, operator: int) -> str:
        found = await self._store.find_profiles(str(operator), 2)
        return next((profile.language for profile in found if profile.external_id == str(operator)), DEFAULT)

    async def _send(self, due: datetime, chat: int, thread: int | None, language: str) -> int:
        key, claim = f"{SENT}{due.date().isoformat()}:{chat}", secrets.token_hex(8)
        if await self._store.kv_put_if_absent(key, claim, self._bundle.id) != claim:
            return 0
        try:
            text = await self._text(due, self._bundle.texts.translator(language))
            await self._bundle.caller.call(
                self._bundle.caller.bot.send_message,
                chat=chat,
                priority=Priority.RESULT,
                text=text,
                parse_mode=ParseMode.HTML,
                **({"message_thread_id": thread} if thread else {}),
            )
        except (RecipientUnreachable, ChannelOutcomeUnknown):
            return 0  # the chat is closed, or the report may have arrived
        except ChannelError:
            await self._store.kv_delete(key, self._bundle.id)
            return 0
        return 1

    async def _prune_old(self) -> None:
        for entry in await self._store.kv_list(SENT, self._bundle.id):
            if entry.age > KEPT_SECONDS:
                await self._store.kv_delete(entry.key, self._bundle.id)

    async def _text(self, due: datetime, t: Translator) -> str:
        until, bot = hour_number(due), self._bundle.id
        since = until - DAY_HOURS
        models = await self._store.model_figures(since, until, bot)
        topups = sum((await self._store.topup_figures(since, until, DAY_HOURS, bot)).values(), TopupFigures())
        started = sum((await self._store.account_set_sizes("started", since, until, DAY_HOURS, bot)).values())
        catalog = self._storefront.catalog
        rates = Rates(self._bundle.rules.credit_usd, catalog.provider_credit_usd)
        titles = {
            model_figures.model: catalog.models[model_figures.model].title
            for model_figures in models
            if model_figures.model in catalog.models
        }
        credit = await provider_credits(self._store)
        lines = [
            *_sums(t, due, models, topups, started, rates),
            *_models(t, models, titles, rates),
            *_failures(t, models, titles),
            *_credit(t, credit, models, catalog),
        ]
        return "\n".join(lines)


def _due(now: datetime, rules: ReportRules) -> datetime | None:
    """Return the last time at which a report was due; None if that is too long ago."""
    local = now.astimezone(ZoneInfo(rules.zone))
    due = local.replace(hour=rules.hour, minute=0, second=0, microsecond=0)
    if now < due + DELAY:
        due = (local - timedelta(days=1)).replace(hour=rules.hour, minute=0, second=0, microsecond=0)
    return due if now - due <= LATEST else None


def _sums(
    t: Translator, due: datetime, models: Sequence[ModelFigures], topups: TopupFigures, started: int, rates: Rates
) -> list[str]:
    jobs, money = sum((model_figures.figures for model_figures in models), JobFigures()), rates.money(models)
    return [
        t.html("report.title", date=t.day_and_time(due)),
        "",
        t.html("admin.orders", orders=jobs.orders, delivered=jobs.delivered, failed=jobs.failed),
        t.html("report.newcomers", n=started),
        *margin_lines(t, jobs.revenue, money),
        t.html("admin.topups", stars=topups.paid_amount, topups=t.credits(topups.credits)),
    ]


def _models(t: Translator, models: Sequence[ModelFigures], titles: Mapping[str, str], rates: Rates) -> list[str]:
    ordered = [(model, figures) for model, figures in sum_by_model(models).items() if figures.orders]
    lines = [
        t.html(
            "report.model",
            title=model_title(titles.get(model, model), t),
            n=figures.orders,
            usd=t.dollars_of_sum(rates.revenue(figures.revenue))[0],
        )
        for model, figures in sorted(ordered, key=lambda item: -item[1].orders)[:TOP_MODELS]
    ]
    return ["", t.html("report.models"), *lines] if lines else []


def _failures(t: Translator, models: Sequence[ModelFigures], titles: Mapping[str, str]) -> list[str]:
    failing = [(model, figures) for model, figures in sum_by_model(models).items() if figures.failed]
    lines = [
        t.html(
            "report.failure",
            title=model_title(titles.get(model, model), t),
            failed=figures.failed,
            orders=figures.orders,
            code=f"#{figures.last_failed_job}",
        )
        for model, figures in sorted(failing, key=lambda item: -item[1].failed)[:FAILING_MODELS]
    ]
    return ["", t.html("report.failures"), *lines] if lines else []


def _credit(
    t: Translator, credit: Sequence[ProviderCredit], models: Sequence[ModelFigures], catalog: Catalog
) -> list[str]:
    """Return what is left at each provider, and how many days it lasts at the rate of this day."""
    lines = []
    for balance in credit:
        spent = sum(figures.figures.cost for figures in models if figures.provider == balance.provider)
        left = {"provider": catalog.provider_title(balance.provider), "credit": t.credits(balance.credit)}
        if spent > 0:
            lines.append(t.html("report.credit", **left, days=t.plain("unit.days", n=balance.credit // spent)))
        else:
            lines.append(t.html("report.credit_unspent", **left))
    return ["", *lines] if lines else []
