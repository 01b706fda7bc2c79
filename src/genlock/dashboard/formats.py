"""How pages write times, amounts and hostile text. Every function returns text that the template escapes."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from genlock.domain.printable import escape_unprintable

#: what a page shows of a text from outside; the rest is cut
SHOWN_LENGTH_MAX = 4_000
_ZONE_LENGTH_MAX = 64
#: joiners are part of emoji and of some languages; these spaces are harmless
_KEPT = "\n\t\u200c\u200d\u00a0\u202f\u3000"


def read_zone(name: str) -> tzinfo:
    """Return the time zone with this name; UTC if there is none."""
    if not name or len(name) > _ZONE_LENGTH_MAX or name.startswith("/") or ".." in name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def zone_name(zone: tzinfo) -> str:
    """Return the name by which operators know a time zone, such as `Europe/Moscow`."""
    return zone.key if isinstance(zone, ZoneInfo) else "UTC"


def utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown(text: object, length: int = SHOWN_LENGTH_MAX) -> str:
    """Return a text from outside without control characters, cut to a length."""
    whole = str(text)
    cut = escape_unprintable(whole[: length + 1], keep=_KEPT)
    return cut if len(whole) <= length else f"{cut[:length]}…"
