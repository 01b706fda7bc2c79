"""Keys of API clients: what a key may do, and the secret that its owner sends."""

import hashlib
import re
import zlib
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum

from genlock.domain.value import value

PREFIX = "glk_"
SECRET_BYTES = 30
#: characters of a secret that lists show, so that an owner can tell keys apart
SHOWN_LENGTH = 10
NAME_LENGTH = 60
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#: two digits at a time: every request has a secret whose checksum is made
_PAIRS = [first + second for first in _DIGITS for second in _DIGITS]
_RANDOM_LENGTH = 41
_CHECK_LENGTH = 6
_FORM = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_RANDOM_LENGTH + _CHECK_LENGTH}}}")


class ApiScope(StrEnum):
    """What a key may do."""

    ORDER = "order"  #: place and cancel orders, send files
    READ = "read"  #: see jobs, results, balance and ledger
    WEBHOOKS = "webhooks"  #: manage webhook endpoints


ALL_SCOPES = frozenset(ApiScope)


@value
class NewApiKey:
    account_id: int
    name: str
    scopes: frozenset[ApiScope]
    #: the start of the secret
    shown: str
    secret_hash: str
    #: thousandths of a credit per day (UTC); None: no limit
    spend_limit: int | None
    #: idempotency key: creating a key again with it changes nothing
    request_key: str
    author: str


@value
class ApiKey:
    id: int
    account_id: int
    name: str
    scopes: frozenset[ApiScope]
    shown: str
    spend_limit: int | None
    #: thousandths of a credit that orders of today (UTC) cost, without those that were not charged in the end
    spent_today: int
    author: str
    created_at: datetime
    #: exact to a minute
    last_used_at: datetime | None
    revoked_at: datetime | None
    #: whether an operator has banned the account's user
    banned: bool = False


def make_secret(random_bytes: Callable[[int], bytes]) -> str:
    """Return a new secret. Its last characters are a checksum, so that a mistyped one is refused without a query."""
    number = int.from_bytes(random_bytes(SECRET_BYTES))
    return _with_checksum(PREFIX + _in_base_62(number, _RANDOM_LENGTH))


def is_well_formed(secret: str) -> bool:
    """Whether the text can be a secret that `make_secret` returned."""
    return _FORM.fullmatch(secret) is not None and secret == _with_checksum(secret[:-_CHECK_LENGTH])


def mask_api_secrets(text: str) -> str:
    """Return the text with stars in place of every secret in it, except for the start that lists show."""
    return _FORM.sub(lambda found: found[0][:SHOWN_LENGTH].ljust(len(found[0]), "*"), text)


def hash_api_secret(secret: str) -> str:
    """Return the hash under which a secret is stored. It has 240 random bits, so a fast hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _with_checksum(text: str) -> str:
    return text + _in_base_62(zlib.crc32(text.encode()), _CHECK_LENGTH)


def _in_base_62(number: int, length: int) -> str:
    text = ""
    while len(text) < length:
        number, pair = divmod(number, len(_PAIRS))
        text = _PAIRS[pair] + text
    return text[-length:]
