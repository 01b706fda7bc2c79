"""Slots: how many tasks a provider may work on at once, for all instances together."""

from typing import Protocol


class TaskSlotStore(Protocol):
    async def slots_used(self, provider: str) -> int:
        """Return how many slots are taken: those whose job is being submitted or runs there."""

    async def begin_limited_submit(
        self,
        job_id: int,
        token: int,
        secret_hash: str,
        placeholder: str | None,
        *,
        provider: str,
        offer: str,
        most: int,
        sent_input: str | None = None,
    ) -> bool | None:
        """As `begin_submit`, if one of `most` slots of the provider is free. None if not; only `placeholder` is stored.

        The slot is free again in the commit in which the job ends or goes elsewhere, so a crash can leave none behind.
        """
