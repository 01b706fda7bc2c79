"""The chat product: every update of every person gets its answer here."""

from time import monotonic

from telegram import Bot, CallbackQuery, ChatMemberUpdated, Message, Update, User
from telegram.constants import ChatMemberStatus, ChatType

from genlock.bot import buttons
from genlock.bot.admin.broadcasts import Broadcasts
from genlock.bot.admin.campaigns import MAINTENANCE, Campaigns
from genlock.bot.admin.commands import Admin
from genlock.bot.chat_view import ChatView, DraftChanged
from genlock.bot.context import Behind, UpdateContext, nothing, shown_message, thread_of, who
from genlock.bot.handlers.buttons import ButtonHandler
from genlock.bot.handlers.command_menu import register
from genlock.bot.handlers.files import Files, UploadFile
from genlock.bot.handlers.messages import MessageHandler, start_payload
from genlock.bot.handlers.pages import Pages
from genlock.bot.money.gifts import Gifts, inviter
from genlock.bot.money.payments import Payments
from genlock.bot.order import draft as drafts
from genlock.bot.order.draft import Draft
from genlock.bot.order.ordering import CHANNEL, Orders
from genlock.bot.quotas import Quotas
from genlock.bot.rules import BotRules
from genlock.bot.storefront.storefront import Storefront
from genlock.channels.telegram.caller import Caller, Priority
from genlock.domain.catalog import Catalog
from genlock.domain.errors import ChannelError, GenlockError
from genlock.engine.engine import Engine
from genlock.i18n.translator import guess_language, translator
from genlock.ports import Database

TRIES = 3
NAME_LENGTH = 100
PEOPLE_REMEMBERED = 50_000
#: how long the store's word about maintenance is believed
MAINTENANCE_SECONDS = 2.0


