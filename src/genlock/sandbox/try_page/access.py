"""The API key of the page at `/try`: made once per sandbox, with credits to spend."""

import asyncio
import secrets
from pathlib import Path

from genlock.app.databases import open_store
from genlock.domain.api_key import ApiScope, hash_api_secret
from genlock.domain.money import THOUSANDTHS, EntryKind
from genlock.engine.api_keys import create_api_key, ensure_api_account
from genlock.log import Silent

ACCOUNT = "try"
CREDITS = 5_000
#: the sandbox keeps the key beside its database, which holds only the key's hash
FILE = "try-api-key"


class TryKey:
    """Makes the key for the first visitor: before, there is no account for it."""

    def __init__(self, database_url: str, folder: Path) -> None:
        self._database_url = database_url
        self._folder = folder
        self._lock = asyncio.Lock()
        self._key = ""

    async def read(self) -> str:
        async with self._lock:
            self._key = self._key or await make_try_key(self._database_url, self._folder)
            return self._key


async def make_try_key(database_url: str, folder: Path) -> str:
    """Return the key of the page; make it, its account and its credits if they are not there."""
    store = await open_store(database_url, observer=Silent(), in_use_ok=True)
    try:
        file = folder / FILE
        known = file.read_text(encoding="ascii").strip() if file.exists() else ""
        if known and await store.api_key_by_secret(hash_api_secret(known)) is not None:
            return known
        account_id = await ensure_api_account(store, ACCOUNT)
        await store.transfer(account_id, EntryKind.GRANT, CREDITS * THOUSANDTHS, f"sandbox:{ACCOUNT}")
        _, secret = await create_api_key(
            store,
            account_id,
            name="the page at /try",
            scopes=frozenset({ApiScope.ORDER, ApiScope.READ}),
            spend_limit=None,
            request_key=f"sandbox:{secrets.token_hex(8)}",
            author="sandbox",
            random_bytes=secrets.token_bytes,
        )
        assert secret is not None
        file.touch(mode=0o600)
        file.write_text(secret, encoding="ascii")
        return secret
    finally:
        await store.close()
