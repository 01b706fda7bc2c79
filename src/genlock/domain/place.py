"""A place in a list that is sorted by time: where the next page begins."""

from datetime import UTC, datetime, timedelta

from genlock.domain.errors import Refusal
from genlock.domain.value import value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: in the year 2255: after every row, and exact as a floating-point number
_NEWEST_MICROSECONDS = 9_000_000_000_000_000
_KEY_LENGTH_MAX = 300


@value
class Place:
    """The time and the key of the last row that was shown; the next page begins after it."""

    microseconds: int
    key: str

    @classmethod
    def of(cls, at: datetime, key: str) -> "Place":
        return cls(microseconds=microseconds(at), key=key)

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Read a place from an address, as `str(place)` writes it. Raises Refusal."""
        digits, separator, key = text.partition("~")
        if not separator or not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(_NEWEST_MICROSECONDS)):
            raise Refusal("this is not a place in a list")
        if int(digits) > _NEWEST_MICROSECONDS or len(key) > _KEY_LENGTH_MAX or "\0" in key:
            raise Refusal("this is not a place in a list")
        return cls(microseconds=int(digits), key=key)

    def __str__(self) -> str:
        return f"{self.microseconds}~{self.key}"


#: before the newest row
NEWEST = Place(microseconds=_NEWEST_MICROSECONDS, key="")


def microseconds(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND
