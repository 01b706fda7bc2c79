"""Idempotency keys of orders made in a chat: built and parsed here only.

A key also says what belongs to the order besides its job, so that an instance that only sees the job can go on with it.
"""

import re
from dataclasses import dataclass
from typing import Self

_IMPROVE = "improve:"
_VOICE = re.compile(r"voice:(-?\d{1,19}):(\d{1,19}):(\d{1,19})")
_GROUP = re.compile(r"group:(-?\d{1,19}):(\d{1,19}):(\d{1,2}):(\d{1,2})")


def draft_key(chat: int, version: int) -> str:
    """One version of a draft is ordered once, however often the button is pressed."""
    return f"draft:{chat}:{version}"


def improvement_key(chat: int, version: int) -> str:
    """The prompt of one version of a draft is improved once."""
    return f"{_IMPROVE}{chat}:{version}"


def is_improvement_key(key: str) -> bool:
    return key.startswith(_IMPROVE)


@dataclass(frozen=True, kw_only=True, slots=True)
class VoiceKey:
    """A voice message that is turned into a prompt: once, however often its button is pressed."""

    chat: int
    message: int
    #: the message that the voice message answers; 0 if none
    replied: int = 0

    def __str__(self) -> str:
        return f"voice:{self.chat}:{self.message}:{self.replied}"

    @classmethod
    def read(cls, key: str) -> Self | None:
        found = _VOICE.fullmatch(key)
        return cls(chat=int(found[1]), message=int(found[2]), replied=int(found[3])) if found else None


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupKey:
    """One of several orders that a press makes together. The group has one notice."""

    chat: int
    version: int
    count: int
    index: int

    def __str__(self) -> str:
        return f"group:{self.chat}:{self.version}:{self.count}:{self.index}"

    @classmethod
    def read(cls, key: str) -> Self | None:
        found = _GROUP.fullmatch(key)
        if found is None:
            return None
        return cls(chat=int(found[1]), version=int(found[2]), count=int(found[3]), index=int(found[4]))

    def all(self) -> list[str]:
        """Return the keys of the whole group, in the order of its parts."""
        return [f"group:{self.chat}:{self.version}:{self.count}:{index}" for index in range(self.count)]
