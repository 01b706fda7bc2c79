"""Who sends a request: the API key in its Authorization header."""

from dataclasses import dataclass

from starlette.requests import Request

from genlock.api.operation import Operation
from genlock.api.order_acceptance import client_request_key, find_key
from genlock.api.parts import ApiParts
from genlock.api.problems import Problem, forbidden, too_many, unauthorized
from genlock.domain.api_key import ApiKey, ApiScope, hash_api_secret, is_well_formed
from genlock.domain.job import Job
from genlock.ports import ApiKeyStore, OrderState
from genlock.web.connections import AUTHENTICATED

RETRY_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Sender:
    """The key of a request, and what was read together with it."""

    key: ApiKey
    #: the job of the account that the path names
    job: Job | None = None
    #: for the order that the idempotency key names
    order_state: OrderState | None = None


async def identify(request: Request, operation: Operation, parts: ApiParts) -> Sender:
    """Return the sender of a request, before any of its body is read. Raises Problem 401, 403 or 429.

    What the operation needs first is read in the same statement as the key. The key is read for every request, so that
    its revocation takes effect at once on every instance.
    """
    secret_hash, store = read_secret_hash(request), parts.store
    if (blocked := parts.limits.find_blocked(secret_hash)) is not None:
        _count_connection(request, blocked.account_id)
        raise blocked.refusal
    found: Sender | None = None
    if operation.job_in_path and (job_id := parts.view.job_id(request.path_params[operation.job_in_path])) is not None:
        if (with_job := await store.api_key_with_job(secret_hash, job_id)) is not None:
            found = Sender(key=with_job[0], job=with_job[1])
    elif operation.is_order and (key := find_key(request)) is not None:
        if (with_order := await store.api_key_with_order(secret_hash, client_request_key(key))) is not None:
            found = Sender(key=with_order[0], order_state=with_order[1])
    elif (alone := await store.api_key_by_secret(secret_hash)) is not None:
        found = Sender(key=alone)
    if found is None:
        raise _unknown()
    _accept(request, found.key)
    return found


async def take_permit(request: Request, key: ApiKey, parts: ApiParts) -> dict[str, str]:
    """Take a permit of the key and return the RateLimit headers. Raises Problem 429."""
    try:
        return await parts.limits.take(key.id)
    except Problem:
        parts.limits.note_refused(read_secret_hash(request), key.id, key.account_id)
        raise


async def authenticate(request: Request, keys: ApiKeyStore) -> ApiKey:
    """Return the key of a request. Raises Problem 401, 403 or 429."""
    key = await keys.api_key_by_secret(read_secret_hash(request))
    if key is None:
        raise _unknown()
    _accept(request, key)
    return key


def read_secret_hash(request: Request) -> str:
    """Return the hash of the secret that a request was sent with. Raises Problem 401."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        raise unauthorized("send your API key: `Authorization: Bearer glk_…`")
    if not is_well_formed(secret):
        raise _unknown()
    return hash_api_secret(secret)


def check_scope(key: ApiKey, scope: ApiScope) -> None:
    if scope not in key.scopes:
        raise forbidden(f"this API key has no scope `{scope}`; it has {' '.join(sorted(key.scopes))}")


def _unknown() -> Problem:
    return unauthorized("this API key is unknown or was revoked")


def _accept(request: Request, key: ApiKey) -> None:
    """Tell the connection who its sender is. Raises Problem for a banned account and one with too many connections."""
    if key.banned:
        raise forbidden("this account is blocked; ask the operator why")
    _count_connection(request, key.account_id)


def _count_connection(request: Request, account_id: int) -> None:
    mark = request.scope.get("extensions", {}).get(AUTHENTICATED)
    if mark is not None and not mark(f"account {account_id}"):
        detail = "this account has too many requests that are not answered yet; wait for some of them"
        raise too_many("too_many_connections", detail, RETRY_SECONDS)
