"""Files that users have sent."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """A file that a person has sent, kept by the provider under an address for a few days."""

    address: str
    account_id: int
    #: the channel's own copy, which lasts
    file: str
    kind: str
    seconds: float | None
    age_seconds: float
