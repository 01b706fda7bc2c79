"""`genlock doctor --live`: edit messages in a real chat, and record what Telegram really answers.

Simulators repeat what is documented and what was seen. This shows what Telegram does today: which message may become
which, what a repeated edit is answered, and how refusals are worded.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from telegram import InlineKeyboardButton, InlineKeyboardMarkup, Message
from telegram.error import ChatMigrated, TelegramError

from genlock.channels.telegram.caller import Caller, Priority
from genlock.channels.telegram.errors import BotFrozen, MessageNotModified, RateLimited, TokenRefused, classify_error
from genlock.doctor.check_failed import CheckFailed
from genlock.doctor.live_files import KINDS, by_reference, make_file, upload
from genlock.doctor.telegram_answers import why_no_text
from genlock.domain.errors import ChannelBusy, ChannelError, ChannelOutcomeUnknown, PlaceholderGone

#: a picture that Telegram can fetch
PICTURE_URL = "https://telegram.org/img/t_logo.png"
ABSENT_URL = "https://genlock.invalid/absent.png"
NOT_TESTED = (
    "edits after the user has blocked the bot (only the user can block it)",
    "edits of messages older than 48 hours",
    "edits whose answer is lost on the way",
)
#: about how many calls a trial makes, so that the operator knows how long it takes
CALLS = 90
NOT_MODIFIED, REFUSED, NO_ANSWER, NOT_MADE = "not modified", "refused", "no answer", "not made"
DELETED = "deleted"
FURTHER = "all further attempts"
#: how often a call is repeated after Telegram asked to wait, and for how long at most
BUSY_TRIES = 3
BUSY_SECONDS_MAX = 300.0
_SHOWN = ("animation", "photo", "video", "audio", "voice", "document", "text")
_NEXT = dict(zip(KINDS, (*KINDS[1:], KINDS[0]), strict=True))
CAPTION_TOO_LONG, TEXT_TOO_LONG = 1025, 4097


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One attempt: what was tried, what genlock expects, and what Telegram answered."""

    attempt: str
    expected: str
    #: the kind of message that Telegram shows now, or `deleted`, `not modified`, `refused`, `no answer`, `not made`
    outcome: str
    #: the text of a refusal, as Telegram wrote it
    answer: str = ""
    #: the error that genlock makes of it
    read_as: str = ""

    @property
    def as_expected(self) -> bool:
        return self.outcome == self.expected


