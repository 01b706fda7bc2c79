"""Settings: the fixed names, and the messages for wrong ones."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import genlock
from genlock.domain.errors import Refusal
from genlock.settings import (
    LogFormat,
    ServiceSettings,
    Settings,
    read_settings,
    unknown_settings,
    unknown_settings_messages,
)
from genlock.settings.declared import built_in_fields, read_built_in
from genlock.settings.problems import aliases

PACKAGE = Path(genlock.__file__).parent
TOKEN = "7123456789:AAF0dQ-x5R9fJ3k1Lm_pQ7rS2tU4vW6xY8z"

#: the fixed interface: the variable, its alias, its default
TABLE = {
    "telegram_token": ("GENLOCK_TELEGRAM_TOKEN", "TELEGRAM_BOT_TOKEN", None),
    "telegram_api_url": ("GENLOCK_TELEGRAM_API_URL", None, "https://api.telegram.org"),
    "kie_api_key": ("GENLOCK_KIE_API_KEY", "KIE_API_KEY", None),
    "kie_api_url": ("GENLOCK_KIE_API_URL", None, "https://api.kie.ai"),
    "kie_upload_url": ("GENLOCK_KIE_UPLOAD_URL", None, "https://kieai.redpandaai.co"),
    "kie_webhook_key": ("GENLOCK_KIE_WEBHOOK_KEY", None, None),
    "kie_creates_per_10_seconds": ("GENLOCK_KIE_CREATES_PER_10_SECONDS", None, 20),
    "fal_key": ("GENLOCK_FAL_KEY", "FAL_KEY", None),
    "fal_admin_key": ("GENLOCK_FAL_ADMIN_KEY", None, None),
    "fal_concurrency": ("GENLOCK_FAL_CONCURRENCY", None, None),
    "fal_api_url": ("GENLOCK_FAL_API_URL", None, "https://queue.fal.run"),
    "fal_rest_url": ("GENLOCK_FAL_REST_URL", None, "https://rest.fal.ai"),
    "replicate_token": ("GENLOCK_REPLICATE_TOKEN", "REPLICATE_API_TOKEN", None),
    "replicate_api_url": ("GENLOCK_REPLICATE_API_URL", None, "https://api.replicate.com"),
    "sealing_keys": ("GENLOCK_SEALING_KEYS", None, None),
    "database_url": ("GENLOCK_DATABASE_URL", "DATABASE_URL", "sqlite:///genlock.db"),
    "public_url": ("GENLOCK_PUBLIC_URL", "RENDER_EXTERNAL_URL", None),
    "host": ("GENLOCK_HOST", None, "127.0.0.1"),
    "port": ("GENLOCK_PORT", "PORT", 8080),
    "admin_ids": ("GENLOCK_ADMIN_IDS", None, ()),
    "dashboard_token": ("GENLOCK_DASHBOARD_TOKEN", None, None),
    "welcome_credits": ("GENLOCK_WELCOME_CREDITS", None, 0),
    "free_per_day": ("GENLOCK_FREE_PER_DAY", None, 0),
    "markup": ("GENLOCK_MARKUP", None, 2.0),
    "credit_usd": ("GENLOCK_CREDIT_USD", None, 0.01),
    "media_private_hosts": ("GENLOCK_MEDIA_PRIVATE_HOSTS", None, ()),
    "lease_seconds": ("GENLOCK_LEASE_SECONDS", None, 30.0),
    "poll_seconds": ("GENLOCK_POLL_SECONDS", None, 2.5),
    "orphan_expire_seconds": ("GENLOCK_ORPHAN_EXPIRE_SECONDS", None, 3600.0),
}
VALUES = {
    "sealing_keys": "0123456789abcdef0123456789abcdef",
    "telegram_token": TOKEN,
    "database_url": "postgresql://db/x",
    "port": "81",
    "admin_ids": "12, 13",
    "media_private_hosts": "127.0.0.1:8082,sim:81",
}
READ = {"port": 81, "admin_ids": (12, 13), "media_private_hosts": ("127.0.0.1:8082", "sim:81")}


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder without the developer's `.env`."""
    monkeypatch.chdir(tmp_path)


def test_every_setting_is_read_somewhere() -> None:
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    read = {name for source in sources for name in re.findall(r"\.(\w+)", source)}
    assert {*Settings.model_fields, *ServiceSettings.model_fields} - read == set()


def value(name: str) -> str:
    return VALUES.get(name) or ("http://127.0.0.1:9" if name.endswith("_url") else "7")


KEYS = {"kie": "GENLOCK_KIE_API_KEY", "fal": "GENLOCK_FAL_KEY", "replicate": "GENLOCK_REPLICATE_TOKEN"}


def read(name: str) -> Any:
    """Return a setting of the service, or one that a provider declares. Without the provider's key it is None."""
    provider, _, field = name.partition("_")
    settings = Settings() if name in Settings.model_fields else read_built_in()[provider].values
    one = getattr(settings, name if name in Settings.model_fields else field, None)
    return one.get_secret_value() if isinstance(one, SecretStr) else one


