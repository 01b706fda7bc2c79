"""Files that users have sent."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """A user's file. The provider keeps a copy at the URL `address` for a few days."""

    address: str
    account_id: int
    #: the channel's file id, which does not expire
    file: str
    kind: str
    seconds: float | None
    age_seconds: float
