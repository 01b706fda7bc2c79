"""How a check of the doctor reports a fault."""

from email.utils import parsedate_to_datetime

#: Callback signatures are valid for five minutes and leases for seconds, so clocks may differ by less than that.
SKEW_SECONDS_MAX = 5.0


class CheckFailed(Exception):
    """A check found a fault; the text says what it is and what to do."""


def require(condition: object, otherwise: str) -> None:
    """Raise CheckFailed with the text unless the condition holds."""
    if not condition:
        raise CheckFailed(otherwise)


def check_clock(date: str | None, now: float, server: str) -> None:
    """Compare this machine's clock with the `Date` header of a server's answer."""
    if date is not None:
        skew = abs(parsedate_to_datetime(date).timestamp() - now)
        require(
            skew <= SKEW_SECONDS_MAX + 1,  # the header has whole seconds
            f"this machine's clock and that of {server} differ by {skew:.0f} s: set it by NTP (`timedatectl`)",
        )