@pytest.mark.parametrize("name", TABLE)
def test_a_setting_has_its_fixed_name_alias_and_default(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable, alias, default = TABLE[name]
    if (key := KEYS.get(name.partition("_")[0], variable)) != variable:
        monkeypatch.setenv(key, "the-key")
    assert read(name) == default
    for spelled in filter(None, (variable, alias)):
        monkeypatch.setenv(spelled, value(name))
        found = read(name)
        assert found == READ.get(name, found)
        assert str(found) != str(default)
        monkeypatch.delenv(spelled)


def test_our_own_name_wins_over_the_platforms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "1")
    monkeypatch.setenv("GENLOCK_PORT", "2")
    assert Settings().port == 2


def test_settings_are_also_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\nKIE_API_KEY=key\nGENLOCK_LOG_FORMAT=json\n")
    settings = read_settings(ServiceSettings)
    assert settings.telegram_token.get_secret_value() == TOKEN
    assert settings.bot_id == "7123456789"
    assert settings.log_format is LogFormat.JSON


def test_a_line_of_the_file_that_cannot_be_read_is_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / ".env").write_text(f"GENLOCK_TELEGRAM_TOKEN={TOKEN}\n\nset hunter2 please\nKIE_API_KEY=key\n")
    assert read_settings(ServiceSettings).telegram_token.get_secret_value() == TOKEN
    assert [record.getMessage() for record in caplog.records] == [
        "The .env file has a line near line 2 that is not NAME=VALUE: it has no effect, correct it or remove it"
    ]


def test_all_missing_and_wrong_settings_are_reported_together_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {
        "TELEGRAM_BOT_TOKEN": "hunter2-token",
        "GENLOCK_DATABASE_URL": "mysql://root:hunter2@db/x",
        "GENLOCK_PUBLIC_URL": "https://me:hunter2@bot.example",
        "PORT": "99999",
        "GENLOCK_ADMIN_IDS": "12,hunter2",
        "GENLOCK_LEASE_SECONDS": "1",
        "GENLOCK_MEDIA_PRIVATE_HOSTS": "hunter2",
    }
    for name, text in wrong.items():
        monkeypatch.setenv(name, text)
    with pytest.raises(Refusal) as refused:
        read_settings(ServiceSettings)
    message = str(refused.value)
    for name in (
        "GENLOCK_TELEGRAM_TOKEN is not a bot's token",
        "GENLOCK_KIE_API_KEY is not set",
        "GENLOCK_DATABASE_URL must begin with",
        "GENLOCK_PUBLIC_URL must be a plain address",
        "GENLOCK_PORT must be",
        "GENLOCK_ADMIN_IDS must be Telegram ids, separated by commas; an id is a number",
        "GENLOCK_LEASE_SECONDS must be",
        "GENLOCK_MEDIA_PRIVATE_HOSTS must be host:port",
    ):
        assert name in message
    assert "hunter2" not in message


def test_wrong_settings_of_all_providers_are_reported_together_with_those_of_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = {
        "PORT": "99999",
        "FAL_KEY": "hunter2-key",
        "GENLOCK_FAL_CONCURRENCY": "hunter2",
        "GENLOCK_FAL_API_URL": "ftp://hunter2",
        "GENLOCK_KIE_CREATES_PER_10_SECONDS": "0",
        "GENLOCK_REPLICATE_API_URL": "https://me:hunter2@replicate.example",
    }
    for name, text in wrong.items():
        monkeypatch.setenv(name, text)
    described = {name: field.description for name, field in built_in_fields()}
    creates, concurrency = described["GENLOCK_KIE_CREATES_PER_10_SECONDS"], described["GENLOCK_FAL_CONCURRENCY"]
    for kind in (Settings, ServiceSettings):
        with pytest.raises(Refusal) as refused:
            read_settings(kind)
        lines = [line.strip() for line in str(refused.value).splitlines()[1:]]
        assert [line for line in lines if line.startswith(("GENLOCK_KIE", "GENLOCK_FAL", "GENLOCK_REPLICATE"))] == [
            f"GENLOCK_KIE_CREATES_PER_10_SECONDS must be 1 or more ({creates}; default: 20)",
            f"GENLOCK_FAL_CONCURRENCY must be a whole number ({concurrency}; default: not set)",
            "GENLOCK_FAL_API_URL must begin with https:// or http:// and name a host",
            "GENLOCK_REPLICATE_API_URL must be a plain address, without a password, ? or #",
        ]
        assert any(line.startswith("GENLOCK_PORT must be") for line in lines)
        assert "hunter2" not in str(refused.value)


