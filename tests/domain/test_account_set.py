"""Sets of accounts as bitmaps."""

from random import Random

from genlock.domain.account_set import PIECE_ACCOUNTS, AccountSet, dump_piece, load_piece


def test_a_set_holds_the_accounts_that_were_put_in_and_no_others() -> None:
    rng = Random(3)
    ids = {rng.randrange(4 * PIECE_ACCOUNTS) for _ in range(2000)} | {0, PIECE_ACCOUNTS - 1, PIECE_ACCOUNTS}
    found = AccountSet.of(ids)

    assert sorted(found.ids()) == sorted(ids)
    assert len(found) == len(ids)
    assert all((number in found) == (number in ids) for number in range(3 * PIECE_ACCOUNTS))
    assert {piece: load_piece(dump_piece(bits)) for piece, bits in found.pieces.items()} == found.pieces
    assert AccountSet().ids() == []


def test_the_bounds_are_the_lowest_and_the_highest_account() -> None:
    assert AccountSet().bounds() is None
    assert AccountSet({0: 0, 3: 0}).bounds() is None
    assert AccountSet.of([7]).bounds() == (7, 7)
    assert AccountSet.of([PIECE_ACCOUNTS + 5, 9, 3 * PIECE_ACCOUNTS - 1]).bounds() == (9, 3 * PIECE_ACCOUNTS - 1)
