"""Commands about one job take its id, or the number that its user sees."""

import pytest
import typer

from genlock.cli.options import _job_id
from genlock.domain.public_number import PublicNumbers

TOKEN = "42:secret-of-the-tests"


@pytest.mark.parametrize("typed", ["125", "#125", PublicNumbers.of_bot(TOKEN).order(125)])
def test_both_numbers_of_a_job_are_understood(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    monkeypatch.setenv("GENLOCK_TELEGRAM_TOKEN", TOKEN)
    assert _job_id(typed) == 125


@pytest.mark.parametrize("typed", ["", "fox", "K7Q2M9!"])
def test_other_words_are_refused(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    monkeypatch.setenv("GENLOCK_TELEGRAM_TOKEN", TOKEN)
    with pytest.raises(typer.BadParameter):
        _job_id(typed)
