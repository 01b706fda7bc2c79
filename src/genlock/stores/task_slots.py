"""Slots: how many tasks a provider may work on at once, for all instances together."""

from genlock.stores.session import Session, Subject


class TaskSlots(Subject):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: by provider, how many slots are known to have a row
        self._opened_slots: dict[str, int] = {}

    async def slots_used(self, provider: str) -> int:
        return int((await self.session.one("slots_used", provider=provider))[0]["used"])

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
        if self._opened_slots.get(provider, 0) < most:
            await self.session.one("open_slots", provider=provider, most=most)
            self._opened_slots[provider] = most
        [row] = await self.session.one(
            "begin_limited_submit",
            job_id=job_id,
            token=token,
            secret_hash=secret_hash,
            placeholder=placeholder,
            provider=provider,
            offer=offer,
            most=most,
            sent_input=sent_input,
        )
        if row["fenced"] and not row["begun"]:
            self._opened_slots.pop(provider, None)  # the rows may be missing, as in a database that was emptied
            return None
        return bool(row["begun"])
