"""What the simulated Telegram remembers: people, chats, messages, and who may write where."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments, bad_request, forbidden
from genlock.sandbox.telegram.events import Events
from genlock.sandbox.telegram.markup import Markup
from genlock.sandbox.telegram.media import Media
from genlock.sandbox.telegram.stars import StarsLedger
from genlock.sandbox.telegram.updates import Updates

MEDIA = ("animation", "photo", "video", "audio", "voice", "document")
KINDS = ("text", *MEDIA, "invoice")
FIRST_USER_ID = 1_000_001
FIRST_GROUP_ID = -4_000_001
FIRST_SUPERGROUP_ID = -1_002_000_000_001


@dataclass(kw_only=True)
class User:
    id: int
    name: str
    username: str
    language: str | None
    stars: int
    started: bool = True  #: has opened the chat with the bot before
    blocked: bool = False
    deactivated: bool = False

    def as_json(self) -> dict[str, Any]:
        fields = {"id": self.id, "is_bot": False, "first_name": self.name, "username": self.username}
        return fields | ({"language_code": self.language} if self.language else {})


@dataclass(kw_only=True)
class Message:
    """One message as it is now."""

    id: int
    chat: int
    sender: int
    date: int
    #: the fields of the Bot API's Message for what it shows: text, photo, caption, entities, …
    content: dict[str, Any]
    markup: Markup | None = None
    reply_to: int | None = None
    thread: int | None = None
    album: str | None = None
    edited: int | None = None
    forwarded: dict[str, Any] | None = None
    #: who reacted how, the bot among them
    reactions: dict[int, str] = field(default_factory=dict)
    #: people who deleted it for themselves
    hidden_from: set[int] = field(default_factory=set)
    #: grows with every edit
    version: int = 0

    @property
    def kind(self) -> str:
        return next((kind for kind in KINDS if kind in self.content), "service")

    @property
    def text(self) -> str:
        """Its words: the text, or what stands under the picture."""
        return str(self.content.get("text") or self.content.get("caption") or "")

    @property
    def file_id(self) -> str | None:
        """The file that it shows, a photo in its largest size."""
        if self.kind not in MEDIA:
            return None
        media = self.content[self.kind]
        return str((media[-1] if self.kind == "photo" else media)["file_id"])

    @property
    def buttons(self) -> list[dict[str, Any]]:
        rows = (self.markup or {}).get("inline_keyboard") or (self.markup or {}).get("keyboard") or []
        return [button for row in rows for button in row]


@dataclass(kw_only=True)
class Topic:
    name: str
    closed: bool = False


@dataclass(kw_only=True)
class Chat:
    id: int
    type: str
    title: str = ""
    members: set[int] = field(default_factory=set)
    #: what the bot is here: member, administrator, left, kicked
    bot_status: str = "member"
    #: kinds that may not be sent, e.g. photo
    forbidden: set[str] = field(default_factory=set)
    migrated_to: int | None = None
    topics: dict[int, Topic] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    last_id: int = 0

    @property
    def private(self) -> bool:
        return self.type == "private"


@dataclass(frozen=True, kw_only=True)
class Notification:
    """A sound on somebody's phone: a new message makes one, an edit does not."""

    person: int
    chat: int
    message: int
    text: str
    at: float


