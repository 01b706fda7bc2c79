"""Details of the timeline have names and words in every language; what others said stays as it is."""

from typing import Any

import pytest

from genlock.dashboard.timeline_facts import fact_in_words
from genlock.domain.inbox import InboxState
from genlock.domain.job import State, Verdict
from genlock.domain.money import HoldState
from genlock.domain.result import Outcome
from genlock.domain.update import Received
from genlock.i18n.translator import package_texts


@pytest.mark.parametrize(
    ("language", "name", "value", "written"),
    [
        ("en", "hold_state", "captured", "credits: charged"),
        ("ru", "hold_state", "captured", "кредиты: списано"),
        ("en", "levels", "address,address,document", "sent: by link, as a document"),
        ("en", "seconds", 1.8334, "took: 1.833\u00a0s"),
        ("en", "provider", "kie", "provider: KIE"),
        ("en", "word", "pondering", "provider's word: pondering"),
        ("en", "verdict", "a note of an operator", "effect: a note of an operator"),
        ("en", "peculiar", 0.12345, "peculiar: 0.123"),
    ],
)
def test_a_detail_is_written_in_words(language: str, name: str, value: Any, written: str) -> None:
    fact = fact_in_words(name, value, package_texts().translator(language), str.upper)
    assert f"{fact.name}: {fact.value}" == written
    assert fact.is_known == (name != "peculiar")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("hold_state", HoldState),
        ("state", State),
        ("state", InboxState),
        ("verdict", Verdict),
        ("arrival", Received),
        ("outcome", Outcome),
    ],
)
def test_every_value_of_ours_has_words(name: str, values: Any) -> None:
    t = package_texts().translator("ru")
    assert [value for value in values if fact_in_words(name, value.value, t, str).value == value.value] == []
