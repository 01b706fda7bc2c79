"""Simulated Telegram users: they write, press buttons, pay, delete, block, and see what their chats show."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from genlock.sandbox.telegram.api_call import Upload
from genlock.sandbox.telegram.chats import CallbackQuery, Chat, Message, Notification, User
from genlock.sandbox.telegram.detection import found_entities
from genlock.sandbox.telegram.events import PATIENCE_SECONDS
from genlock.sandbox.telegram.files import Stored
from genlock.sandbox.telegram.inline import InlineQuery, ask, share
from genlock.sandbox.telegram.media import content_of
from genlock.sandbox.telegram.payments import pay
from genlock.sandbox.telegram.profile import member, member_of
from genlock.sandbox.telegram.replies import origin_of
from genlock.sandbox.telegram.stars import Payment
from genlock.sandbox.telegram.state import TelegramState
from genlock.sandbox.telegram.stickers import store_sticker

NAMES = {"photo": "photo.jpg", "video": "video.mp4", "animation": "a.gif", "audio": "audio.mp3", "voice": "voice.ogg"}


class NotInChat(AssertionError):
    """What a test expects in the chat is not there; the text shows what is there instead."""


class SimulatedUser:
    """Actions and view of one user. Without `chat` everything happens in the private chat with the bot."""

    def __init__(self, state: TelegramState, user: User) -> None:
        self._state = state
        self.user = user

    @property
    def id(self) -> int:
        return self.user.id

    # what the user sees

    @property
    def messages(self) -> list[Message]:
        """Messages in the chat with the bot now."""
        return self.messages_in(self.id)

    def messages_in(self, chat: int) -> list[Message]:
        there = self._state.chats[chat].messages.values()
        return [message for message in there if self.id not in message.hidden_from]

    @property
    def last(self) -> Message:
        return self.messages[-1]

    @property
    def notifications(self) -> list[Notification]:
        return [notification for notification in self._state.notifications if notification.user_id == self.id]

    async def sees(
        self, what: str | Callable[[Message], bool], *, chat: int | None = None, seconds: float = PATIENCE_SECONDS
    ) -> Message:
        """Wait for a message, new or edited, that contains the text or fulfils the condition; return the newest."""

        def fits(message: Message) -> bool:
            return what in message.text if isinstance(what, str) else what(message)

        def found() -> list[Message]:
            return [message for message in self.messages_in(chat or self.id) if fits(message)]

        if not await self._state.events.wait_until(lambda: bool(found()), seconds):
            there = [(message.id, message.kind, message.text) for message in self.messages_in(chat or self.id)]
            raise NotInChat(f"{self.user.name} sees {there}")
        return found()[-1]

    # actions

    async def start(self, payload: str = "") -> Message:
        return await self.say(f"/start {payload}".strip())

    async def say(
        self,
        text: str,
        *,
        chat: int | None = None,
        thread: int | None = None,
        reply_to: Message | int | None = None,
        entities: list[dict[str, Any]] | None = None,
    ) -> Message:
        entities = entities or found_entities(text)
        content = {"text": text} | ({"entities": entities} if entities else {})
        return self._write(content, chat, reply_to=reply_to, thread=thread)

    async def send_photo(self, content: bytes, **more: Any) -> Message:
        return await self.send("photo", content, **more)

    async def send_video(self, content: bytes, **more: Any) -> Message:
        return await self.send("video", content, **more)

    async def send_animation(self, content: bytes, **more: Any) -> Message:
        return await self.send("animation", content, **more)

    async def send_audio(self, content: bytes, **more: Any) -> Message:
        return await self.send("audio", content, **more)

    async def send_voice(self, content: bytes, **more: Any) -> Message:
        return await self.send("voice", content, **more)

    async def send_document(self, content: bytes, **more: Any) -> Message:
        return await self.send("document", content, **more)

    async def send_sticker(
        self, emoji: str, *, chat: int | None = None, reply_to: Message | int | None = None
    ) -> Message:
        """Send the painted sticker of this emoji."""
        stored = await store_sticker(self._state.files, emoji)
        return self._write({"sticker": stored.media_object}, chat, reply_to=reply_to)

    async def send_recording(
        self, recording: bytes | None, *, chat: int | None = None, reply_to: Message | int | None = None
    ) -> Message:
        """Send what a microphone recorded as a voice message; without a recording, the sample voice."""
        from genlock.sandbox.telegram.voice import as_voice, sample_voice  # noqa: PLC0415 - the codecs are an optional extra

        spoken = self.user.language or ""
        make = partial(sample_voice, spoken) if recording is None else partial(as_voice, recording, spoken)
        return await self.send("voice", await asyncio.to_thread(make), chat=chat, reply_to=reply_to)

    async def send(
        self,
        kind: str,
        content: bytes,
        *,
        name: str | None = None,
        caption: str = "",
        chat: int | None = None,
        reply_to: Message | int | None = None,
    ) -> Message:
        """Send a file as this kind of message. Raises ApiError if Telegram would refuse it."""
        return (await self.send_all([(kind, content, name)], caption=caption, chat=chat, reply_to=reply_to))[0]

    async def send_album(
        self, photos: Sequence[bytes], *, caption: str = "", chat: int | None = None, kind: str = "photo"
    ) -> list[Message]:
        return await self.send_all([(kind, content, None) for content in photos], caption=caption, chat=chat)

    async def send_all(
        self,
        files: Sequence[tuple[str, bytes, str | None]],
        *,
        caption: str = "",
        chat: int | None = None,
        reply_to: Message | int | None = None,
    ) -> list[Message]:
        """Send files given as kind, content and name. Several are one album, sent completely or not at all."""
        stored = [await self._stored(*file) for file in files]
        album = str(self._state.rng.randrange(10**16, 10**17)) if len(files) > 1 else None
        captions = [caption, *[""] * len(files)]
        return [
            self._write(content_of(file) | ({"caption": text} if text else {}), chat, reply_to=reply_to, album=album)
            for file, text in zip(stored, captions, strict=False)
        ]

    async def _stored(self, kind: str, content: bytes, name: str | None) -> Stored:
        upload = Upload(name=name or NAMES.get(kind, "file.bin"), type="application/octet-stream", content=content)
        return await self._state.media.store(kind, upload, {"disable_content_type_detection": True})

    async def press(self, message: Message | int, button: str, *, chat: int | None = None) -> CallbackQuery | str:
        """Press the button with this callback data or text. A URL button returns its URL."""
        pressed = self._find(message, chat)
        found = [key for key in pressed.buttons if key.get("callback_data") == button]
        found = found or [key for key in pressed.buttons if key["text"] == button]
        if not found:
            raise NotInChat(f"{button!r} is not among {[key['text'] for key in pressed.buttons]}")
        if "url" in found[0]:
            return str(found[0]["url"])
        if "callback_data" not in found[0]:
            await self.say(found[0]["text"], chat=chat)
            return str(found[0]["text"])
        return self._press(pressed, str(found[0]["callback_data"]))

    def _press(self, message: Message, data: str) -> CallbackQuery:
        state = self._state
        press = CallbackQuery(id=str(state.rng.randrange(10**17, 10**18)), user_id=self.id, at=state.clock())
        state.callback_queries[press.id] = press
        query = {
            "id": press.id,
            "from": self.user.as_json(),
            "message": state.show(message),
            "chat_instance": str(abs(message.chat) * 7919),
            "data": data,
        }
        state.updates.add("callback_query", query, f"user {self.id}")
        return press

    async def inline(self, text: str, *, chat: int | None = None, seconds: float = PATIENCE_SECONDS) -> InlineQuery:
        """Type the bot's name and a text, and wait for what it offers. Raises NotInChat without an answer."""
        query = self.type_inline(text, chat=chat)
        if not await self._state.events.wait_until(lambda: query.answered, seconds):
            raise NotInChat(f"the bot does not answer the query {text!r}")
        return query

    def type_inline(self, text: str, *, chat: int | None = None) -> InlineQuery:
        """Type the bot's name and a text, without waiting for the answer."""
        return ask(self._state, self.user, text, chat or self.id)

    async def share(self, query: InlineQuery, result_id: str, *, chat: int | None = None) -> Message:
        """Choose a result of a query: it is sent to the chat in this user's name."""
        message = share(self._state, self.user, query, result_id, chat or self.id)
        if self._bot_receives(self._state.chats[message.chat], message):
            self._state.add_update(message)
        return message

    async def pay(self, invoice: Message | int | str, *, chat: int | None = None) -> Payment:
        """Pay the invoice in a message or behind a link."""
        what = invoice if isinstance(invoice, str) else self._find(invoice, chat)
        return await pay(self._state, self.user, what)

    async def react(self, message: Message | int, emoji: str | None, *, chat: int | None = None) -> None:
        """Set or remove a reaction. The bot gets an update only if `allowed_updates` names it."""
        state, found = self._state, self._find(message, chat)
        old, new = found.reactions.get(self.id), emoji
        found.reactions = {who: what for who, what in found.reactions.items() if who != self.id}
        found.reactions |= {self.id: new} if new else {}
        change = {"chat": state.show_chat(state.chats[found.chat]), "message_id": found.id, "date": state.now()}
        change |= {"user": self.user.as_json(), "old_reaction": _reaction(old), "new_reaction": _reaction(new)}
        state.events.add("reaction", person=self.id, chat=found.chat, message_id=found.id, reaction=_reaction(new))
        state.updates.add("message_reaction", change, f"chat {found.chat}")

    async def edit(self, message: Message | int, text: str, *, chat: int | None = None) -> Message:
        """Change the text or the caption of an own message. The same text again changes nothing."""
        edited = self._find(message, chat)
        if edited.sender != self.id or edited.forwarded is not None or edited.kind in {"service", "sticker"}:
            raise NotInChat("only an own message with a text or a caption can be edited")
        name, entities = ("text", "entities") if edited.kind == "text" else ("caption", "caption_entities")
        if not text and name == "text":
            raise ValueError("the text is empty")
        content = {key: value for key, value in edited.content.items() if key not in {name, entities}}
        content |= {name: text} if text else {}
        content |= {entities: found} if (found := found_entities(text)) else {}
        if content != edited.content:
            self._state.change(edited, content, None)
            if self._bot_receives(self._state.chats[edited.chat], edited):
                self._state.add_update(edited, edited=True)
        return edited

    async def forward(
        self, messages: Sequence[Message | int], *, to: int | None = None, chat: int | None = None
    ) -> list[Message]:
        """Forward messages that this user sees to another chat. Those of one album are an album again."""
        found = [self._find(message, chat) for message in messages]
        if any(message.kind == "service" or self.id in message.hidden_from for message in found):
            raise NotInChat("message to forward not found")
        if any(message.protected for message in found):
            raise ValueError("message has protected content and can't be forwarded")
        albums = {message.album: str(self._state.rng.randrange(10**16, 10**17)) for message in found if message.album}
        together = albums if len(found) > 1 else {}
        return [
            self._write(
                dict(message.content),
                to,
                reply_to=None,
                forwarded=origin_of(self._state, message),
                album=together.get(message.album or ""),
            )
            for message in found
        ]

    async def delete(self, message: Message | int, *, for_both: bool = True, chat: int | None = None) -> None:
        """Delete a message for both sides, or only for this user, which the bot cannot notice."""
        gone = self._find(message, chat)
        if for_both:
            self._state.remove(gone)
        else:
            self._hide([gone])

    async def clear(self, *, chat: int | None = None, for_both: bool = False) -> None:
        """Delete all messages of a chat."""
        there = self.messages_in(chat or self.id)
        if for_both:
            for message in there:
                self._state.remove(message)
        else:
            self._hide(there)

    def _hide(self, messages: list[Message]) -> None:
        for message in messages:
            message.hidden_from.add(self.id)
            self._state.events.add("hide", person=self.id, chat=message.chat, message_id=message.id)

    async def block(self) -> None:
        self._set_blocked(blocked=True)

    async def unblock(self) -> None:
        self._set_blocked(blocked=False)

    def _set_blocked(self, *, blocked: bool) -> None:
        if self.user.blocked == blocked:
            return
        self.user.blocked = blocked
        state, now = self._state, self._state.now()
        statuses = ("member", "kicked") if blocked else ("kicked", "member")
        change = {"chat": state.show_chat(state.chats[self.id]), "from": self.user.as_json(), "date": now}
        change["old_chat_member"], change["new_chat_member"] = (
            member(state, state.bot_id, status) for status in statuses
        )
        state.events.add("block", person=self.id, blocked=blocked)
        state.updates.add("my_chat_member", change, f"chat {self.id}")

    async def deactivate(self) -> None:
        """Delete the user's Telegram account."""
        self.user.deactivated = True
        self._state.events.add("person", person=self.user.as_json(), deactivated=True)

    async def set_language(self, language: str | None) -> None:
        self.user.language = language
        self._state.events.add("person", person=self.user.as_json())

    def _find(self, message: Message | int, chat: int | None) -> Message:
        if isinstance(message, Message):
            return message
        return self._state.chats[chat or self.id].messages[message]

    def _write(
        self, content: dict[str, Any], chat: int | None, *, reply_to: Message | int | None, **more: Any
    ) -> Message:
        state = self._state
        place = state.chats[chat or self.id]
        if place.type == "channel" and place.creator != self.id:
            raise NotInChat("only its owner writes in a channel")
        status = member_of(state, place, self.id)
        if status["status"] == "kicked" or not status.get("can_send_messages", True):
            raise NotInChat(f"{self.user.name} may not write there")
        if place.private:
            self.user.started = True
            self._set_blocked(blocked=False)
        quoted = reply_to.id if isinstance(reply_to, Message) else reply_to
        message = state.post(place, self.id, content, silent=place.private, reply_to=quoted, **more)
        if self._bot_receives(place, message):
            self._state.add_update(message)
        return message

    def _bot_receives(self, chat: Chat, message: Message) -> bool:
        """In groups a bot that is not an administrator gets only commands, replies to it and mentions of it."""
        if chat.private or chat.bot_status == "administrator":
            return True
        quoted = chat.messages.get(message.reply_to or 0)
        to_bot = quoted is not None and quoted.sender == self._state.bot_id
        named = f"@{self._state.bot['username']}" in message.text
        return chat.bot_status == "member" and (message.text.startswith("/") or to_bot or named)


def _reaction(emoji: str | None) -> list[dict[str, str]]:
    return [{"type": "emoji", "emoji": emoji}] if emoji else []
