"""Who sends a request: the API key in its Authorization header."""

from starlette.requests import Request

from genlock.api.problems import forbidden, unauthorized
from genlock.domain.api_key import ApiKey, ApiScope, hash_api_secret, is_well_formed
from genlock.ports import ApiKeyStore
from genlock.web.connections import AUTHENTICATED


async def authenticate(request: Request, keys: ApiKeyStore) -> ApiKey:
    """Return the key of a request, before any of its body is read. Raises Problem 401 or 403."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        raise unauthorized("send your API key: `Authorization: Bearer glk_…`")
    key = await keys.api_key_by_secret(hash_api_secret(secret)) if is_well_formed(secret) else None
    if key is None:
        raise unauthorized("this API key is unknown or was revoked")
    if key.banned:
        raise forbidden("this account is blocked; ask the operator why")
    mark = request.scope.get("extensions", {}).get(AUTHENTICATED)
    if mark is not None:
        mark()
    return key


def check_scope(key: ApiKey, scope: ApiScope) -> None:
    if scope not in key.scopes:
        raise forbidden(f"this API key has no scope `{scope}`; it has {' '.join(sorted(key.scopes))}")
