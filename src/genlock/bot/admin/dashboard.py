"""`/admin dashboard`: a one-time link to the dashboard, for operators who have a role there."""

from collections.abc import Mapping, Sequence

from genlock.bot.admin import screens
from genlock.bot.admin.command import AdminCommand, Declined
from genlock.bot.bundle import BotBundle
from genlock.bot.context import UpdateContext
from genlock.ports import Button, OperatorStore, OutgoingMessage


class DashboardCommands:
    def __init__(self, *, bundle: BotBundle, store: OperatorStore) -> None:
        self._bundle = bundle
        self._store = store

    @property
    def commands(self) -> Mapping[str, AdminCommand]:
        return {"dashboard": AdminCommand(run=self._link)}

    async def may(self, ctx: UpdateContext) -> bool:
        """Whether the user has a role in the dashboard although the settings do not name them."""
        return not ctx.group and await self._store.operator(ctx.profile.external_id) is not None

    async def _link(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        make_link = self._bundle.dashboard_link
        url = None if make_link is None else await make_link(ctx.profile.external_id)
        if url is None:
            raise Declined("no_dashboard")
        t = ctx.translator
        again = (screens.admin_button(t, "dashboard_again", "dashboard"),)
        if not url.startswith("https://"):  # Telegram takes no other addresses on buttons
            return OutgoingMessage(text=t.html("admin.dashboard_local", url=url), buttons=(again,))
        open_it = (Button(text=t.plain("admin.button_dashboard_open"), url=url),)
        return OutgoingMessage(text=t.html("admin.dashboard"), buttons=(open_it, again))
