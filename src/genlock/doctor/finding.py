"""What the doctor finds."""

from dataclasses import dataclass
from email.utils import parsedate_to_datetime

#: signatures are good for five minutes and leases for seconds: clocks may differ by less
SKEW_SECONDS_MAX = 5.0


@dataclass(frozen=True, kw_only=True)
class Phase:
    name: str
    ok: bool
    detail: str


class Ill(Exception):
    """Something is not as it should be; the text says what, and what to do."""


def need(holds: object, otherwise: str) -> None:
    if not holds:
        raise Ill(otherwise)


def check_clock(date: str | None, now: float, whose: str) -> None:
    """Compare with the time that somebody's answer carries."""
    if date is not None:
        skew = abs(parsedate_to_datetime(date).timestamp() - now)
        need(
            skew <= SKEW_SECONDS_MAX + 1,  # the header knows whole seconds
            f"this machine's clock and that of {whose} differ by {skew:.0f} s: let it be set by NTP (`timedatectl`)",
        )
