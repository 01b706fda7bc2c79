"""Keys of API clients."""

from collections.abc import Sequence
from datetime import timedelta

from genlock.domain.api_key import ApiKey, ApiScope, NewApiKey
from genlock.domain.errors import StoreError
from genlock.stores.batch import Item
from genlock.stores.rows import Row, not_null
from genlock.stores.scan import NEWEST
from genlock.stores.session import Session, Subject

#: how exactly the last use of a key is known
USE_PRECISION = timedelta(minutes=1)


class ApiKeys(Subject):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._by_secret = session.batch("api_keys_by_secret", self._run_by_secret, joins=True)
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
        found, stale = await self._by_secret(Item(secret_hash, {}, {"secret_hash": secret_hash}, None))
        if found is not None and stale and found.id not in self._touching:
            self._touching.add(found.id)  # the requests of one moment record the use once
            try:
                await self.session.one("touch_api_key", id=found.id)
            finally:
                self._touching.discard(found.id)
        return found

    async def _run_by_secret(self, items: list[Item[None]]) -> list[tuple[ApiKey | None, bool]]:
        rows = {row["secret_hash"]: row for row in await self.session.rows("api_keys_by_secret", items)}
        answers: list[tuple[ApiKey | None, bool]] = []
        for item in items:
            row = rows.get(item.key)
            key = self._read(row) if row else None
            answers.append((key, row is not None and key is not None and self._is_stale(row, key)))
        return answers

    def _is_stale(self, row: Row, key: ApiKey) -> bool:
        read_at = not_null(self.session.time(row["read_at"]))
        return key.last_used_at is None or read_at - key.last_used_at >= USE_PRECISION

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

    def _read(self, row: Row) -> ApiKey:
        time = self.session.time
        return ApiKey(
            id=row["id"],
            account_id=row["account_id"],
            name=row["name"],
            scopes=frozenset(ApiScope(word) for word in row["scopes"].split()),
            shown=row["shown"],
            spend_limit=row["spend_limit"],
            spent_today=row["spent_today"],
            author=row["author"],
            created_at=not_null(time(row["created_at"])),
            last_used_at=time(row["last_used_at"]),
            revoked_at=time(row["revoked_at"]),
            banned=bool(row["banned"]),
        )


def _dump_scopes(scopes: frozenset[ApiScope]) -> str:
    return " ".join(scope.value for scope in ApiScope if scope in scopes)
