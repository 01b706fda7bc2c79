"""The provider's settings: from either name, never shown, and empty is not set."""

import pytest
from pydantic import ValidationError

from genlock.app import kie_limits, make_engine, make_kie, make_kie_endpoint, make_rules
from genlock.domain.errors import Refusal
from genlock.settings import Settings
from tests.providers.models import CATALOG


@pytest.mark.parametrize("name", ["GENLOCK_KIE_API_KEY", "KIE_API_KEY"])
async def test_the_key_comes_under_either_name_and_is_not_shown(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "very-secret")
    settings = Settings()
    assert "very-secret" not in repr(settings)
    await make_kie(settings, CATALOG).close()


def test_without_a_key_there_is_no_provider() -> None:
    with pytest.raises(Refusal, match="GENLOCK_KIE_API_KEY"):
        make_kie(Settings(), CATALOG)


def test_an_empty_webhook_key_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else everybody could sign with it."""
    monkeypatch.setenv("GENLOCK_KIE_WEBHOOK_KEY", "")
    engine = make_engine(None, None, providers={}, channels={})  # type: ignore[arg-type]
    assert make_kie_endpoint(engine, Settings()).check is None


@pytest.mark.parametrize("name", ["GENLOCK_PUBLIC_URL", "RENDER_EXTERNAL_URL"])
def test_the_public_address_may_end_in_a_slash(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "https://bot.example/")
    assert Settings().public_url == "https://bot.example"


def test_an_address_is_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_PUBLIC_URL", "bot.example")
    with pytest.raises(ValidationError, match="must begin with https://"):
        Settings()


def test_the_rules_follow_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_POLL_SECONDS", "4")
    rules = make_rules(Settings())
    assert (rules.poll_seconds, rules.limits) == (4.0, kie_limits())
