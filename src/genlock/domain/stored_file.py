"""Files in the media store, as rows refer to them."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

#: keys begin with the day on which the file was stored, so that old files are found without a list of them
_KEY = re.compile(r"(\d{8})/[\w.-]{1,40}/[\w.-]{1,80}", re.ASCII)
_DAY = "%Y%m%d"


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredFile:
    key: str
    content_type: str
    size: int
    #: hexadecimal
    sha256: str

    def __str__(self) -> str:
        return f"{self.key} {self.content_type} {self.size} {self.sha256}"

    @classmethod
    def parse(cls, text: str) -> "StoredFile":
        """Parse what `str` returned. Raises ValueError."""
        key, content_type, size, sha256 = text.split(" ")
        check_key(key)
        return cls(key=key, content_type=content_type, size=int(size), sha256=sha256)

    def expires_at(self, keep_days: int) -> datetime:
        """Return when the file is deleted."""
        return day_of(self.key) + timedelta(days=keep_days + 1)


def make_key(stored_at: datetime, account_id: int, name: str) -> str:
    """Return the key of an account's file."""
    return f"{stored_at.astimezone(UTC):{_DAY}}/{account_id}/{name}"


def check_key(key: str) -> str:
    """Return the key. Raises ValueError if it has another form: a key becomes a path on a disk."""
    if _KEY.fullmatch(key) is None or "/." in key:
        raise ValueError(f"not the key of a stored file: {key[:100]!r}")
    return key


def day_of(key: str) -> datetime:
    return datetime(int(key[:4]), int(key[4:6]), int(key[6:8]), tzinfo=UTC)


def format_day(day: date) -> str:
    return f"{day:{_DAY}}"
