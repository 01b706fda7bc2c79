"""Makes keys for API clients. Chat, dashboard and command line use these functions."""

import re
from collections.abc import Callable

from genlock.domain.api_key import (
    NAME_LENGTH,
    SHOWN_LENGTH,
    ApiKey,
    ApiScope,
    NewApiKey,
    hash_api_secret,
    make_secret,
)
from genlock.domain.errors import Refusal
from genlock.ports import AccountStore, ApiKeyStore

CHANNEL = "api"
_ACCOUNT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


async def ensure_api_account(store: AccountStore, name: str) -> int:
    """Return the account of an API client by its name; create it if it is new. Raises Refusal."""
    if _ACCOUNT_NAME.fullmatch(name) is None:
        raise Refusal(
            f"{name[:80]!r} is not a name of an API client: use 1 to 64 letters, digits, dots, hyphens and underscores"
        )
    return await store.ensure_account(CHANNEL, "", name)


async def create_api_key(
    store: ApiKeyStore,
    account_id: int,
    *,
    name: str,
    scopes: frozenset[ApiScope],
    spend_limit: int | None,
    request_key: str,
    author: str,
    random_bytes: Callable[[int], bytes],
) -> tuple[ApiKey, str | None]:
    """Make a key, once per request key. Returns it with its secret, or None if the request was handled before.

    The secret is stored as a hash: it can be shown only now. Where `random_bytes` gives the same bytes for the same
    request, a repeated request gets the same secret again.
    """
    secret = make_secret(random_bytes)
    key, created = await store.add_api_key(
        NewApiKey(
            account_id=account_id,
            name=" ".join(name.split())[:NAME_LENGTH] or "key",
            scopes=scopes,
            shown=secret[:SHOWN_LENGTH],
            secret_hash=hash_api_secret(secret),
            spend_limit=spend_limit,
            request_key=request_key,
            author=author,
        )
    )
    return key, secret if created else None
