"""Users, chats and messages of the Telegram simulator."""

from dataclasses import dataclass, field
from typing import Any

from genlock.sandbox.telegram.markup import Markup

MEDIA = ("animation", "photo", "video", "audio", "voice", "document")
#: kinds that show a file
FILE_KINDS = (*MEDIA, "video_note", "sticker")
KINDS = ("text", *FILE_KINDS, "invoice", "paid_media", "venue", "location", "contact", "dice", "game", "poll")


@dataclass(kw_only=True)
class User:
    id: int
    name: str
    last_name: str = ""
    username: str
    language: str | None
    stars: int
    started: bool = True  #: has opened the chat with the bot
    blocked: bool = False
    deactivated: bool = False
    operator: bool = False  #: the bot's settings name this user as an operator

    def as_json(self) -> dict[str, Any]:
        fields = {"id": self.id, "is_bot": False} | self.names
        return fields | ({"language_code": self.language} if self.language else {})

    @property
    def names(self) -> dict[str, str]:
        last_name = {"last_name": self.last_name} if self.last_name else {}
        return {"first_name": self.name} | last_name | {"username": self.username}


@dataclass(kw_only=True)
class Message:
    """A message in its current state."""

    id: int
    chat: int
    sender: int
    date: int
    #: content fields of the Bot API's Message: text, photo, caption, entities, …
    content: dict[str, Any]
    markup: Markup | None = None
    reply_to: int | None = None
    #: the Bot API's TextQuote: the part of the answered message that is quoted
    quote: dict[str, Any] | None = None
    #: the Bot API's ExternalReplyInfo, if the answered message is in another chat
    external_reply: dict[str, Any] | None = None
    thread: int | None = None
    album: str | None = None
    edited: int | None = None
    forwarded: dict[str, Any] | None = None
    #: it may not be forwarded or saved
    protected: bool = False
    #: emoji by user id; the bot's reaction is among them
    reactions: dict[int, str] = field(default_factory=dict)
    #: ids of users who deleted it for themselves only
    hidden_from: set[int] = field(default_factory=set)
    #: number of edits
    version: int = 0

    @property
    def kind(self) -> str:
        return next((kind for kind in KINDS if kind in self.content), "service")

    @property
    def text(self) -> str:
        """The text or the caption."""
        return str(self.content.get("text") or self.content.get("caption") or "")

    @property
    def file_id(self) -> str | None:
        """Id of the file it shows; for a photo the largest size."""
        if self.kind not in FILE_KINDS:
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
    #: only the general topic can be hidden
    hidden: bool = False
    #: id of a custom emoji
    icon: str = ""


@dataclass(kw_only=True)
class Chat:
    id: int
    #: private, group, supergroup or channel
    type: str
    title: str = ""
    #: the public name of a supergroup or channel, without @
    username: str = ""
    members: set[int] = field(default_factory=set)
    #: the bot's status: member, administrator, left or kicked
    bot_status: str = "member"
    #: kinds of messages that may not be sent, e.g. photo
    forbidden: set[str] = field(default_factory=set)
    #: what else members may not do, e.g. can_invite_users
    denied: set[str] = field(default_factory=set)
    #: until when each user is banned; 0 if the ban has no end
    banned: dict[int, int] = field(default_factory=dict)
    #: what a restricted user may do, and until when
    restricted: dict[int, dict[str, Any]] = field(default_factory=dict)
    migrated_to: int | None = None
    forum: bool = False
    topics: dict[int, Topic] = field(default_factory=dict)
    #: of messages without a topic, in a forum
    general: Topic = field(default_factory=lambda: Topic(name="General"))
    description: str = ""
    #: the Bot API's ChatPhoto
    photo: dict[str, str] = field(default_factory=dict)
    #: the Bot API's ChatInviteLink by its address
    invite_links: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: ids of pinned messages, the last pinned one last
    pinned: list[int] = field(default_factory=list)
    messages: dict[int, Message] = field(default_factory=dict)
    last_id: int = 0

    @property
    def private(self) -> bool:
        return self.type == "private"

    @property
    def counts_messages(self) -> bool:
        """Whether it has message ids of its own. Private chats and basic groups share a counter."""
        return self.type in {"supergroup", "channel"}

    @property
    def creator(self) -> int | None:
        """The member who made the group: the one with the lowest id."""
        return None if self.private else min(self.members, default=None)


@dataclass(frozen=True, kw_only=True)
class Notification:
    """A push notification. New messages cause one, edits do not."""

    user_id: int
    chat: int
    message: int
    text: str
    at: float


@dataclass(kw_only=True)
class CallbackQuery:
    """A pressed inline button and the bot's answer to it."""

    id: str
    user_id: int
    at: float
    answered: bool = False
    text: str = ""
    alert: bool = False
    #: URL that the user's client opens
    url: str = ""
