"""Sets of accounts as bitmaps: exact, small, and quick to unite and to intersect."""

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping

#: successive account ids in one piece of a set: a piece takes at most 4 kB
PIECE_ACCOUNTS = 32_768


class AccountSet:
    """A set of account ids, in pieces: bit n of piece p stands for the account p * PIECE_ACCOUNTS + n."""

    def __init__(self, pieces: Mapping[int, int] | None = None) -> None:
        self.pieces: Mapping[int, int] = {number: bits for number, bits in (pieces or {}).items() if bits}

    @classmethod
    def of(cls, account_ids: Iterable[int]) -> "AccountSet":
        pieces: dict[int, int] = {}
        for account_id in account_ids:
            number, bit = divmod(account_id, PIECE_ACCOUNTS)
            pieces[number] = pieces.get(number, 0) | 1 << bit
        return cls(pieces)

    @classmethod
    def union(cls, sets: Iterable["AccountSet"]) -> "AccountSet":
        pieces: dict[int, int] = {}
        for accounts in sets:
            for number, bits in accounts.pieces.items():
                pieces[number] = pieces.get(number, 0) | bits
        return cls(pieces)

    def ids(self) -> list[int]:
        return [number * PIECE_ACCOUNTS + bit for number, bits in self.pieces.items() for bit in _bits(bits)]

    def bounds(self) -> tuple[int, int] | None:
        """Return the lowest and the highest account; None if there is none."""
        numbers = [number for number, bits in self.pieces.items() if bits]
        if not numbers:
            return None
        first, last = min(numbers), max(numbers)
        lowest, highest = self.pieces[first], self.pieces[last]
        return (
            first * PIECE_ACCOUNTS + (lowest & -lowest).bit_length() - 1,
            last * PIECE_ACCOUNTS + highest.bit_length() - 1,
        )

    def __len__(self) -> int:
        return sum(bits.bit_count() for bits in self.pieces.values())

    def __contains__(self, account_id: int) -> bool:
        number, bit = divmod(account_id, PIECE_ACCOUNTS)
        return bool(self.pieces.get(number, 0) >> bit & 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccountSet) and self.pieces == other.pieces

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: "AccountSet") -> "AccountSet":
        return AccountSet({number: bits & other.pieces.get(number, 0) for number, bits in self.pieces.items()})

    def __or__(self, other: "AccountSet") -> "AccountSet":
        numbers = self.pieces.keys() | other.pieces.keys()
        return AccountSet({number: self.pieces.get(number, 0) | other.pieces.get(number, 0) for number in numbers})


def _bits(piece: int) -> Iterator[int]:
    """Yield the places of the bits that are set, from the text of the number: shifting it would copy it each time."""
    text = f"{piece:b}"[::-1]
    place = text.find("1")
    while place >= 0:
        yield place
        place = text.find("1", place + 1)


def dump_piece(bits: int) -> str:
    """Return a piece as text, compressed."""
    return base64.b64encode(zlib.compress(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), 1)).decode()


def load_piece(text: str) -> int:
    return int.from_bytes(zlib.decompress(base64.b64decode(text)), "little")
