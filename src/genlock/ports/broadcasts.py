"""Broadcasts: one message to the users of a bot."""

from typing import Protocol

from genlock.domain.broadcast import EVERYONE, Broadcast, BroadcastOutcome, BroadcastState, Recipient, Segment


class BroadcastStore(Protocol):
    async def count_reachable(self, bot: str, segment: Segment = EVERYONE) -> int:
        """Return how many users a broadcast of this bot would go to."""

    async def begin_broadcast(
        self,
        text: str,
        *,
        bot: str,
        author: str,
        request_key: str,
        content: str = "",
        segment: Segment = EVERYONE,
    ) -> Broadcast:
        """Start a broadcast. The same bot and key again give the same broadcast."""

    async def broadcast(self, broadcast_id: int) -> Broadcast | None: ...

    async def broadcasts(self, limit: int, bot: str | None = None, *, before: int | None = None) -> list[Broadcast]:
        """Return the newest broadcasts, of all bots or of one; or those before an id."""

    async def running_broadcast(self, bot: str | None = None) -> Broadcast | None:
        """Return the oldest running broadcast of this bot, or of any."""

    async def next_recipient(self, broadcast_id: int) -> Recipient | None:
        """Take the next recipient. No other caller gets the same one, unless it is given back or its sender crashes.

        None when no recipient can be taken now, or the broadcast was stopped.
        """

    async def begin_broadcast_message(self, broadcast_id: int, recipient: Recipient) -> bool:
        """Record the call to a recipient before it is made, so that it is made at most once.

        Returns False if another caller took the recipient meanwhile, or the broadcast has ended.
        """

    async def return_recipient(self, broadcast_id: int, recipient: Recipient, after: float) -> None:
        """Give a recipient back whose message was certainly not sent; it can be taken again after some seconds."""

    async def count_broadcast_message(self, broadcast_id: int, recipient: Recipient, outcome: BroadcastOutcome) -> None:
        """Count the outcome of the message to a recipient, once."""

    async def expire_recipients(self) -> None:
        """Count messages as of unknown outcome whose sender crashed during the call."""

    async def end_broadcast(self, broadcast_id: int, state: BroadcastState) -> bool:
        """End a running broadcast. Returns False if it had ended before, or is not done yet."""