class ChatBot:
    """Routes updates. Any of them may be handled again after a crash: then it changes nothing and shows the same."""

    def __init__(
        self,
        *,
        view: ChatView,
        files: Files,
        talk: MessageHandler,
        presses: ButtonHandler,
        payments: Payments,
        gifts: Gifts,
        broadcasts: Broadcasts,
    ) -> None:
        self._view = view
        self._files = files
        self._store: Database = view.store
        self._talk = talk
        self._presses = presses
        self._payments = payments
        self._gifts = gifts
        self._broadcasts = broadcasts
        self._people: dict[int, int] = {}
        self._maintenance: tuple[float, str | None] = (0.0, None)

    @classmethod
    def made_of(
        cls,
        *,
        caller: Caller,
        store: Database,
        engine: Engine,
        catalog: Catalog,
        rules: BotRules,
        upload: UploadFile,
    ) -> "ChatBot":
        """The whole product over its parts."""
        storefront = Storefront(catalog, markup=rules.markup, credit_usd=rules.credit_usd)
        view = ChatView(caller=caller, store=store, storefront=storefront, rules=rules)
        quotas = Quotas(store, rules)
        files = Files(view=view, quotas=quotas, upload=upload)
        orders = Orders(view=view, engine=engine, quotas=quotas, files=files)
        payments, gifts, broadcasts = Payments(view), Gifts(view, quotas), Broadcasts(view)
        admin = Admin(view=view, engine=engine, payments=payments, campaigns=Campaigns(view, broadcasts))
        pages = Pages(view=view, orders=orders, payments=payments, gifts=gifts)
        return cls(
            view=view,
            files=files,
            talk=MessageHandler(view=view, orders=orders, pages=pages, files=files, gifts=gifts, admin=admin),
            presses=ButtonHandler(view=view, orders=orders, pages=pages, admin=admin),
            payments=payments,
            gifts=gifts,
            broadcasts=broadcasts,
        )

    async def start(self) -> None:
        """Learn our name and tell Telegram our commands, where they have changed."""
        await self._view.introduce()
        await register(self._view.caller, self._store)

    async def reconcile(self) -> int:
        """Make good payments that we missed, by Telegram's own list; for the active instance, every few minutes."""
        return await self._payments.reconcile()

    async def reward(self) -> int:
        """Reward invitations that have borne fruit; for the active instance, every few seconds."""
        return await self._gifts.reward()

    async def broadcast(self) -> int:
        """Go on with a message to everybody, if there is one; for the active instance, every few seconds."""
        return await self._broadcasts.round()

    async def close(self) -> None:
        await self._files.close()

    @property
    def _bot(self) -> Bot:
        return self._view.caller.bot

    async def handle(self, update: Update, *, first: bool, behind: Behind = nothing) -> None:
        """Answer one update. Raises what may pass (the store, the channel), to be called again.

        `behind` tells what the same person did next, so that what belongs together is shown once.
        """
        await self._view.introduce()
        for left in reversed(range(TRIES)):
            try:
                await self._handle(update, first=first, behind=behind)
            except DraftChanged:
                if not left:
                    raise
                first = False
            except GenlockError:
                raise
            except Exception:
                if first:
                    await self._apologise(update)
                raise
            else:
                return

    async def _apologise(self, update: Update) -> None:
        """Something is wrong with us: say so once, while it is tried again."""
        user, chat = who(update), update.effective_chat
        if user is None or chat is None:
            return
        try:
            await self._view.tell(chat.id, translator(guess_language(user.language_code)).html("misc.error"))
        except ChannelError:
            return  # what went wrong is about to be told to the operator

    async def _handle(self, update: Update, *, first: bool, behind: Behind) -> None:
        if update.pre_checkout_query is not None:
            await self._payments.check(update.pre_checkout_query)
            return
        if update.my_chat_member is not None:
            await self._membership(update, update.my_chat_member)
            return
        user = who(update)
        if user is None:
            return
        if update.callback_query is not None:
            await self._press(update, update.callback_query, user, first=first)
        elif update.message is not None:
            await self._message(update, update.message, user, first=first, behind=behind)
        elif update.edited_message is not None and update.edited_message.chat.type == ChatType.PRIVATE:
            ctx = await self._visit(update, update.edited_message, user, first=first)
            await self._view.say(ctx, ctx.translator.html("misc.edited"))

    async def _message(self, update: Update, message: Message, user: User, *, first: bool, behind: Behind) -> None:
        heard = self._talk.heard(message)
        if heard is None:
            return
        ctx = await self._visit(update, message, user, first=first)
        ctx.message, ctx.behind = message.message_id, behind
        if message.successful_payment is not None:
            await self._payments.paid(ctx, message.successful_payment)
            return
        if not await self._shut_out(ctx, user):
            await self._talk.hear(ctx, message, heard)

    async def _press(self, update: Update, query: CallbackQuery, user: User, *, first: bool) -> None:
        message = shown_message(query)
        if message is None:  # so old that Telegram does not show it to us any more
            await self._view.caller.call(
                self._bot.answer_callback_query, chat=None, priority=Priority.RESULT, callback_query_id=query.id
            )
            return
        ctx = await self._visit(update, message, user, first=first)
        ctx.pressed, ctx.notice = message.message_id, message.reply_to_message is not None
        ctx.query = query.id
        try:
            if not await self._shut_out(ctx, user):
                await self._presses.pressed(ctx, buttons.read(query.data or ""))
        finally:
            await self._view.toast(ctx)

    async def _visit(self, update: Update, message: Message, user: User, *, first: bool) -> UpdateContext:
        person = await self._person(user.id)
        profile = await self._store.ensure_profile(
            person,
            language=guess_language(user.language_code),
            name=user.full_name[:NAME_LENGTH],
            username=(user.username or "").lower(),
            referred_by=inviter(start_payload(message)) if message.text else None,
        )
        if profile.fresh or not first:  # the try that made the profile may have ended there
            await self._gifts.welcome(person)
        saved = await self._store.draft(person, message.chat.id)
        return UpdateContext(
            update=update.update_id,
            first=first,
            profile=profile,
            chat=message.chat.id,
            thread=thread_of(message),
            group=message.chat.type != ChatType.PRIVATE,
            draft=drafts.load(saved.body, version=saved.version, message=saved.message) if saved else Draft(),
        )

    async def _person(self, outside: int) -> int:
        if outside not in self._people:
            if len(self._people) >= PEOPLE_REMEMBERED:
                self._people.clear()
            self._people[outside] = await self._store.ensure_account(CHANNEL, str(self._bot.id), str(outside))
        return self._people[outside]

    async def _shut_out(self, ctx: UpdateContext, user: User) -> bool:
        """Whether the person gets one word only: they are banned, or the bot is being worked on."""
        view, t = self._view, ctx.translator
        if user.id in view.rules.admin_ids:
            return False
        if ctx.profile.banned_at is not None:
            key, words = "ban.told", {"support": view.rules.support or t.plain("paysupport.support_default")}
        elif (why := await self._under_maintenance()) is not None:
            key, words = "misc.maintenance", {"text": why or t.plain("misc.maintenance_default")}
        else:
            return False
        if ctx.query is not None:
            await view.toast(ctx, t.plain(key, **words), alert=True)
        else:
            await view.say(ctx, t.html(key, **words))
        return True

    async def _under_maintenance(self) -> str | None:
        until, words = self._maintenance
        if monotonic() >= until:
            fact = await self._store.kv_get(MAINTENANCE)
            words = fact.value if fact else None
            self._maintenance = (monotonic() + MAINTENANCE_SECONDS, words)
        return words

    async def _membership(self, update: Update, change: ChatMemberUpdated) -> None:
        """Somebody has blocked us or come back, or we were taken into a group."""
        gone = change.new_chat_member.status in (ChatMemberStatus.BANNED, ChatMemberStatus.LEFT)
        if change.chat.type == ChatType.PRIVATE:
            person = await self._person(change.from_user.id)
            await self._store.set_blocked(person, blocked=gone)
            return
        came = change.old_chat_member.status in (ChatMemberStatus.BANNED, ChatMemberStatus.LEFT)
        if came and not gone:
            await self._talk.greet_group(change.chat.id, guess_language(change.from_user.language_code))
