"""The address of a Telegram chat: `CHAT/LANGUAGE`, or `CHAT.THREAD/LANGUAGE` for a topic of a forum."""

import re
from dataclasses import dataclass, replace

_FORM = re.compile(r"(-?\d{1,19})(?:\.(\d{1,19}))?/([A-Za-z0-9_-]{1,35})")

#: the ids of supergroups and channels are below this
SUPERGROUP_ID_MAX = -1_000_000_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    chat: int
    #: the topic, if the chat is a forum
    thread: int | None = None
    language: str

    @property
    def group(self) -> bool:
        """Whether the chat is a group: Telegram gives groups negative ids."""
        return self.chat < 0

    @property
    def basic_group(self) -> bool:
        """Whether the chat is a group that may become a supergroup, whose ids begin with -100."""
        return SUPERGROUP_ID_MAX < self.chat < 0

    def __str__(self) -> str:
        thread = "" if self.thread is None else f".{self.thread}"
        return f"{self.chat}{thread}/{self.language}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Parse what `str` returned. Raises ValueError."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(f"not the address of a Telegram chat: {text[:60]!r}")
        chat, thread, language = found.groups()
        return cls(chat=int(chat), thread=int(thread) if thread else None, language=language)

    def migrated_to(self, chat: int) -> "Address":
        """Return the address after the group became a supergroup, which has no topics yet."""
        return replace(self, chat=chat, thread=None)

    def outside_topics(self) -> "Address":
        """Return the address of the same chat without the topic."""
        return replace(self, thread=None)
