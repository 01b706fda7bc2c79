"""Parking: work that was open when a backup was made waits for the operator, because it may have been done since."""

from genlock.stores.session import Subject


class Parking(Subject):
    async def park(self, reason: str) -> dict[str, int]:
        """Park open jobs, callbacks, updates and broadcasts, and count them. Notices and bulk actions are given up."""
        jobs = await self.session.one("park_jobs", reason=reason)
        await self.session.one("discard_due_notices")
        await self.session.one("discard_waiting_messages")
        await self.session.one("park_callbacks", reason=reason)
        updates = await self.session.one("park_updates", reason=reason)
        await self.session.one("clear_update_queues")
        broadcasts = await self.session.one("stop_broadcasts")
        await self.session.one("stop_bulk_actions")
        return {"jobs": len(jobs), "updates": len(updates), "broadcasts": len(broadcasts)}
