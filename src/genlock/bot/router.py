"""Routes each Telegram update to its handler."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable

from telegram import CallbackQuery, ChatMemberUpdated, Message, Update, User
from telegram.constants import ChatMemberStatus, ChatType

from genlock.bot import buttons
from genlock.bot.access import Access
from genlock.bot.admin.broadcasts import Broadcasts
from genlock.bot.admin.daily_report import DailyReport
from genlock.bot.bundle import BotBundle
from genlock.bot.chat_view import ChatView
from genlock.bot.context import (
    CHANNEL,
    NextUpdate,
    UpdateContext,
    button_message_of,
    no_next_update,
    sender_of,
    thread_of,
)
from genlock.bot.file_transfer import FileTransfer
from genlock.bot.handlers.buttons import ButtonHandler
from genlock.bot.handlers.command_menu import register
from genlock.bot.handlers.descriptions import register_descriptions
from genlock.bot.handlers.incoming import read_message, start_payload
from genlock.bot.handlers.inline import InlineQueries
from genlock.bot.handlers.messages import MessageHandler
from genlock.bot.handlers.privacy import Privacy
from genlock.bot.money.gifts import Gifts, inviter
from genlock.bot.money.invoices import Invoices
from genlock.bot.money.payments import Payments
from genlock.bot.order import draft as drafts
from genlock.bot.order.draft import Draft
from genlock.bot.order.draft_view import DraftChanged
from genlock.bot.order.groups import Groups
from genlock.bot.order.job_ends import JOB_ENDED, JobEnds
from genlock.bot.order.request_keys import GroupKey
from genlock.bot.order.sales import group_of, with_known_sale
from genlock.channels.telegram.errors import GroupMigrated
from genlock.channels.telegram.updates import moved_update
from genlock.domain.errors import ChannelError, GenlockError
from genlock.domain.update import Update as StoredUpdate
from genlock.domain.upload import Upload
from genlock.i18n.translator import Texts
from genlock.ports import Database

ATTEMPTS = 3
NAME_LENGTH = 100
ACCOUNTS_CACHED = 50_000
#: the text for each reason why a user may not use the bot
DENIALS = {"banned": "ban.notice", "maintenance": "misc.maintenance"}


class HandledElsewhere(Exception):
    """Another instance has handled the update, and later ones of the user."""


class BotRouter:
    """Hands each update to its handler. An update handled again after a crash changes nothing and shows the same."""

    def __init__(  # noqa: PLR0913 - one argument per part it works with
        self,
        *,
        view: ChatView,
        bundle: BotBundle,
        store: Database,
        transfer: FileTransfer,
        messages: MessageHandler,
        buttons: ButtonHandler,
        job_ends: JobEnds,
        groups: Groups,
        inline: InlineQueries,
        invoices: Invoices,
        payments: Payments,
        gifts: Gifts,
        broadcasts: Broadcasts,
        report: DailyReport,
        access: Access,
        privacy: Privacy,
    ) -> None:
        self._view = view
        self._bundle = bundle
        self._store = store
        self._transfer = transfer
        self._messages = messages
        self._buttons = buttons
        self._job_ends = job_ends
        self._groups = groups
        self._inline = inline
        self._invoices = invoices
        self._payments = payments
        self._gifts = gifts
        self._broadcasts = broadcasts
        self._report = report
        self._access = access
        self._privacy = privacy
        self._account_ids: dict[int, int] = {}
        self._addresses: dict[int, str] = {}

    async def start(self) -> None:
        """Ask Telegram for our username and register our commands and descriptions where they have changed."""
        await self._bundle.introduce()
        await register(self._bundle, self._store)
        await register_descriptions(self._bundle, self._store)

    async def reconcile(self) -> int:
        """Credit payments that Telegram lists and we missed. A periodic task of the leader."""
        return await self._payments.reconcile()

    async def reward(self) -> int:
        """Pay rewards for invitations that are due. A periodic task of the leader."""
        return await self._gifts.reward()

    async def broadcast(self) -> int:
        """Continue the running broadcast, if there is one. A periodic task of the leader."""
        return await self._broadcasts.round()

    async def report(self) -> int:
        """Send the daily report if it is due. A periodic task of the leader."""
        return await self._report.round()

    async def erase(self) -> int:
        """Erase the data of users who asked for it, and inputs that are too old. A periodic task of the leader."""
        return await self._privacy.run()

    @property
    def texts(self) -> Texts:
        """The bot's texts, with its numbers of orders and accounts."""
        return self._bundle.texts

    async def close(self) -> None:
        await self._transfer.close()
        await self._inline.close()

    def read_upload(self, upload: Upload) -> AsyncIterator[bytes]:
        """Return the content of a file that a user sent in a chat. Raises ProviderError and ChannelError."""
        return self._transfer.read(upload)

    async def handle_stored(self, stored: StoredUpdate) -> None:
        """Handle an update from the update queue; the handler may look at the user's next one."""
        if stored.kind == JOB_ENDED:
            await self._retrying(stored.attempts == 1, lambda _: self._handle_job_end(stored))
            return

        async def next_update() -> Update | None:
            following = await self._store.following_update(stored.id)
            return self._parse(following.body) if following else None

        update = self._parse(stored.body)
        try:
            await self.handle(update, first=stored.attempts == 1, place=stored.id, next_update=next_update)
        except GroupMigrated as migrated:  # the buttons of earlier messages still come from the old group
            moved = self._parse(moved_update(stored.body, migrated.chat))
            await self.handle(moved, first=False, place=stored.id, next_update=next_update)

    def _parse(self, body: str) -> Update:
        return Update.de_json(json.loads(body), self._bundle.caller.bot)

    async def handle(
        self, update: Update, *, first: bool, place: int = 0, next_update: NextUpdate = no_next_update
    ) -> None:
        """Handle one update. Raises transient errors of the store and the channel, so that the worker retries it.

        `place` is that of the update in the user's update queue. `next_update` returns the user's next update, so that
        a handler can treat an album or a split text as one.
        """
        try:
            await self._retrying(
                first, lambda first: self._handle(update, first=first, place=place, next_update=next_update)
            )
        except (DraftChanged, GenlockError):
            raise
        except Exception:
            if first:
                await self._report_error(update)
            raise

    async def _retrying(self, first: bool, handle: Callable[[bool], Awaitable[None]]) -> None:  # noqa: FBT001 - as in handle
        """Handle something from the start again if another instance saved the draft meanwhile."""
        await self._bundle.introduce()
        for left in reversed(range(ATTEMPTS)):
            try:
                await handle(first)
            except HandledElsewhere:
                return  # the worker learns it when it settles the update
            except DraftChanged:
                if not left:
                    raise
                first = False
            else:
                return

    async def _handle_job_end(self, stored: StoredUpdate) -> None:
        """Go on with what the user began, now that its job has ended."""
        if (found := await self._job_ends.read(stored)) is None:
            return
        ctx, job = found
        await self._refuse_if_settled(ctx)
        ctx.draft = await with_known_sale(ctx, self._store)
        if (group := GroupKey.read(job.request_key)) is not None:
            await self._groups.notify(ctx, group)
        elif await self._access.denial(int(ctx.profile.external_id), ctx.profile, ctx.translator) is None:
            await self._messages.continue_after(ctx, job)

    async def _report_error(self, update: Update) -> None:
        """Tell the user once that the bot failed; the update is retried."""
        user, chat = sender_of(update), update.effective_chat
        if user is None or chat is None:
            return
        try:
            t = self._bundle.texts.translator(self._bundle.texts.guess_language(user.language_code))
            await self._view.send_to(chat.id, t.html("misc.error"))
        except ChannelError:
            return  # the original error is raised and reported

    async def _handle(self, update: Update, *, first: bool, place: int, next_update: NextUpdate) -> None:
        if update.pre_checkout_query is not None:
            await self._invoices.check(update.pre_checkout_query)
            return
        if update.my_chat_member is not None:
            await self._handle_membership(update, update.my_chat_member)
            return
        if update.message is not None and update.message.refunded_payment is not None:
            # In a private chat, the chat has the id of the user; the sender may be the bot itself.
            await self._payments.refunded(update.message.chat.id, update.message.refunded_payment)
            return
        user = sender_of(update)
        if user is None:
            return
        if update.callback_query is not None:
            await self._handle_button(update, update.callback_query, user, first=first, place=place)
        elif update.message is not None:
            await self._handle_message(update, update.message, user, first=first, place=place, next_update=next_update)
        elif update.edited_message is not None and update.edited_message.chat.type == ChatType.PRIVATE:
            ctx = await self._make_context(update, update.edited_message, user, first=first, place=place)
            await self._view.send_text(ctx, ctx.translator.html("misc.edited"))

    async def _handle_message(
        self, update: Update, message: Message, user: User, *, first: bool, place: int, next_update: NextUpdate
    ) -> None:
        incoming = read_message(message, self._bundle.username)
        if incoming is None:
            return
        ctx = await self._make_context(update, message, user, first=first, place=place)
        ctx.message, ctx.next_update = message.message_id, next_update
        if message.successful_payment is not None:
            await self._payments.paid(ctx, message.successful_payment)
            return
        if not await self._is_refused(ctx, user):
            await self._messages.handle(ctx, message, incoming)

    async def _handle_button(
        self, update: Update, query: CallbackQuery, user: User, *, first: bool, place: int
    ) -> None:
        message = button_message_of(query)
        if message is None:  # too old: Telegram does not include it
            await self._view.end_spinner(query.id)
            return
        ctx = await self._make_context(update, message, user, first=first, place=place)
        ctx.button_message, ctx.on_notice = message.message_id, message.reply_to_message is not None
        ctx.query_id, ctx.button_reply = query.id, message.reply_to_message
        try:
            if not await self._is_refused(ctx, user):
                await self._buttons.handle(ctx, buttons.read(query.data or ""))
        finally:
            await self._view.toast(ctx)

    async def _make_context(
        self, update: Update, message: Message, user: User, *, first: bool, place: int
    ) -> UpdateContext:
        account_id = await self._account_id(user.id)
        uncertain_commits = self._store.uncertain_commits
        profile, saved = await self._store.ensure_profile_and_draft(
            account_id,
            chat=message.chat.id,
            language=self._bundle.texts.guess_language(user.language_code),
            name=user.full_name[:NAME_LENGTH],
            username=(user.username or "").lower(),
            referred_by=inviter(start_payload(message), self._bundle.texts.numbers) if message.text else None,
        )
        # An attempt before may have crashed here, or the profile was stored by a statement whose answer was lost.
        repeated = not first or self._store.uncertain_commits != uncertain_commits
        if profile.created or (repeated and await self._gifts.is_new(profile)):
            await self._gifts.welcome(account_id)
        ctx = UpdateContext(
            update=update.update_id,
            first=first,
            profile=profile,
            chat=message.chat.id,
            thread=thread_of(message),
            group=message.chat.type != ChatType.PRIVATE,
            draft=drafts.load(saved.body, version=saved.version, message=saved.message) if saved else Draft(),
            place=place,
            texts=self._bundle.texts,
        )
        await self._refuse_if_settled(ctx)
        if (group := group_of(ctx.draft)) is not None and not ctx.repeated:
            await self._job_ends.group_ended(account_id, group)  # its press may have failed before all were ordered
        ctx.draft = await with_known_sale(ctx, self._store)
        if not ctx.group:
            await self._remember_address(ctx.account_id, str(ctx.address))
        return ctx

    async def _refuse_if_settled(self, ctx: UpdateContext) -> None:
        """Raise HandledElsewhere if another instance has handled the update while this one was paused.

        The draft was read before: what changes it from now on also changes its version, and saving it fails.
        """
        if ctx.overtaken and not await self._store.is_update_open(ctx.place):
            raise HandledElsewhere

    async def _remember_address(self, account_id: int, address: str) -> None:
        """Store where the user is reached outside a job, when it has changed."""
        if self._addresses.get(account_id) != address:
            if len(self._addresses) >= ACCOUNTS_CACHED:
                self._addresses.clear()
            await self._store.set_account_address(account_id, address)
            self._addresses[account_id] = address

    async def _account_id(self, user_id: int) -> int:
        if user_id not in self._account_ids:
            if len(self._account_ids) >= ACCOUNTS_CACHED:
                self._account_ids.clear()
            self._account_ids[user_id] = await self._store.ensure_account(CHANNEL, self._bundle.id, str(user_id))
        return self._account_ids[user_id]

    async def _is_refused(self, ctx: UpdateContext, user: User) -> bool:
        """Refuse banned users, and all users but operators during maintenance; return whether it was refused."""
        view, t = self._view, ctx.translator
        denial = await self._access.denial(user.id, ctx.profile, t)
        if denial is None:
            return False
        key = DENIALS[denial.reason]
        if ctx.query_id is not None:
            await view.toast(ctx, t.plain(key, **denial.values), alert=True)
        else:
            await view.send_text(ctx, t.html(key, **denial.values))
        return True

    async def _handle_membership(self, update: Update, change: ChatMemberUpdated) -> None:
        """Record that a user blocked or unblocked the bot, or greet a group that added it."""
        gone = change.new_chat_member.status in (ChatMemberStatus.BANNED, ChatMemberStatus.LEFT)
        if change.chat.type == ChatType.PRIVATE:
            account_id = await self._account_id(change.from_user.id)
            await self._store.set_blocked(account_id, blocked=gone)
            return
        came = change.old_chat_member.status in (ChatMemberStatus.BANNED, ChatMemberStatus.LEFT)
        if came and not gone and change.chat.type != ChatType.CHANNEL:  # its subscribers cannot order there
            await self._messages.greet_group(
                change.chat.id, self._bundle.texts.guess_language(change.from_user.language_code)
            )
