"""Keys of API clients."""

from collections.abc import Sequence
from datetime import timedelta
from functools import cache, partial

from genlock.domain.api_key import ApiKey, ApiScope, NewApiKey
from genlock.domain.errors import StoreError
from genlock.domain.job import Job
from genlock.ports import OrderState
from genlock.stores.batch import Item
from genlock.stores.rows import Row, not_null, read_job, read_order_state
from genlock.stores.scan import NEWEST
from genlock.stores.session import Session, Subject

#: how exactly the last use of a key is known
USE_PRECISION = timedelta(minutes=1)


class ApiKeys(Subject):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._by_secret = session.reads("api_keys_by_secret", self._run_by_secret)
        self._with_job = session.reads("api_keys_with_jobs", partial(self._run_with, "api_keys_with_jobs"))
        self._with_order = session.reads("api_keys_with_orders", partial(self._run_with, "api_keys_with_orders"))
        self._touching: set[int] = set()

    async def add_api_key(self, key: NewApiKey) -> tuple[ApiKey, bool]:
        # PostgreSQL does not see a row that another transaction adds during the statement; the second attempt does.
        for _ in range(2):
            rows = await self.session.one(
                "add_api_key",
                account_id=key.account_id,
                name=key.name,
                scopes=_dump_scopes(key.scopes),
                shown=key.shown,
                secret_hash=key.secret_hash,
                spend_limit=key.spend_limit,
                request_key=key.request_key,
                author=key.author,
            )
            if rows:
                return self._read(rows[0]), rows[0]["secret_hash"] == key.secret_hash
        raise StoreError("could not store or find the API key")

    async def api_key_by_secret(self, secret_hash: str) -> ApiKey | None:
        row = await self._by_secret(Item(secret_hash, {}, {"secret_hash": secret_hash}, None))
        return None if row is None else await self._used(row)

    async def api_key_with_job(self, secret_hash: str, job_id: int) -> tuple[ApiKey, Job | None] | None:
        params = {"secret_hash": secret_hash, "job_id": job_id}
        row = await self._with_job(Item((secret_hash, job_id), {}, params, None))
        if row is None:
            return None
        return await self._used(row, "key_"), None if row["id"] is None else read_job(row, self.session.time)

    async def api_key_with_order(self, secret_hash: str, request_key: str) -> tuple[ApiKey, OrderState] | None:
        params = {"secret_hash": secret_hash, "request_key": request_key}
        row = await self._with_order(Item((secret_hash, request_key), {}, params, None))
        return None if row is None else (await self._used(row, "key_"), read_order_state(row, self.session.time))

    async def _run_by_secret(self, items: list[Item[None]]) -> list[Row | None]:
        rows = {row["secret_hash"]: row for row in await self.session.rows("api_keys_by_secret", items)}
        return [rows.get(item.key) for item in items]

    async def _run_with(self, name: str, items: list[Item[None]]) -> list[Row | None]:
        """Read keys together with what is wanted beside each of them."""
        rows = {(row["key_secret_hash"], row["wanted"]): row for row in await self.session.rows(name, items)}
        return [rows.get(item.key) for item in items]

    async def _used(self, row: Row, prefix: str = "") -> ApiKey:
        """Return the key of a row, and record its use if that was not done within the last minute."""
        key = self._read(row, prefix)
        read_at = not_null(self.session.time(row["read_at"]))
        is_stale = key.last_used_at is None or read_at - key.last_used_at >= USE_PRECISION
        if is_stale and key.id not in self._touching:
            self._touching.add(key.id)  # the requests of one moment record the use once
            try:
                await self.session.one("touch_api_key", id=key.id)
            finally:
                self._touching.discard(key.id)
        return key

    async def api_key(self, key_id: int) -> ApiKey | None:
        rows = await self.session.one("api_key", id=key_id)
        return self._read(rows[0]) if rows else None

    async def api_keys(self, account_id: int | None, *, before: int | None, limit: int) -> Sequence[ApiKey]:
        upper = NEWEST if before is None else min(before, NEWEST)
        if account_id is None:
            rows = await self.session.one("newest_api_keys", before=upper, limit=limit)
        else:
            rows = await self.session.one("account_api_keys", account_id=account_id, before=upper, limit=limit)
        return [self._read(row) for row in rows]

    async def revoke_api_key(self, key_id: int, account_id: int | None = None) -> ApiKey | None:
        rows = await self.session.one("revoke_api_key", id=key_id, account_id=account_id)
        return self._read(rows[0]) if rows else None

    def _read(self, row: Row, prefix: str = "") -> ApiKey:
        time = self.session.time
        return ApiKey(
            id=row[f"{prefix}id"],
            account_id=row[f"{prefix}account_id"],
            name=row[f"{prefix}name"],
            scopes=_read_scopes(row[f"{prefix}scopes"]),
            shown=row[f"{prefix}shown"],
            spend_limit=row[f"{prefix}spend_limit"],
            spent_today=row[f"{prefix}spent_today"],
            author=row[f"{prefix}author"],
            created_at=not_null(time(row[f"{prefix}created_at"])),
            last_used_at=time(row[f"{prefix}last_used_at"]),
            revoked_at=time(row[f"{prefix}revoked_at"]),
            banned=bool(row[f"{prefix}banned"]),
        )


@cache
def _read_scopes(words: str) -> frozenset[ApiScope]:
    return frozenset(ApiScope(word) for word in words.split())


def _dump_scopes(scopes: frozenset[ApiScope]) -> str:
    return " ".join(scope.value for scope in ApiScope if scope in scopes)
