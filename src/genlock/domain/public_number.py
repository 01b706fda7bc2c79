"""Numbers that users see for orders and accounts: they identify a row and do not tell how many rows there are.

An id is mapped to another number by a permutation that needs a secret key (a Feistel network, walked until the number
is in range), and written with letters and digits that are not mistaken for each other. The first sign is a letter, so
a number of an earlier version, which was the id itself, is never mistaken for one of these.
"""

import hashlib
import hmac
from dataclasses import dataclass
from functools import lru_cache

LETTERS = "ABCDEFGHJKMNPQRSTVWXYZ"
SIGNS = "0123456789" + LETTERS
_TYPED_AS = str.maketrans("OIL", "011")
ROUNDS = 8
#: lengths in characters; ids that do not fit the shorter numbers get longer ones
LENGTHS = (6, 8, 10)
#: numbers that are remembered: an order's messages and buttons name the same few again and again
REMEMBERED = 2048


@dataclass(frozen=True, slots=True)
class PublicNumbers:
    """Order and account numbers of one bot. Without a key, they are the ids: for tests and tools of the operator."""

    key: bytes | None = None

    @classmethod
    def of_bot(cls, token: str) -> "PublicNumbers":
        """Return the numbers of the bot with this token. A new token gives new numbers."""
        return cls(hmac.digest(token.encode(), b"genlock: numbers of orders and accounts", "sha256"))

    def order(self, job_id: int) -> str:
        return _write(self, "order", job_id)

    def order_id(self, number: str) -> int | None:
        """Return the id of an order from its number; None if it is none. An id of an earlier version stays valid."""
        return self._read("order", number)

    def account(self, account_id: int) -> str:
        return _write(self, "account", account_id)

    def account_id(self, number: str) -> int | None:
        return self._read("account", number)

    def _read(self, kind: str, text: str) -> int | None:
        text = text.strip().removeprefix("#").upper()
        if text.isascii() and text.isdecimal() and len(text) <= 18:  # noqa: PLR2004 - digits of a 64-bit integer
            return int(text)
        value = _value(text)
        if self.key is None or value is None:
            return None
        before = sum(_size(length) for length in LENGTHS if length < len(text))
        return before + self.permuted(kind, value, len(text), backwards=True)

    def permuted(self, kind: str, value: int, length: int, *, backwards: bool) -> int:
        """Map a number to another one of the same length, or back."""
        while True:
            value = self._feistel(f"{kind}/{length}", value, length, backwards=backwards)
            if value < _size(length):
                return value

    def _feistel(self, label: str, value: int, length: int, *, backwards: bool) -> int:
        """Permute the numbers below 32 ** length: both halves have the same number of bits."""
        assert self.key is not None
        bits = length * 5 // 2
        left, right = value >> bits, value & ((1 << bits) - 1)
        for number in reversed(range(ROUNDS)) if backwards else range(ROUNDS):
            if backwards:
                left, right = right ^ self._round(label, number, left, bits), left
            else:
                left, right = right, left ^ self._round(label, number, right, bits)
        return left << bits | right

    def _round(self, label: str, number: int, half: int, bits: int) -> int:
        digest = hashlib.blake2b(f"{label}/{number}/{half}".encode(), key=self.key or b"", digest_size=8).digest()
        return int.from_bytes(digest) & ((1 << bits) - 1)


@lru_cache(maxsize=REMEMBERED)
def _write(numbers: PublicNumbers, kind: str, number: int) -> str:
    if numbers.key is None:
        return str(number)
    rest = number
    for length in LENGTHS:
        if rest < _size(length):
            return _written(numbers.permuted(kind, rest, length, backwards=False), length)
        rest -= _size(length)
    return str(number)


def _size(length: int) -> int:
    """Return how many numbers of this length there are."""
    return int(len(LETTERS) * len(SIGNS) ** (length - 1))


def _written(value: int, length: int) -> str:
    text = ""
    for _ in range(length - 1):
        value, digit = divmod(value, len(SIGNS))
        text = SIGNS[digit] + text
    return LETTERS[value] + text


def _value(text: str) -> int | None:
    if len(text) not in LENGTHS or text[0] not in LETTERS:
        return None
    value = LETTERS.index(text[0])
    for sign in text[1:].translate(_TYPED_AS):
        if sign not in SIGNS:
            return None
        value = value * len(SIGNS) + SIGNS.index(sign)
    return value
