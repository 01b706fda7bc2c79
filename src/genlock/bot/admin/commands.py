"""Dispatch of the operators' commands. Each part of `/admin` brings its own table of commands."""

from collections.abc import Mapping, Sequence

from telegram import Message

from genlock.bot.admin import screens
from genlock.bot.admin.accounts import AccountCommands
from genlock.bot.admin.asking import PREFIX, YES, Asking
from genlock.bot.admin.audit import AuditLog
from genlock.bot.admin.broadcasts import Broadcasts, Content, options_of, segment_of
from genlock.bot.admin.campaigns import CampaignCommands
from genlock.bot.admin.command import AdminCommand, Declined, NotUnderstood
from genlock.bot.admin.dashboard import DashboardCommands
from genlock.bot.admin.orders import OrderCommands
from genlock.bot.admin.overview import OverviewCommands
from genlock.bot.admin.stars import StarsCommands
from genlock.bot.bundle import BotBundle
from genlock.bot.buttons import ButtonData
from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.errors import ChannelBusy, ChannelError, ChannelOutcomeUnknown, InsufficientBalance, Refusal
from genlock.engine.accounts import AccountActions
from genlock.engine.engine import Engine
from genlock.engine.refunds import NoRefund, Refunds
from genlock.i18n.translator import Html, Translator
from genlock.ports import Database, OutgoingMessage

FIRST = "today"
#: the one command of operators whose role was set in the dashboard
DASHBOARD = "dashboard"


class Admin:
    def __init__(
        self,
        *,
        bundle: BotBundle,
        view: ChatView,
        commands: Mapping[str, AdminCommand],
        campaigns: CampaignCommands,
        dashboard: DashboardCommands,
        asking: Asking,
    ) -> None:
        self._bundle = bundle
        self._dashboard = dashboard
        self._view = view
        self._campaigns = campaigns
        self._asking = asking
        self._commands: Mapping[str, AdminCommand] = {
            **commands,
            **campaigns.commands,
            **dashboard.commands,
            "commands": AdminCommand(run=self._list_commands),
            "help": AdminCommand(run=self._list_commands),
        }

    def may(self, ctx: UpdateContext) -> bool:
        """Whether the user is an operator of this bot, in their private chat."""
        return not ctx.group and int(ctx.profile.external_id) in self._bundle.admin_ids

    async def may_open_dashboard(self, ctx: UpdateContext) -> bool:
        """Whether the user may ask for a link to the dashboard, and for nothing else."""
        return not self.may(ctx) and await self._dashboard.may(ctx)

    async def send_dashboard_link(self, ctx: UpdateContext) -> None:
        await self._view.send(ctx, await self._answer(ctx, DASHBOARD, []))

    async def command(self, ctx: UpdateContext, line: str, message: Message) -> None:
        """Answer `/admin LINE` on a message of its own."""
        name, *args = line.split() or [FIRST]
        post = message if name.lower() == "broadcast" else None
        await self._view.send(ctx, await self._answer(ctx, name.lower(), args, post, typed=True))

    async def handle_button(self, ctx: UpdateContext, data: ButtonData) -> None:
        """Answer a button of the operators on its own message."""
        name, *args = data.args or ("",)
        may = self.may(ctx) or (name == DASHBOARD and await self.may_open_dashboard(ctx))
        if not may or ctx.button_message is None:
            await self._view.toast(ctx, ctx.translator.plain("order.unknown"), alert=True)
            return
        answer = await self._answer(ctx, name, args)
        await self._view.toast(ctx)
        await self._view.edit(ctx.chat, ctx.button_message, answer)
        if name == "send":
            await self._campaigns.show_progress_on(ctx, ctx.button_message)

    async def _answer(
        self,
        ctx: UpdateContext,
        name: str,
        args: Sequence[str],
        post: Message | None = None,
        *,
        typed: bool = False,
    ) -> OutgoingMessage:
        t = ctx.translator
        if name == YES:
            return await self._run_asked(ctx, args)
        asking = name not in self._commands and name.startswith(PREFIX)
        name = name.removeprefix(PREFIX) if asking else name
        command = self._commands.get(name)
        if command is None:
            return screens.commands(t, self._usages(), note=t.html("admin.unknown_command"))
        try:
            if post is not None and ((content := Content.of(post)).text or content.file):
                return await self._campaigns.preview(ctx, content, segment_of(options_of(post)))
            ask = command.ask if typed or asking else None
            answer = await (ask or command.run)(ctx, args)
            return await self._asking.ask(ctx, name, args, answer, typed=typed)
        except NotUnderstood:
            return screens.usage(t, command.usage)
        except (Declined, Refusal, ChannelError) as error:
            return screens.message(t, _why_not(error, t))

    async def _run_asked(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        """Run the typed command that waits for this yes."""
        waiting = await self._asking.waiting(ctx, args)
        if waiting is None:
            return screens.message(ctx.translator, ctx.translator.html("admin_ask.old"))
        return await self._answer(*waiting)

    async def _list_commands(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        return screens.commands(ctx.translator, self._usages())

    def _usages(self) -> list[str]:
        """Return the commands that take arguments; those that share the usage of another are left out."""
        return [name for name, command in self._commands.items() if command.usage == name]


def _why_not(error: Exception, t: Translator) -> Html:
    """Return why a command was not carried out. Our own reasons are translated, those of Telegram are not."""
    match error:
        case Declined():
            return t.html(f"admin.{error.text}", **error.values)
        case NoRefund():
            values = {
                name: t.credits(value) if isinstance(value, int) else value for name, value in error.values.items()
            }
            return t.html(f"admin.refund_{error.why}", **values)
        case InsufficientBalance():
            return t.html("admin.too_little", balance=t.credits(error.available))
        case ChannelBusy() | ChannelOutcomeUnknown():
            return t.html("admin.later")
        case ChannelError():
            return t.html("admin.unread", reason=str(error))
        case _:
            return t.html("admin.impossible", reason=str(error))


def make_admin(
    *,
    bundle: BotBundle,
    view: ChatView,
    store: Database,
    storefront: Storefront,
    engine: Engine,
    refunds: Refunds,
    broadcasts: Broadcasts,
    actions: AccountActions,
) -> Admin:
    audit = AuditLog(bundle, store)
    accounts = AccountCommands(bundle=bundle, store=store, audit=audit, actions=actions)
    orders = OrderCommands(
        bundle=bundle, store=store, engine=engine, storefront=storefront, accounts=accounts, audit=audit
    )
    return Admin(
        bundle=bundle,
        view=view,
        commands={
            **OverviewCommands(bundle=bundle, store=store, storefront=storefront).commands,
            **accounts.commands,
            **orders.commands,
            **StarsCommands(store=store, refunds=refunds, accounts=accounts, audit=audit).commands,
        },
        campaigns=CampaignCommands(
            bundle=bundle, store=store, storefront=storefront, broadcasts=broadcasts, audit=audit
        ),
        dashboard=DashboardCommands(bundle=bundle, store=store),
        asking=Asking(bundle, store),
    )
