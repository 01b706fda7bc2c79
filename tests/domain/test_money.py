"""Amounts as operators write them."""

import pytest

from genlock.domain.money import read_amount


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [
        ("10", 10_000),
        ("12.5", 12_500),
        ("12,5", 12_500),
        ("12.125", 12_125),
        ("0,125", 125),
        ("999999999", 999_999_999_000),
    ],
)
def test_an_amount_has_a_point_or_a_comma(text: str, thousandths: int) -> None:
    assert read_amount(text) == thousandths


@pytest.mark.parametrize(
    "text", ["1,000", "12,125", "1,250.5", "1 000", "1000000000", "0.0004", "-1", "1e3", "nan", ""]
)
def test_what_may_mean_something_else_is_no_amount(text: str) -> None:
    assert read_amount(text) == 0