@dataclass(kw_only=True)
class CallbackQuery:
    """A pressed button and what the person was shown for it."""

    id: str
    person: int
    at: float
    answered: bool = False
    text: str = ""
    alert: bool = False
    #: what the person's program opens
    url: str = ""


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
        #: messages whose media is on its way, with the newest edit of each
        self.uploading: dict[tuple[int, int], object] = {}
        #: how long the server's own upload takes on top, for races
        self.upload_seconds = 0.0
        self.last_id = 0
        self.stars_ledger = StarsLedger()

    @property
    def bot_id(self) -> int:
        return int(self.bot["id"])

    def now(self) -> int:
        return int(self.clock())

    def add_user(self, name: str, *, language: str | None, stars: int, started: bool = True) -> User:
        number = FIRST_USER_ID + len(self.users)
        username = f"{''.join(filter(str.isalnum, name.lower())) or 'person'}_{number}"
        user = User(id=number, name=name, username=username, language=language, stars=stars, started=started)
        self.users[number] = user
        self.chats[number] = Chat(id=number, type="private", members={number})
        self.events.add("person", person=user.as_json(), stars=stars)
        return user

    def add_group(self, title: str, members: set[int], *, kind: str) -> Chat:
        first = FIRST_GROUP_ID if kind == "group" else FIRST_SUPERGROUP_ID
        number = first - sum(1 for chat in self.chats.values() if chat.type == kind)
        chat = Chat(id=number, type=kind, title=title, members=set(members))
        self.chats[number] = chat
        self.events.add("chat", chat=self.show_chat(chat), members=sorted(members))
        return chat

    # who may write where

    def chat(self, arguments: CallArguments, name: str = "chat_id") -> Chat:
        if not arguments.has(name):
            raise bad_request("chat_id is empty")
        chat = self.chats.get(arguments.number(name))
        if chat is None:
            raise bad_request("chat not found")
        return chat

    def reachable(self, chat: Chat) -> Chat:
        """A chat where the bot may change what it wrote. Being blocked does not hinder that."""
        user = self.users[chat.id] if chat.private else None
        if user is not None and user.deactivated:
            raise forbidden("user is deactivated")
        if chat.bot_status == "kicked":
            raise forbidden(f"bot was kicked from the {chat.type} chat")
        if chat.bot_status == "left":
            raise forbidden(f"bot is not a member of the {chat.type} chat")
        return chat

    def writable(self, chat: Chat) -> Chat:
        """A chat where the bot may write something new."""
        self.reachable(chat)
        if chat.migrated_to is not None:
            raise bad_request("group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.migrated_to)
        if chat.private and not self.users[chat.id].started:
            raise forbidden("bot can't initiate conversation with a user")
        if chat.private and self.users[chat.id].blocked:
            raise forbidden("bot was blocked by the user")
        return chat

    # messages

    def post(self, chat: Chat, sender: int, content: dict[str, Any], *, silent: bool = False, **more: Any) -> Message:
        """A new message, shown to everybody in the chat."""
        message = Message(id=self._next_id(chat), chat=chat.id, sender=sender, date=self.now(), content=content, **more)
        chat.messages[message.id] = message
        self.events.add("message", **self.view(message))
        if not silent:
            self._notify(chat, message)
        return message

    def _next_id(self, chat: Chat) -> int:
        """Private chats and basic groups share a counter, a supergroup has its own."""
        if chat.type == "supergroup":
            chat.last_id += 1
            return chat.last_id
        self.last_id += 1
        return self.last_id

    def _notify(self, chat: Chat, message: Message) -> None:
        for person in sorted(chat.members - {message.sender}):
            user = self.users[person]
            if user.deactivated or (chat.private and user.blocked):
                continue
            text = message.text or message.kind
            notification = Notification(person=person, chat=chat.id, message=message.id, text=text, at=self.clock())
            self.notifications.append(notification)
            self.events.add("notification", person=person, chat=chat.id, message=message.id, text=text)

    def change(self, message: Message, content: dict[str, Any], markup: Markup | None) -> None:
        message.content, message.markup = content, markup
        message.edited = self.now()
        message.version += 1
        self.events.add("edit", **self.view(message))

    def remove(self, message: Message) -> None:
        """Gone for everybody."""
        del self.chats[message.chat].messages[message.id]
        self.uploading.pop((message.chat, message.id), None)
        self.events.add("delete", chat=message.chat, message_id=message.id)

    def view(self, message: Message) -> dict[str, Any]:
        """For whoever watches: more than the bot is told."""
        keyboard = message.markup if message.markup and "inline_keyboard" not in message.markup else None
        paid = f"{message.chat}/{message.id}" in self.stars_ledger.paid
        fields = {"chat": message.chat, "message": self.show(message), "shown": message.kind}
        return fields | {"keyboard": keyboard, "paid": paid, "reactions": message.reactions}

    # as the Bot API tells it

    def show_user(self, number: int) -> dict[str, Any]:
        return self.users[number].as_json() if number in self.users else self.bot

    def show_chat(self, chat: Chat) -> dict[str, Any]:
        if chat.private:
            user = self.users[chat.id]
            return {"id": chat.id, "type": "private", "first_name": user.name, "username": user.username}
        fields = {"id": chat.id, "type": chat.type, "title": chat.title}
        return fields | ({"is_forum": True} if chat.topics else {})

    def show(self, message: Message, *, reply: bool = True) -> dict[str, Any]:
        chat = self.chats[message.chat]
        fields: dict[str, Any] = {
            "message_id": message.id,
            "from": self.show_user(message.sender),
            "chat": self.show_chat(chat),
            "date": message.date,
            **message.content,
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
        quoted = chat.messages.get(message.reply_to or 0)
        if reply and quoted is not None:
            fields["reply_to_message"] = self.show(quoted, reply=False)
        return fields
