"""Numbers of orders and accounts can be read back and do not tell how many there are."""

import pytest

from genlock.domain.public_number import LENGTHS, PublicNumbers, _size

NUMBERS = PublicNumbers.of_bot("42:secret")


def test_every_number_reads_back_and_none_is_given_twice() -> None:
    ids = [*range(1, 3000), _size(6) - 1, _size(6), _size(6) + _size(8) - 1, _size(6) + _size(8), 2**40]
    written = [NUMBERS.order(id_) for id_ in ids]
    assert [NUMBERS.order_id(number) for number in written] == ids
    assert len(set(written)) == len(ids)
    assert {len(number) for number in written} <= set(LENGTHS)


def test_neighbours_look_unrelated() -> None:
    written = [NUMBERS.order(order_id) for order_id in range(1, 200)]
    assert all(len(number) == 6 and number[0].isalpha() for number in written)
    assert len({number[:2] for number in written}) > 100
    assert written != sorted(written)


def test_numbers_differ_by_key_and_by_kind() -> None:
    other = PublicNumbers.of_bot("42:another secret")
    assert NUMBERS.order(7) not in (other.order(7), NUMBERS.account(7))
    assert other.order_id(NUMBERS.order(7)) != 7


def test_a_number_is_read_as_users_type_it() -> None:
    number = NUMBERS.order(125)
    for typed in (
        f"#{number}",
        number.lower(),
        f" #{number} ",
        number[0] + number[1:].replace("0", "o").replace("1", "l"),
    ):
        assert NUMBERS.order_id(typed) == 125, typed
    assert NUMBERS.order_id("#125") == 125, "the number of an earlier version"


@pytest.mark.parametrize(
    "typed", ["", "#", "hello!", "K7Q2M", "1" * 19, "U7Q2M9", "K7Q2M9K", "١٢٣", "#-1", "KKKKK\x00"]
)
def test_other_texts_are_no_numbers(typed: str) -> None:
    assert NUMBERS.order_id(typed) is None


def test_without_a_key_the_numbers_are_the_ids() -> None:
    assert PublicNumbers().order(125) == "125"
    assert PublicNumbers().order_id("#125") == 125
    assert PublicNumbers().order_id("K7Q2M9") is None
