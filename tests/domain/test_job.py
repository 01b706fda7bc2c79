"""What makes two orders the same order, and whom a callback address belongs to."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genlock.domain.job import OPEN, NewJob, State, hash_secret
from genlock.engine.collect import read_token

ORDER = NewJob(
    account_id=1,
    request_key="key",
    provider="mill",
    channel="chat",
    address="42",
    model="flux",
    input='{"prompt":"a fox"}',
    price=100,
    deadline_seconds=600,
)


@pytest.mark.parametrize(
    "change",
    [{"provider": "other"}, {"channel": "other"}, {"model": "veo"}, {"input": '{"prompt":"a cat"}'}, {"price": 101}],
    ids=lambda change: next(iter(change)),
)
def test_an_order_for_something_else_has_another_fingerprint(change: dict[str, Any]) -> None:
    assert replace(ORDER, **change).fingerprint() != ORDER.fingerprint()


def test_the_same_order_from_another_message_or_at_another_time_has_the_same_fingerprint() -> None:
    again = replace(ORDER, placeholder="7", correlation_id="c2", deadline_seconds=10, notice=False, address="42")
    assert again.fingerprint() == ORDER.fingerprint()


@given(st.text(), st.text())
def test_fields_cannot_run_into_each_other(model: str, text: str) -> None:
    """`ab` + `c` is not `a` + `bc`."""
    one = replace(ORDER, model=model, input=text + "x")
    other = replace(ORDER, model=model + text, input="x")
    assert (one.fingerprint() == other.fingerprint()) == (text == "")


def test_a_job_has_ended_in_every_state_but_the_open_ones() -> None:
    ends = set(State) - set(OPEN)
    assert ends == {State.SUCCEEDED, State.FAILED, State.CANCELLED, State.EXPIRED}


def test_a_secret_is_stored_as_a_hash() -> None:
    assert "secret" not in hash_secret("secret")
    assert hash_secret("secret") == hash_secret("secret")
    assert hash_secret("secret") != hash_secret("Secret")


@pytest.mark.parametrize(
    ("token", "read"),
    [
        ("7.abc", (7, "abc")),
        ("7.a.b", (7, "a.b")),
        ("7", (7, "")),
        ("7.", (7, "")),
        ("999999999999999999.x", (999_999_999_999_999_999, "x")),
    ],
)
def test_a_callback_url_contains_its_job_and_its_secret(token: str, read: tuple[int, str]) -> None:
    assert read_token(token) == read


@pytest.mark.parametrize(
    "token",
    [
        *(None, "", ".", ".abc", "abc", "abc.7", "-7.x", "+7.x", " 7.x", "7 .x", "7_0.x", "0x7.x", "1" * 19 + ".x"),
        *("\N{ARABIC-INDIC DIGIT SEVEN}.x", "\N{SUPERSCRIPT TWO}.x"),
    ],
)
def test_any_other_token_names_no_job(token: str | None) -> None:
    assert read_token(token) == (None, "")


@given(st.none() | st.text())
def test_any_token_can_be_read(token: str | None) -> None:
    number, _ = read_token(token)
    assert number is None or 0 <= number < 10**18
