"""The audit log of operators' actions."""

from genlock.bot.context import UpdateContext
from genlock.ports import Database


class AuditLog:
    def __init__(self, store: Database, bot_id: str) -> None:
        self._store = store
        self._bot_id = bot_id

    async def write(self, ctx: UpdateContext, action: str, subject: object, detail: str = "") -> None:
        """Record what an operator did, once per update."""
        await self._store.add_audit(
            key=f"update:{ctx.update}",
            actor=ctx.profile.external_id,
            action=action,
            subject=str(subject),
            detail=detail[:500],
            bot=self._bot_id,
        )
