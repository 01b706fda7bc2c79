"""The unfinished order of a user, as the store keeps it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedDraft:
    """The row of a draft. Only the bot knows the format of `body`."""

    version: int
    message: int | None
    body: str
    #: URLs of the uploads that the draft uses; they are not pruned
    uploads: tuple[str, ...] = ()
