"""State of the Telegram simulator: users, chats, messages, and the rules about where the bot may write."""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from genlock.sandbox.telegram.api_call import CallArguments, bad_request, forbidden
from genlock.sandbox.telegram.chats import CallbackQuery, Chat, Message, Notification, User
from genlock.sandbox.telegram.events import Events
from genlock.sandbox.telegram.markup import Markup
from genlock.sandbox.telegram.media import Media
from genlock.sandbox.telegram.mentions import with_mentions
from genlock.sandbox.telegram.stars import StarsLedger
from genlock.sandbox.telegram.updates import Updates

if TYPE_CHECKING:
    from genlock.sandbox.telegram.inline import InlineQuery

FIRST_USER_ID = 1_000_001
FIRST_GROUP_ID = -4_000_001
FIRST_SUPERGROUP_ID = -1_002_000_000_001


class TelegramState:
    def __init__(self, *, token: str, media: Media, rng: Random, speed: float, clock: Callable[[], float]) -> None:
        self.token = token
        self.media = media
        self.files = media.files
        self.rng = rng
        self.speed = speed
        self.clock = clock
        self.events = Events()
        self.updates = Updates(self.events, rng, speed, clock)
        self.bot: dict[str, Any] = {
            "id": int(token.partition(":")[0]),
            "is_bot": True,
            "first_name": "Sandbox",
            "username": "sandbox_bot",
        }
        self.profile: dict[str, Any] = {"commands": {}}
        self.users: dict[int, User] = {}
        self.chats: dict[int, Chat] = {}
        self.notifications: list[Notification] = []
        self.callback_queries: dict[str, CallbackQuery] = {}
        self.inline_queries: dict[str, InlineQuery] = {}
        #: the Bot API's StickerSet by its name
        self.sticker_sets: dict[str, dict[str, Any]] = {}
        #: by chat and message: the newest edit whose media is being uploaded
        self.uploading: dict[tuple[int, int], object] = {}
        #: additional duration of media edits, to provoke races
        self.upload_seconds = 0.0
        #: whether the bot may edit its messages in the chat of a user who blocked it; Telegram does not document it
        self.edits_pass_block = True
        self.last_id = 0
        self.stars_ledger = StarsLedger()

    @property
    def bot_id(self) -> int:
        return int(self.bot["id"])

    def now(self) -> int:
        return int(self.clock())

    def add_user(
        self,
        name: str,
        *,
        language: str | None,
        stars: int,
        started: bool = True,
        operator: bool = False,
        last_name: str = "",
    ) -> User:
        number = FIRST_USER_ID + len(self.users)
        latin = "".join(char for char in name.lower() if char.isascii() and char.isalnum()).lstrip("0123456789")
        username = f"{latin or 'user'}_{number}"  # Telegram's have Latin letters only, and begin with one
        user = User(id=number, name=name, username=username, language=language, stars=stars)
        user.started, user.operator, user.last_name = started, operator, last_name
        self.users[number] = user
        self.chats[number] = Chat(id=number, type="private", members={number})
        self.events.add("person", person=user.as_json(), stars=stars, operator=operator)
        return user

    def add_group(self, title: str, members: set[int], *, kind: str, username: str = "") -> Chat:
        """Add a group, supergroup or channel. A bot can only be an administrator of a channel."""
        if kind not in {"group", "supergroup", "channel"}:
            raise ValueError(f"unknown kind of chat: {kind}")
        chat = Chat(id=0, type=kind, title=title, username=username, members=set(members))
        chat.bot_status = "administrator" if kind == "channel" else "member"
        others = [other for other in self.chats.values() if other.id < 0]
        first = FIRST_SUPERGROUP_ID if chat.counts_messages else FIRST_GROUP_ID
        chat.id = first - sum(1 for other in others if other.counts_messages == chat.counts_messages)
        self.chats[chat.id] = chat
        self.events.add("chat", chat=self.show_chat(chat), members=sorted(members))
        return chat

    # permissions

    def chat(self, arguments: CallArguments, name: str = "chat_id") -> Chat:
        if not arguments.has(name):
            raise bad_request("chat_id is empty")
        asked = arguments.text(name)
        chat = self._public(asked[1:]) if asked.startswith("@") else self.chats.get(arguments.number(name))
        if chat is None:
            raise bad_request("chat not found")
        return chat

    def _public(self, username: str) -> Chat | None:
        found = (chat for chat in self.chats.values() if chat.username.lower() == username.lower() != "")
        return next(found, None)

    def readable(self, chat: Chat) -> Chat:
        """Raise unless the bot may read the chat: one without a public name only while it is a member."""
        if not chat.counts_messages or (chat.username and chat.bot_status == "left"):
            return chat
        return self._joined(chat)

    def members_readable(self, chat: Chat) -> Chat:
        """Raise unless the bot may know the members of the chat."""
        return self.deletable(chat) if chat.type == "group" else self.readable(chat)

    def reachable(self, chat: Chat) -> Chat:
        """Raise unless the bot may edit its messages in the chat."""
        user = self.users[chat.id] if chat.private else None
        if user is not None and user.deactivated:
            raise forbidden("user is deactivated")
        if user is not None and user.blocked and not self.edits_pass_block:
            raise forbidden("bot was blocked by the user")
        return self._joined(chat)

    def _joined(self, chat: Chat) -> Chat:
        if chat.bot_status == "kicked":
            raise forbidden(f"bot was kicked from the {chat.type} chat")
        if chat.bot_status == "left":
            raise forbidden(f"bot is not a member of the {chat.type} chat")
        return chat

    def writable(self, chat: Chat) -> Chat:
        """Raise unless the bot may send new messages to the chat."""
        self.deletable(chat)
        if chat.private and not self.users[chat.id].started:
            raise forbidden("bot can't initiate conversation with a user")
        if chat.private and self.users[chat.id].blocked:
            raise forbidden("bot was blocked by the user")
        if chat.type == "channel" and chat.bot_status != "administrator":
            raise bad_request("need administrator rights in the channel chat")
        return chat

    def deletable(self, chat: Chat) -> Chat:
        """Raise unless the bot may delete messages in the chat."""
        self.reachable(chat)
        if chat.migrated_to is not None:
            raise bad_request("group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.migrated_to)
        return chat

    # messages

    def post(self, chat: Chat, sender: int, content: dict[str, Any], *, silent: bool = False, **more: Any) -> Message:
        """Add a message to a chat and notify its members."""
        message = Message(id=self._next_id(chat), chat=chat.id, sender=sender, date=self.now(), content=content, **more)
        chat.messages[message.id] = message
        self.events.add("message", **self.view(message))
        if not silent:
            self._notify(chat, message)
        return message

    def _next_id(self, chat: Chat) -> int:
        if chat.counts_messages:
            chat.last_id += 1
            return chat.last_id
        self.last_id += 1
        return self.last_id

    def _notify(self, chat: Chat, message: Message) -> None:
        for user_id in sorted(chat.members - {message.sender}):
            user = self.users[user_id]
            if user.deactivated or (chat.private and user.blocked):
                continue
            text = message.text or message.kind
            notification = Notification(user_id=user_id, chat=chat.id, message=message.id, text=text, at=self.clock())
            self.notifications.append(notification)
            self.events.add("notification", person=user_id, chat=chat.id, message=message.id, text=text)

    def change(self, message: Message, content: dict[str, Any], markup: Markup | None) -> None:
        message.content, message.markup = content, markup
        message.edited = self.now()
        message.version += 1
        self.events.add("edit", **self.view(message))

    def remove(self, message: Message) -> None:
        """Delete the message for all users."""
        chat = self.chats[message.chat]
        del chat.messages[message.id]
        chat.pinned = [number for number in chat.pinned if number != message.id]
        self.uploading.pop((message.chat, message.id), None)
        self.events.add("delete", chat=message.chat, message_id=message.id)

    def view(self, message: Message) -> dict[str, Any]:
        """Return the message as the control API shows it, with more fields than the bot gets."""
        keyboard = message.markup if message.markup and "inline_keyboard" not in message.markup else None
        paid = f"{message.chat}/{message.id}" in self.stars_ledger.paid
        fields = {"chat": message.chat, "message": self._with_author(message), "shown": message.kind}
        return fields | {"keyboard": keyboard, "paid": paid, "reactions": message.reactions}

    def _with_author(self, message: Message) -> dict[str, Any]:
        """Return the message with the author of a post in a channel, which the bot is not told."""
        shown, chat = self.show(message), self.chats[message.chat]
        quoted = chat.messages.get(message.reply_to or 0)
        for post, fields in ((message, shown), (quoted, shown.get("reply_to_message"))):
            if post is not None and fields is not None and "from" not in fields:
                fields["from"] = self.show_user(post.sender) | {"first_name": chat.title}
        return shown

    # Bot API objects

    def show_user(self, number: int) -> dict[str, Any]:
        return self.users[number].as_json() if number in self.users else self.bot

    def _find_user(self, number: int) -> dict[str, Any] | None:
        return self.show_user(number) if number == self.bot_id or number in self.users else None

    def show_chat(self, chat: Chat) -> dict[str, Any]:
        if chat.private:
            return {"id": chat.id, "type": "private"} | self.users[chat.id].names
        fields = {"id": chat.id, "type": chat.type, "title": chat.title}
        fields |= {"username": chat.username} if chat.username else {}
        return fields | ({"is_forum": True} if chat.forum else {})

    def _show_sender(self, message: Message, chat: Chat) -> dict[str, Any]:
        """Return who wrote the message: in a channel the channel itself."""
        if chat.type == "channel":
            return {"sender_chat": self.show_chat(chat)}
        return {"from": self.show_user(message.sender)}

    def add_update(self, message: Message, *, edited: bool = False) -> None:
        """Tell the bot of a new or edited message."""
        kind = "channel_post" if self.chats[message.chat].type == "channel" else "message"
        self.updates.add(f"edited_{kind}" if edited else kind, self.show(message), f"chat {message.chat}")

    def show(self, message: Message, *, reply: bool = True) -> dict[str, Any]:
        chat = self.chats[message.chat]
        fields: dict[str, Any] = {
            "message_id": message.id,
            **self._show_sender(message, chat),
            "chat": self.show_chat(chat),
            "date": message.date,
            **with_mentions(message.content, self._find_user),
        }
        if message.edited is not None:
            fields["edit_date"] = message.edited
        if message.markup is not None and "inline_keyboard" in message.markup:
            fields["reply_markup"] = message.markup
        if message.thread is not None:
            fields |= {"message_thread_id": message.thread, "is_topic_message": True}
        if message.album is not None:
            fields["media_group_id"] = message.album
        if message.forwarded is not None:
            fields["forward_origin"] = message.forwarded
        fields |= {name: value for name in ("quote", "external_reply") if (value := getattr(message, name))}
        if message.protected:
            fields["has_protected_content"] = True
        quoted = chat.messages.get(message.reply_to or 0)
        if reply and quoted is not None:
            fields["reply_to_message"] = self.show(quoted, reply=False)
        return fields
