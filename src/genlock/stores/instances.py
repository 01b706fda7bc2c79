"""Instances of the service: heartbeats, leases of crashed instances, roles."""

from collections.abc import Sequence

from genlock.domain.errors import StoreError
from genlock.domain.poison import ISOLATED_FROM
from genlock.ports import Role
from genlock.stores.session import Session, Subject


class Instances(Subject):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: set by a database that only one process can have open
        self.orphaned: Sequence[str] = ()

    async def heartbeat(self, instance: str, silent_seconds: float) -> list[str]:
        rows = await self.session.one("heartbeat", instance=instance, silent_seconds=silent_seconds)
        return [row["id"] for row in rows]

    async def orphaned_instances(self) -> Sequence[str]:
        return self.orphaned

    async def release_leases(self, instance: str, keep: Sequence[int] = (), *, crashed: bool = False) -> int:
        crash = {"instance": instance, "crashed": crashed, "isolated_from": ISOLATED_FROM}
        if not keep:  # the update queues first: the other statement deletes the instance
            await self.session.one("release_update_queues", keep=self.session.array(()), **crash)
            await self.session.one("release_webhooks_of", owner=instance)
        return len(await self.session.one("release_leases", keep=self.session.array(keep), **crash))

    async def take_role(self, name: str, instance: str, seconds: float) -> Role:
        # PostgreSQL does not see a row that another transaction adds during the statement; the second attempt does.
        for _ in range(2):
            if rows := await self.session.one("take_role", name=name, instance=instance, seconds=seconds):
                return Role(holder=rows[0]["holder"], epoch=rows[0]["epoch"])
        raise StoreError(f"could not take or read the role {name}")

    async def release_role(self, name: str, instance: str) -> None:
        await self.session.one("release_role", name=name, instance=instance)
