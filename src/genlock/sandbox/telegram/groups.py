"""Groups at the simulated Telegram: who is in them, what the bot may do there, and how they become supergroups."""

from typing import Any

from genlock.sandbox.telegram.people import Person
from genlock.sandbox.telegram.profile import member
from genlock.sandbox.telegram.world import Chat, Message, Topic, World


class Group:
    """A group with people and the bot in it. People write there with `person.say(text, chat=group.id)`."""

    def __init__(self, world: World, chat: Chat) -> None:
        self._world = world
        self.chat = chat

    @property
    def id(self) -> int:
        return self.chat.id

    @property
    def messages(self) -> list[Message]:
        return list(self.chat.messages.values())

    async def add(self, person: Person) -> None:
        self.chat.members.add(person.id)
        self._service(person.id, {"new_chat_members": [person.user.told()]})
        self._changed()

    async def remove(self, person: Person) -> None:
        self.chat.members.discard(person.id)
        self._service(person.id, {"left_chat_member": person.user.told()})
        self._changed()

    async def set_bot(self, status: str, *, by: Person | None = None) -> None:
        """What the bot is here: member, administrator, left or kicked."""
        world, old = self._world, self.chat.bot_status
        author = by.id if by else min(self.chat.members)
        self.chat.bot_status = status
        change: dict[str, Any] = {
            "chat": world.show_chat(self.chat),
            "from": world.show_user(author),
            "date": world.now(),
        }
        change["old_chat_member"] = member(world, world.bot_id, old)
        change["new_chat_member"] = member(world, world.bot_id, status)
        world.updates.add("my_chat_member", change, f"chat {self.id}")
        self._changed()

    async def forbid(self, *kinds: str) -> None:
        """Kinds that may not be sent here any more: text, photo, video, …; none: everything may."""
        self.chat.forbidden = set(kinds)

    async def migrate(self) -> "Group":
        """The group becomes a supergroup with a new id; its old messages stay behind."""
        world, old = self._world, self.chat
        new = world.add_group(old.title, old.members, kind="supergroup")
        new.bot_status = old.bot_status
        first = min(old.members)
        self._service(first, {"migrate_to_chat_id": new.id})
        old.migrated_to = new.id
        group = Group(world, new)
        group._service(first, {"migrate_from_chat_id": old.id})
        return group

    async def topic(self, name: str) -> int:
        """A new topic; its number."""
        message = self._service(min(self.chat.members), {"forum_topic_created": {"name": name, "icon_color": 7322096}})
        message.thread = message.id
        self.chat.topics[message.id] = Topic(name=name)
        return message.id

    async def close_topic(self, number: int) -> None:
        self.chat.topics[number].closed = True

    def _service(self, sender: int, content: dict[str, Any]) -> Message:
        message = self._world.post(self.chat, sender, content, silent=True)
        if self.chat.bot_status in {"member", "administrator"}:
            self._world.updates.add("message", self._world.show(message), f"chat {self.id}")
        return message

    def _changed(self) -> None:
        shown = self._world.show_chat(self.chat)
        self._world.events.add("chat", chat=shown, members=sorted(self.chat.members), bot_status=self.chat.bot_status)