def test_a_service_without_any_provider_is_told_the_key_of_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_TELEGRAM_TOKEN", TOKEN)
    monkeypatch.setenv("GENLOCK_KIE_API_URL", "http://127.0.0.1:9")
    with pytest.raises(Refusal) as refused:
        read_settings(ServiceSettings)
    assert str(refused.value).splitlines()[1:] == [
        "  GENLOCK_KIE_API_KEY is not set: it is the API key of the Kie.ai account, from its API key page"
    ]
    for name in ("KIE_API_KEY", "FAL_KEY", "REPLICATE_API_TOKEN"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "a-key")
            assert read_settings(ServiceSettings).bot_id == "7123456789"
    assert read_settings(Settings).telegram_token is not None, "other commands need no provider"


def test_every_secret_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_TELEGRAM_TOKEN", TOKEN)
    monkeypatch.setenv("GENLOCK_KIE_API_KEY", "kie-key")
    monkeypatch.setenv("GENLOCK_KIE_WEBHOOK_KEY", "hmac-key")
    monkeypatch.setenv("GENLOCK_FAL_ADMIN_KEY", "fal-admin-key")  # although fal is not configured
    monkeypatch.setenv("REPLICATE_API_TOKEN", "replicate-token")
    monkeypatch.setenv("GENLOCK_DASHBOARD_TOKEN", "dash-word")
    monkeypatch.setenv("GENLOCK_DATABASE_URL", "postgresql://me:p%40ss@db/x")
    settings = Settings()
    of_providers = {"kie-key", "hmac-key", "fal-admin-key", "replicate-token"}
    assert set(settings.secrets()) == {TOKEN, "dash-word", "p%40ss", "p@ss", *of_providers}
    assert not any(secret in repr(settings) for secret in (TOKEN, "kie-key", "hmac-key", "dash-word"))


def test_a_service_that_telegram_cannot_reach_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_TELEGRAM_TOKEN", TOKEN)
    monkeypatch.setenv("GENLOCK_KIE_API_KEY", "kie-key")
    monkeypatch.setenv("GENLOCK_PUBLIC_URL", "http://bot.example")
    with pytest.raises(Refusal, match="GENLOCK_PUBLIC_URL must begin with https://"):
        read_settings(ServiceSettings)
    assert read_settings(Settings).public_url == "http://bot.example", "the other commands accept it"
    monkeypatch.setenv("GENLOCK_TELEGRAM_API_URL", "http://127.0.0.1:8081")
    assert read_settings(ServiceSettings).public_url == "http://bot.example", (
        "so does a service with its own Bot API server"
    )


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("postgresql://db/x?user=me&password=p%40ss", {"p%40ss", "p@ss"}),
        ("postgresql://db/x?password=a+word", {"a+word", "a word"}),
        ("postgresql://me:one@db/x?passwor%64=two&sslpassword=three", {"one", "two", "three"}),
        ("postgresql://db/x?password=", set()),
        ("postgresql://[db/x?password=word", {"word"}),
        ("sqlite:///x.db", set()),
    ],
)
def test_a_database_password_is_a_secret_anywhere_in_the_url(url: str, secrets: set[str]) -> None:
    assert set(Settings(database_url=url).secrets()) == secrets


def test_an_unknown_variable_is_reported_with_the_closest_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENLOCK_ADMIN_ID", "12")
    monkeypatch.setenv("genlock_markups", "3")
    monkeypatch.setenv("GENLOCK_BENCH_DATABASE_URL", "postgresql://db/x")
    monkeypatch.setenv("GENLOCK_PORT", "81")
    monkeypatch.setenv("GENLOCKED", "1")
    (tmp_path / ".env").write_text("GENLOCK_QQQQ=1\nKIE_KEY=2\ngenlock_host=0.0.0.0\n")

    assert list(unknown_settings()) == [
        ("GENLOCK_ADMIN_ID", "GENLOCK_ADMIN_IDS"),
        ("GENLOCK_MARKUPS", "GENLOCK_MARKUP"),
        ("GENLOCK_QQQQ", None),
    ]


def test_every_setting_is_known_by_each_of_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    own = [(f"GENLOCK_{name.upper()}", field) for name, field in Settings.model_fields.items()]
    for name, field in (*own, *built_in_fields()):
        for spelled in (name, *aliases(field)):
            monkeypatch.setenv(spelled, "x")

    assert list(unknown_settings()) == []


def test_a_missing_setting_is_reported_together_with_the_misspelt_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_TELEGRAM_TOKEN", TOKEN)
    monkeypatch.setenv("GENLOCK_KIE_APIKEY", "kie-secret")

    with pytest.raises(Refusal) as refusal:
        read_settings(ServiceSettings)

    message = str(refusal.value)
    assert "GENLOCK_KIE_API_KEY is not set" in message
    assert "Unknown setting GENLOCK_KIE_APIKEY: did you mean GENLOCK_KIE_API_KEY?" in message
    assert "kie-secret" not in message


def test_an_unknown_variable_without_a_close_setting_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_QQQQ", "1")
    assert unknown_settings_messages() == ["Unknown setting GENLOCK_QQQQ: it has no effect, remove it"]