class LiveTrial:
    """Tries every edit in one chat. The messages are deleted at the end unless `keep` is given."""

    def __init__(
        self,
        caller: Caller,
        chat: int,
        mask: Callable[[str], str],
        *,
        keep: bool = False,
        picture_url: str = PICTURE_URL,
    ) -> None:
        self._caller = caller
        self._bot = caller.bot
        self._chat = chat
        self._mask = mask
        self._keep = keep
        self._picture_url = picture_url
        #: what each message shows by Telegram's last answer about it; None after a lost answer
        self._shown: dict[int, str | None] = {}
        #: sends whose answer was lost: they may have left a message
        self._lost_sends = 0
        self._files: dict[str, str] = {}
        self.observations: list[Observation] = []

    async def run(self) -> list[Observation]:
        """Run all attempts. Raises CheckFailed if the bot cannot write to the chat, unless something was observed."""
        try:
            await self._run()
        except CheckFailed as failed:
            if not self.observations:
                raise
            self._record(FURTHER, "made", NOT_MADE, answer=str(failed))
        except asyncio.CancelledError:
            self._record(FURTHER, "made", NOT_MADE, answer="the trial was interrupted")
            raise
        finally:
            if not self._keep:
                await self._delete_all()
        return self.observations

    async def _run(self) -> None:
        first = await self._text("first")
        shown = {kind: await self._show(kind) for kind in KINDS}
        await self._repeats(first, shown)
        await self._transitions(shown)
        await self._sources()
        await self._refusals(first)
        await self._deleted()

    # the attempts

    async def _show(self, kind: str) -> int:
        message = await self._text(kind)
        await self._edit_media(f"text → {kind}, upload", message, upload(kind), kind)
        return message

    async def _repeats(self, text: int, messages: dict[str, int]) -> None:
        await self._edit_text("the same text again", text, _words("first"), NOT_MODIFIED)
        for kind, message in messages.items():
            file = self._files.get(kind)
            if file is not None:
                again = by_reference(kind, file)
                await self._edit_media(
                    f"{kind} → the same {kind}, by file id", message, again, NOT_MODIFIED, shown=kind
                )
            await self._edit_media(f"{kind} → the same {kind}, upload", message, upload(kind), kind, shown=kind)
            await self._edit_caption(
                f"{kind}: the same caption again", message, f"genlock doctor: {kind}", NOT_MODIFIED, shown=kind
            )

    async def _transitions(self, messages: dict[str, int]) -> None:
        for kind, message in messages.items():
            await self._edit_text(f"{kind} → text", message, "genlock doctor: text again", REFUSED, shown=kind)
        for kind, message in messages.items():
            other = _NEXT[kind]
            await self._edit_media(f"{kind} → {other}, upload", message, upload(other), other, shown=kind)
        text = await self._text("caption")
        await self._edit_caption("text: a caption", text, "genlock doctor", REFUSED, shown="text")
        voice = await self._voice()
        if voice is not None:
            await self._edit_media("voice → photo, upload", voice, upload("photo"), REFUSED, shown="voice")

    async def _sources(self) -> None:
        """Show a file by its id, by its URL, and by references that do not work."""
        for kind, file in self._files.items():
            message = await self._text(f"{kind} by file id")
            await self._edit_media(f"text → {kind}, by file id", message, by_reference(kind, file), kind)
        message = await self._text("by URL")
        fetched = by_reference("photo", self._picture_url)
        await self._edit_media("text → photo, by URL", message, fetched, "photo")
        await self._edit_media("photo → the same photo, by URL", message, fetched, NOT_MODIFIED, shown="photo")
        message = await self._text("references that do not work")
        await self._edit_media(
            "text → photo, by a URL without a host", message, by_reference("photo", ABSENT_URL), REFUSED
        )
        await self._edit_media(
            "text → photo, by an invalid file id", message, by_reference("photo", "AgADinvalid"), REFUSED
        )
        if "video" in self._files:
            wrong = by_reference("photo", self._files["video"])
            await self._edit_media("text → photo, by the file id of a video", message, wrong, REFUSED)

    async def _refusals(self, text: int) -> None:
        message = await self._text("limits")
        await self._edit_text(f"text of {TEXT_TOO_LONG} characters", message, "x" * TEXT_TOO_LONG, REFUSED)
        await self._edit_media("text → photo, upload, for its caption", message, upload("photo"), "photo")
        long = "x" * CAPTION_TOO_LONG
        await self._edit_caption(f"caption of {CAPTION_TOO_LONG} characters", message, long, REFUSED, shown="photo")
        for url in ("http://", "not a url", "https://localhost/x.png"):
            markup = InlineKeyboardMarkup([[InlineKeyboardButton("open", url=url)]])
            words = f"genlock doctor: a button to {url}"
            await self._edit_text(f"button with the URL {url!r}", text, words, REFUSED, reply_markup=markup)
        await self._edit_text("text with broken HTML", text, "<b>genlock doctor", REFUSED, parse_mode="HTML")

    async def _deleted(self) -> None:
        message = await self._text("deleted")
        await self._delete("delete a message", message, DELETED, shown="text")
        await self._edit_text("deleted message: a text", message, "genlock doctor", REFUSED, shown=DELETED)
        await self._edit_media("deleted message: a photo, upload", message, upload("photo"), REFUSED, shown=DELETED)
        await self._delete("delete it again", message, REFUSED, shown=DELETED)

    # calls

    async def _text(self, label: str) -> int:
        """Send a text to edit. Raises CheckFailed: without it nothing can be tried."""
        try:
            return await self._send(self._bot.send_message, text=_words(label), disable_notification=True)
        except ChannelError as error:
            raise CheckFailed(why_no_text(error, self._chat, self._answer(error))) from None

    async def _voice(self) -> int | None:
        content, _ = make_file("voice")
        try:
            message = await self._send(self._bot.send_voice, voice=content, disable_notification=True)
        except ChannelError as error:
            self._lost_sends += isinstance(error, ChannelOutcomeUnknown)
            self._refused("send a voice message", "voice", error)
            self._check_that_calls_are_possible(error)
            return None
        self._record("send a voice message", "voice", self._shown[message] or "")
        return message

    async def _send(self, method: Callable[..., Awaitable[Message]], **arguments: Any) -> int:
        """Send a message and return its number, which the trial also learns if it is interrupted meanwhile."""

        async def send(**arguments: Any) -> Message:
            sending = asyncio.ensure_future(method(**arguments))
            try:
                return self._noted(await asyncio.shield(sending))
            except asyncio.CancelledError:
                try:
                    self._noted(await sending)
                except Exception as error:  # noqa: BLE001 - whatever failed, the trial ends here
                    self._lost_sends += isinstance(classify_error(error), ChannelOutcomeUnknown)
                raise

        return int((await self._call(send, **arguments)).message_id)

    def _noted(self, sent: Message) -> Message:
        self._shown[sent.message_id] = kind_shown(sent)
        return sent

    async def _edit_text(
        self, attempt: str, message: int, text: str, expected: str, *, shown: str = "text", **options: Any
    ) -> None:
        await self._attempt(
            attempt, expected, self._bot.edit_message_text, message=message, shown=shown, text=text, **options
        )

    async def _edit_caption(self, attempt: str, message: int, caption: str, expected: str, *, shown: str) -> None:
        await self._attempt(
            attempt, expected, self._bot.edit_message_caption, message=message, shown=shown, caption=caption
        )

    async def _edit_media(self, attempt: str, message: int, media: Any, expected: str, *, shown: str = "text") -> None:
        answer = await self._attempt(
            attempt, expected, self._bot.edit_message_media, message=message, shown=shown, media=media
        )
        if answer is not None and attempt.endswith("upload"):
            self._files.setdefault(kind_shown(answer), _file_id(answer))

    async def _delete(self, attempt: str, message: int, expected: str, *, shown: str) -> None:
        await self._attempt(attempt, expected, self._bot.delete_message, message=message, shown=shown)

    async def _attempt(
        self,
        attempt: str,
        expected: str,
        method: Callable[..., Awaitable[Any]],
        *,
        message: int,
        shown: str,
        **arguments: Any,
    ) -> Message | None:
        """Make one call with a message that shows what the attempt begins from, and record its outcome.

        Returns the message if there is one. An earlier attempt may have failed, so that the message shows something
        else: then the call would be another one than the table says, and is not made.
        """
        if self._shown[message] != shown:
            why = f"an earlier attempt left the message as: {self._shown[message] or 'not known'}"
            self._record(attempt, expected, NOT_MADE, answer=why)
            return None
        try:
            answer = await self._call(method, message_id=message, **arguments)
        except ChannelError as error:
            if isinstance(error, ChannelOutcomeUnknown):
                self._shown[message] = None
            self._refused(attempt, expected, error)
            self._check_that_calls_are_possible(error)
            return None
        self._shown[message] = kind_shown(answer) if isinstance(answer, Message) else DELETED
        self._record(attempt, expected, self._shown[message] or "")
        return answer if isinstance(answer, Message) else None

    async def _call(self, method: Callable[..., Awaitable[Any]], **arguments: Any) -> Any:
        """Call when the rate limits permit it; wait if Telegram asks for it."""
        for attempt in range(1, BUSY_TRIES + 1):
            try:
                return await self._caller.call(method, chat=self._chat, priority=Priority.RESULT, **arguments)
            except ChannelBusy as busy:
                if attempt == BUSY_TRIES or _ends_trial(busy):
                    raise
                await asyncio.sleep(busy.after)
        raise AssertionError

    def _record(self, attempt: str, expected: str, outcome: str, *, answer: str = "", read_as: str = "") -> None:
        self.observations.append(
            Observation(attempt=attempt, expected=expected, outcome=outcome, answer=answer, read_as=read_as)
        )

    def _refused(self, attempt: str, expected: str, error: ChannelError) -> None:
        self._record(attempt, expected, _outcome(error), answer=self._answer(error), read_as=type(error).__name__)

    def _check_that_calls_are_possible(self, error: ChannelError) -> None:
        if _ends_trial(error):
            raise CheckFailed(why_no_text(error, self._chat, self._answer(error))) from None

    def _answer(self, error: ChannelError) -> str:
        """Return the words of Telegram, without secrets; the library replaces those of two answers by its own."""
        cause = error.__cause__
        if isinstance(error, RateLimited):
            return f"Too Many Requests: retry after {error.after:.0f}"
        if isinstance(cause, ChatMigrated):
            return "group chat was upgraded to a supergroup chat"
        return self._mask(cause.message if isinstance(cause, TelegramError) else str(error))

    async def _delete_all(self) -> None:
        left = [message for message, shown in self._shown.items() if shown != DELETED]
        for place, message in enumerate(left):
            try:
                await self._remove(message)
            except ChannelError as error:
                if _ends_trial(error):
                    self._refused(f"remove the last {len(left) - place} messages", DELETED, error)
                    break
                self._refused(f"remove message {message}", DELETED, error)
            else:
                self._shown[message] = DELETED
        if self._lost_sends:
            why = "the answer to its send was lost, so its number is not known: delete it by hand"
            self._record("remove a message that may be in the chat", DELETED, NOT_MADE, answer=why)

    async def _remove(self, message: int) -> None:
        """Delete a message, again after a lost answer: then it may be gone already."""
        for attempt in range(1, BUSY_TRIES + 1):
            try:
                await self._call(self._bot.delete_message, message_id=message)
            except ChannelOutcomeUnknown:
                if attempt == BUSY_TRIES:
                    raise
            except PlaceholderGone:
                if attempt == 1 and self._shown[message] is not None:
                    raise
                return
            else:
                return


def _ends_trial(error: ChannelError) -> bool:
    """Whether all further calls would be refused like this one, each after a long wait."""
    if isinstance(error, TokenRefused | BotFrozen):
        return True
    return isinstance(error, ChannelBusy) and error.after > BUSY_SECONDS_MAX


def kind_shown(message: Message) -> str:
    """Return what the message is. An animation also has the fields of a document."""
    return next((kind for kind in _SHOWN if getattr(message, kind)), "another kind")


def _file_id(message: Message) -> str:
    attachment: Any = message.effective_attachment
    return str((attachment[-1] if isinstance(attachment, list | tuple) else attachment).file_id)


def _outcome(error: ChannelError) -> str:
    if isinstance(error, MessageNotModified):
        return NOT_MODIFIED
    return NO_ANSWER if isinstance(error, ChannelBusy | ChannelOutcomeUnknown) else REFUSED


def _words(label: str) -> str:
    return f"genlock doctor: {label}"
