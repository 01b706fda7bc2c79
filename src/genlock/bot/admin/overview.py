"""`/admin`: figures, and the log of what operators did."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from genlock.bot.admin import screens
from genlock.bot.admin.campaigns import MAINTENANCE
from genlock.bot.admin.command import AdminCommand
from genlock.bot.bundle import BotBundle
from genlock.bot.context import UpdateContext
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.figures import Figures
from genlock.domain.margin import Money, Rates
from genlock.engine.refunds import REFUND
from genlock.i18n.translator import DAY
from genlock.ports import Database, OutgoingMessage

LOG_LINES = 20
#: actors of the audit log that are no operators of a chat
OTHER_ACTORS = ("command", "token")
DAYS = {"today": 1, "week": 7}


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
        numbers = await self._store.figures(bot, DAYS[period] * DAY)
        return screens.figures(
            ctx.translator,
            period,
            numbers,
            self._money(numbers),
            await self._store.counts(),
            refunds=len(await self._store.kv_list(REFUND, bot)),
            maintenance=await self._store.kv_get(MAINTENANCE, bot) is not None,
            broadcast=await self._store.running_broadcast(bot),
        )

    def _money(self, numbers: Figures) -> Money:
        rates = Rates(self._bundle.rules.credit_usd, self._storefront.catalog.provider_credit_usd)
        cost = sum((rates.cost(provider, billed) for provider, billed in numbers.costs.items()), Decimal(0))
        return Money(revenue=rates.revenue(numbers.revenue), cost=cost)

    async def _log(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        lines = await self._store.audit(LOG_LINES, self._bundle.id)
        names = {actor: await self._name(ctx, actor) for actor in {line.actor for line in lines}}
        return screens.log(ctx.translator, lines, names)

    async def _name(self, ctx: UpdateContext, external_id: str) -> str:
        if external_id in OTHER_ACTORS:
            return ctx.translator.plain(f"admin.actor_{external_id}")
        found = await self._store.find_profiles(external_id, 2)
        return next((one.name for one in found if one.external_id == external_id), external_id)
