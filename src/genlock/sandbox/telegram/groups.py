"""Groups and channels of the Telegram simulator: members, the bot's status and rights, topics, and migration."""

from typing import Any

from genlock.sandbox.telegram.chats import Chat, Message, Topic
from genlock.sandbox.telegram.profile import member
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.state import TelegramState


class Group:
    """A group with users and the bot, or a channel. Users write there with `user.say(text, chat=group.id)`."""

    def __init__(self, state: TelegramState, chat: Chat) -> None:
        self._state = state
        self.chat = chat

    @property
    def id(self) -> int:
        return self.chat.id

    @property
    def messages(self) -> list[Message]:
        return list(self.chat.messages.values())

    async def add(self, user: SimulatedUser) -> None:
        self.chat.members.add(user.id)
        self.chat.banned.pop(user.id, None)
        self._service(user.id, {"new_chat_members": [user.user.as_json()]})
        self._add_chat_event()

    async def remove(self, user: SimulatedUser) -> None:
        self.chat.members.discard(user.id)
        self._service(user.id, {"left_chat_member": user.user.as_json()})
        self._add_chat_event()

    async def set_bot(self, status: str, *, by: SimulatedUser | None = None) -> None:
        """Set the bot's status: member, administrator, left or kicked."""
        state, old = self._state, self.chat.bot_status
        author = by.id if by else min(self.chat.members)
        self.chat.bot_status = status
        change: dict[str, Any] = {
            "chat": state.show_chat(self.chat),
            "from": state.show_user(author),
            "date": state.now(),
        }
        change["old_chat_member"] = member(state, state.bot_id, old, self.chat.type)
        change["new_chat_member"] = member(state, state.bot_id, status, self.chat.type)
        state.updates.add("my_chat_member", change, f"chat {self.id}")
        self._add_chat_event()

    async def forbid(self, *kinds: str) -> None:
        """Forbid these kinds of messages (text, photo, video, …); no kinds: allow everything."""
        self.chat.forbidden = set(kinds)

    async def migrate(self) -> "Group":
        """Turn the group into a supergroup with a new id; old messages are not moved."""
        state, old = self._state, self.chat
        new = state.add_group(old.title, old.members, kind="supergroup")
        new.bot_status = old.bot_status
        first = min(old.members)
        self._service(first, {"migrate_to_chat_id": new.id})
        old.migrated_to = new.id
        group = Group(state, new)
        group._service(first, {"migrate_from_chat_id": old.id})
        return group

    async def topic(self, name: str) -> int:
        """Create a topic; return its id."""
        message = self._service(min(self.chat.members), {"forum_topic_created": {"name": name, "icon_color": 7322096}})
        message.thread = message.id
        self.chat.forum = True
        self.chat.topics[message.id] = Topic(name=name)
        return message.id

    async def close_topic(self, number: int) -> None:
        self.chat.topics[number].closed = True

    def _service(self, sender: int, content: dict[str, Any]) -> Message:
        message = self._state.post(self.chat, sender, content, silent=True)
        if self.chat.bot_status in {"member", "administrator"}:
            self._state.add_update(message)
        return message

    def _add_chat_event(self) -> None:
        shown = self._state.show_chat(self.chat)
        self._state.events.add("chat", chat=shown, members=sorted(self.chat.members), bot_status=self.chat.bot_status)
