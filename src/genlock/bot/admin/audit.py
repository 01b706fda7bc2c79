"""The audit log: what operators of a bot did."""

from genlock.bot.bundle import BotBundle
from genlock.bot.context import UpdateContext
from genlock.ports import AuditStore

DETAIL_LENGTH_MAX = 500


class AuditLog:
    def __init__(self, bundle: BotBundle, store: AuditStore) -> None:
        self._bundle = bundle
        self._store = store

    async def write(self, ctx: UpdateContext, action: str, subject: object, detail: str = "") -> None:
        """Write down what the operator did; once per update, however often the update is handled."""
        await self._store.add_audit(
            bot=self._bundle.id,
            key=f"update:{ctx.update}",
            actor=ctx.profile.external_id,
            action=action,
            subject=str(subject),
            detail=detail[:DETAIL_LENGTH_MAX],
        )
