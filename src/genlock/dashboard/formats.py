"""How pages write times. Every function returns text that the template escapes."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_ZONE_LENGTH_MAX = 64


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
