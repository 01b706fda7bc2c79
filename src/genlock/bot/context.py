"""One update of one person: who, where, by what, and the draft they stand at."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from telegram import CallbackQuery, Message, Update, User

from genlock.bot.order.draft import Draft, Part
from genlock.channels.telegram.address import Address
from genlock.domain.profile import Profile
from genlock.i18n.translator import Translator, translator

#: asks for what the same person did next, as far as it has come by now
Behind = Callable[[], Awaitable[Update | None]]


async def nothing() -> Update | None:
    """Nothing is known to come."""
    return None


@dataclass(kw_only=True, slots=True)
class UpdateContext:
    """What a handler works with. The draft and the language may change while it works."""

    update: int
    #: whether this is the first try: what is shown before an order may only be shown then
    first: bool
    profile: Profile
    chat: int
    thread: int | None
    group: bool
    draft: Draft
    #: what the person wrote
    message: int | None = None
    behind: Behind = nothing
    #: what the person wrote, if it may go on in their next message
    part: Part | None = None
    #: the message whose button they pressed
    pressed: int | None = None
    #: whether that message answers another one: it says how an order ended, and stays
    notice: bool = False
    #: the press that waits for an answer
    query: str | None = None

    @property
    def person(self) -> int:
        return self.profile.account_id

    @property
    def translator(self) -> Translator:
        return translator(self.profile.language)

    @property
    def address(self) -> Address:
        return Address(chat=self.chat, thread=self.thread, language=self.translator.language)

    @property
    def repeated(self) -> bool:
        """Whether this update has changed the draft already, before a crash."""
        return self.draft.update == self.update


def who(update: Update) -> User | None:
    """Whose update it is."""
    user = update.effective_user
    return None if user is None or user.is_bot else user


def thread_of(message: Message) -> int | None:
    return message.message_thread_id if message.is_topic_message else None


def shown_message(query: CallbackQuery) -> Message | None:
    """The message with the pressed button, unless it is too old for Telegram to show."""
    return query.message if isinstance(query.message, Message) else None
