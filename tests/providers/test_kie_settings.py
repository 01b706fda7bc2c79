"""The Kie.ai settings and the bundle that is made from them."""

from decimal import Decimal
from time import time

import pytest
from pydantic import ValidationError

from genlock.app.engine import make_rules
from genlock.app.plugins import find_plugins
from genlock.app.providers import configured_providers, make_bundles, rate_limits
from genlock.catalog import load
from genlock.settings import Settings
from tests.providers.models import CATALOG


@pytest.mark.parametrize("name", ["GENLOCK_KIE_API_KEY", "KIE_API_KEY"])
async def test_the_key_is_read_under_either_name_and_is_not_shown(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "very-secret")
    plugins = find_plugins()
    assert "very-secret" not in repr(plugins)
    assert configured_providers() == make_bundles(plugins, CATALOG).keys() == {"kie"}


def test_without_a_key_the_provider_is_not_configured() -> None:
    assert configured_providers() == make_bundles(find_plugins(), CATALOG).keys() == set()


def test_an_empty_webhook_key_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an attacker could sign with it."""
    monkeypatch.setenv("GENLOCK_KIE_API_KEY", "very-secret")
    monkeypatch.setenv("GENLOCK_KIE_WEBHOOK_KEY", "")
    assert make_bundles(find_plugins(), CATALOG)["kie"].verify_callback is None


async def test_the_bundle_verifies_the_callbacks_that_it_makes_and_refuses_forged_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GENLOCK_KIE_API_KEY", "very-secret")
    monkeypatch.setenv("GENLOCK_KIE_WEBHOOK_KEY", "hmac-key")
    bundle = make_bundles(find_plugins(), CATALOG)["kie"]
    assert bundle.verify_callback is not None
    assert bundle.sample_callback is not None
    for forged in (False, True):
        body, headers = bundle.sample_callback("task-1", forged)
        assert await bundle.verify_callback(headers, body, time()) is not forged


def test_the_bundle_has_the_credit_price_of_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_KIE_API_KEY", "very-secret")
    assert make_bundles(find_plugins(), load())["kie"].credit_usd == Decimal("0.005")


@pytest.mark.parametrize("name", ["GENLOCK_PUBLIC_URL", "RENDER_EXTERNAL_URL"])
def test_the_public_url_may_end_in_a_slash(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "https://bot.example/")
    assert Settings().public_url == "https://bot.example"


def test_the_public_url_must_be_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_PUBLIC_URL", "bot.example")
    with pytest.raises(ValidationError, match="must begin with https://"):
        Settings()


def test_the_rules_follow_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_POLL_SECONDS", "4")
    monkeypatch.setenv("GENLOCK_KIE_API_KEY", "very-secret")
    monkeypatch.setenv("GENLOCK_KIE_CREATES_PER_10_SECONDS", "40")
    limits = rate_limits(make_bundles(find_plugins(), CATALOG))
    rules = make_rules(Settings(), limits=limits)
    assert (rules.poll_seconds, rules.limits) == (4.0, limits)
    assert limits["create:kie"].interval == 10.8 / 40
    assert limits.keys() == {"create:kie", "status:kie"}
