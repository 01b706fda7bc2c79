"""The context of one update: its user, its chat, what was sent or pressed, and the user's draft."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from telegram import CallbackQuery, Message, Update, User

from genlock.bot.buttons import ButtonData
from genlock.bot.order.draft import Draft, PartialText
from genlock.channels.telegram.address import Address
from genlock.domain.profile import Profile
from genlock.i18n.translator import Texts, Translator, package_texts

#: the name of the Telegram channel in accounts and jobs
CHANNEL = "telegram"
#: returns the next update in the user's update queue, or None
NextUpdate = Callable[[], Awaitable[Update | None]]


async def no_next_update() -> Update | None:
    """No further update is known."""
    return None


@dataclass(kw_only=True, slots=True)
class UpdateContext:
    """What a handler works with. Handlers replace the draft and the profile when they change them."""

    update: int
    #: whether this is the first attempt at this update; what is shown before an order is only shown then
    first: bool
    profile: Profile
    chat: int
    thread: int | None
    group: bool
    draft: Draft
    #: place of the update in the user's update queue; 0 if it is in none
    place: int = 0
    texts: Texts = field(default_factory=package_texts)
    #: id of the message that the user sent
    message: int | None = None
    next_update: NextUpdate = no_next_update
    #: the text of the message, if it may continue in the next one
    partial_text: PartialText | None = None
    #: id of the message whose button was pressed
    button_message: int | None = None
    #: the message that it answers, if Telegram includes it
    button_reply: Message | None = None
    #: whether that message is the notice of a finished order or a page to read, which are never edited
    on_notice: bool = False
    #: id of the callback query that still needs an answer
    query_id: str | None = None

    @property
    def account_id(self) -> int:
        return self.profile.account_id

    @property
    def translator(self) -> Translator:
        return self.texts.translator(self.profile.language)

    @property
    def address(self) -> Address:
        return Address(chat=self.chat, thread=self.thread, language=self.translator.language)

    def order_id(self, data: ButtonData) -> int:
        """Return the order that a button is about; -1 if it names none. Buttons of earlier versions have the id."""
        job_id = self.texts.numbers.order_id(data.word())
        return -1 if job_id is None else job_id

    @property
    def overtaken(self) -> bool:
        """Whether a later update of the user has changed the draft: another instance may have handled this one."""
        return self.draft.place > self.place > 0

    @property
    def repeated(self) -> bool:
        """Whether an attempt that crashed has already saved the draft for this update."""
        return self.draft.update == self.update


def sender_of(update: Update) -> User | None:
    """Return the user who caused the update, unless it is a bot."""
    user = update.effective_user
    return None if user is None or user.is_bot else user


def is_own(message: Message) -> bool:
    """Whether the sender wrote the message: not forwarded, not made by another bot, not in the name of a chat."""
    forwarded = message.forward_origin is not None or any(key.startswith("forward_") for key in message.api_kwargs)
    by_bot = message.via_bot is not None or message.sender_business_bot is not None
    return not forwarded and not by_bot and message.sender_chat is None


def thread_of(message: Message) -> int | None:
    return message.message_thread_id if message.is_topic_message else None


def button_message_of(query: CallbackQuery) -> Message | None:
    """Return the message with the pressed button; None if it is too old for Telegram to include."""
    return query.message if isinstance(query.message, Message) else None


#: what a button does
Handler = Callable[[UpdateContext, ButtonData], Awaitable[None]]
