"""`/admin`: figures, and the log of what operators did."""

from collections.abc import Mapping, Sequence

from genlock.bot.admin import screens
from genlock.bot.admin.campaigns import MAINTENANCE
from genlock.bot.admin.command import AdminCommand
from genlock.bot.bundle import BotBundle
from genlock.bot.context import UpdateContext
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.figures import JobFigures, TopupFigures, hour_number
from genlock.domain.margin import Rates
from genlock.engine.refunds import REFUND
from genlock.i18n.audit_words import actor_in_words
from genlock.ports import Database, OutgoingMessage

LOG_LINES = 20
HOURS = {"today": 24, "week": 7 * 24}


class OverviewCommands:
    def __init__(self, *, bundle: BotBundle, store: Database, storefront: Storefront) -> None:
        self._bundle = bundle
        self._store = store
        self._storefront = storefront

    @property
    def commands(self) -> Mapping[str, AdminCommand]:
        return {
            "today": AdminCommand(run=lambda ctx, _: self._figures(ctx, "today")),
            "week": AdminCommand(run=lambda ctx, _: self._figures(ctx, "week")),
            "log": AdminCommand(run=self._log),
        }

    async def _figures(self, ctx: UpdateContext, period: str) -> OutgoingMessage:
        bot = self._bundle.id
        return screens.figures(
            ctx.translator,
            period,
            await self._sales(HOURS[period]),
            await self._store.counts(),
            refunds=len(await self._store.kv_list(REFUND, bot)),
            maintenance=await self._store.kv_get(MAINTENANCE, bot) is not None,
            broadcast=await self._store.running_broadcast(bot),
        )

    async def _sales(self, hours: int) -> screens.Sales:
        """Return this bot's figures of the last hours, this one included. The dashboard counts all bots and the API."""
        store, bot = self._store, self._bundle.id
        until = hour_number(await store.read_clock()) + 1
        since = until - hours
        models = await store.model_figures(since, until, bot)
        rates = Rates(self._bundle.rules.credit_usd, self._storefront.catalog.provider_credit_usd)
        return screens.Sales(
            jobs=sum((model_figures.figures for model_figures in models), JobFigures()),
            money=rates.money(models),
            topups=sum((await store.topup_figures(since, until, hours, bot)).values(), TopupFigures()),
            users=len(await store.account_set("active", since, until, bot)),
            newcomers=sum((await store.account_set_sizes("started", since, until, hours, bot)).values()),
        )

    async def _log(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        lines = await self._store.audit(LOG_LINES, self._bundle.id)
        names = {actor: await self._name(ctx, actor) for actor in {line.actor for line in lines}}
        return screens.log(ctx.translator, lines, names)

    async def _name(self, ctx: UpdateContext, external_id: str) -> str:
        found = await self._store.find_profiles(external_id, 2)
        known = (profile.name for profile in found if profile.external_id == external_id)
        return next(known, actor_in_words(external_id, ctx.translator))
