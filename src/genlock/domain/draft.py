"""The unfinished order of a user, as the store keeps it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedDraft:
    """A draft's row; the body is the bot's own."""

    version: int
    message: int | None
    body: str
