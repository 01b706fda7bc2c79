"""`/admin`: figures, and the log of what operators did."""

from collections.abc import Mapping, Sequence

from genlock.bot.admin import screens
from genlock.bot.admin.campaigns import MAINTENANCE
from genlock.bot.admin.command import AdminCommand
from genlock.bot.bundle import BotBundle
from genlock.bot.context import UpdateContext
from genlock.engine.refunds import REFUND
from genlock.i18n.translator import DAY
from genlock.ports import Database, OutgoingMessage

LOG_LINES = 20
DAYS = {"today": 1, "week": 7}


class OverviewCommands:
    def __init__(self, *, bundle: BotBundle, store: Database) -> None:
        self._bundle = bundle
        self._store = store

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
            await self._store.figures(bot, DAYS[period] * DAY),
            await self._store.counts(),
            refunds=len(await self._store.kv_list(REFUND, bot)),
            maintenance=await self._store.kv_get(MAINTENANCE, bot) is not None,
            broadcast=await self._store.running_broadcast(bot),
        )

    async def _log(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        lines = await self._store.audit(LOG_LINES, self._bundle.id)
        names = {actor: await self._name(actor) for actor in {line.actor for line in lines}}
        return screens.log(ctx.translator, lines, names)

    async def _name(self, external_id: str) -> str:
        found = await self._store.find_profiles(external_id, 2)
        return next((one.name for one in found if one.external_id == external_id), external_id)
