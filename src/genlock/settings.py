"""Settings, from the environment and a `.env` file. The one place that knows their names."""

import re
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote, unquote_plus, urlsplit

from pydantic import AliasChoices, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, DotEnvSettingsSource, EnvSettingsSource, NoDecode, SettingsConfigDict

from genlock.domain.errors import Refusal
from genlock.domain.retry import POLL_SECONDS

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]+")
_HOST = re.compile(r"[^\s:/]+:[0-9]{1,5}")
_SCHEMES = ("sqlite:///", "postgresql://", "postgres://")
_PREFIX = "GENLOCK_"
#: variables of ours that are no settings of a service
_OTHERS = {"GENLOCK_BENCH_DATABASE_URL", "GENLOCK_TEST_CHROMIUM", "GENLOCK_TEST_POSTGRES_URL"}
_PASSWORD_OPTIONS = ("password", "sslpassword")
_TOKEN_NAMES = AliasChoices("GENLOCK_TELEGRAM_TOKEN", "TELEGRAM_BOT_TOKEN")
_KEY_NAMES = AliasChoices("GENLOCK_KIE_API_KEY", "KIE_API_KEY")


class LogFormat(StrEnum):
    HUMAN = "human"
    JSON = "json"


class Settings(BaseSettings):
    """Each field is one variable, GENLOCK_ in front; where a platform sets a plain name, that is taken too."""

    model_config = SettingsConfigDict(
        env_prefix="GENLOCK_",
        env_file=".env",
        extra="ignore",
        populate_by_name=True,
        env_ignore_empty=True,
        hide_input_in_errors=True,
    )

    telegram_token: SecretStr | None = Field(
        default=None,
        validation_alias=_TOKEN_NAMES,
        description="the bot's token, as @BotFather gave it",
    )
    telegram_api_url: str = Field(default="https://api.telegram.org", description="where the Bot API is")
    kie_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=_KEY_NAMES,
        description="the key of the account at Kie.ai, from its API key page",
    )
    kie_api_url: str = Field(default="https://api.kie.ai", description="where Kie.ai takes orders")
    kie_upload_url: str = Field(default="https://kieai.redpandaai.co", description="where Kie.ai takes files")
    kie_webhook_key: SecretStr | None = Field(
        default=None, description="the key that Kie.ai signs callbacks with; once set, unsigned ones are refused"
    )
    database_url: str = Field(
        default="sqlite:///genlock.db",
        validation_alias=AliasChoices("GENLOCK_DATABASE_URL", "DATABASE_URL"),
        description="where jobs and money are kept: `sqlite:///FILE` for one process, `postgresql://…` for many",
    )
    public_url: str | None = Field(
        default=None,
        validation_alias=AliasChoices("GENLOCK_PUBLIC_URL", "RENDER_EXTERNAL_URL"),
        description="where the world reaches us; without it Telegram and the provider are asked, they cannot call",
    )
    host: str = Field(default="127.0.0.1", description="the address the web doors listen on; `0.0.0.0` for all")
    port: int = Field(
        default=8080,
        ge=0,
        le=65535,
        validation_alias=AliasChoices("GENLOCK_PORT", "PORT"),
        description="the port the web doors listen on",
    )
    admin_ids: Annotated[tuple[int, ...], NoDecode] = Field(
        default=(), description="the operators' Telegram ids, with commas between them; they also get the alarms"
    )
    dashboard_token: SecretStr | None = Field(
        default=None,
        description="the password of the dashboard, which this version does not have yet: unused",
    )
    welcome_credits: float = Field(default=0.0, ge=0.0, description="how many credits a new person is given")
    free_per_day: int = Field(default=0, ge=0, description="how many free runs a person has each day, on chosen models")
    markup: float = Field(default=2.0, gt=0.0, description="how many times the provider's price a person pays")
    credit_usd: float = Field(default=0.01, gt=0.0, description="what one of our credits costs a person, in US dollars")
    star_packages: Annotated[dict[int, int], NoDecode] = Field(
        default={},
        description="what is sold for Telegram Stars, as `STARS:CREDITS` with commas between them; "
        "without it some sizes at what a star brings the operator",
    )
    support: str = Field(default="", description="where people turn to for help, such as `@name`")
    reward_inviter_credits: float = Field(default=0.0, ge=0.0, description="what an invitation brings whoever invited")
    reward_invited_credits: float = Field(default=0.0, ge=0.0, description="what an invitation brings whoever came")
    running_max: int = Field(default=5, gt=0, description="how many jobs a person may have running")
    per_minute: int = Field(default=10, gt=0, description="how many orders a person may make in a minute")
    per_hour: int = Field(default=100, gt=0, description="how many orders a person may make in an hour")
    uploads_per_hour: int = Field(default=60, gt=0, description="how many files a person may send in an hour")
    late_cancels_per_day: int = Field(
        default=5,
        ge=0,
        description="how many orders a person may cancel in a day after the provider was asked for them; "
        "what the provider bills for those is lost",
    )
    media_private_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="`host:port`, with commas between them, that may be fetched though private, such as simulators",
    )
    lease_seconds: float = Field(
        default=30.0, ge=5.0, description="how long work is reserved for an instance that does not renew it"
    )
    poll_seconds: float = Field(
        default=POLL_SECONDS,
        gt=0.0,
        description="the pause between the first status queries of a task where no callbacks come; "
        "later ones, and those that are only the net under callbacks, are longer",
    )
    grace_seconds: float = Field(
        default=120.0,
        ge=1.0,
        description="how long an order waits for its callback when nobody knows whether the provider took it; "
        "then the money goes back",
    )
    kie_creates_per_10_seconds: int = Field(
        default=20, ge=1, description="how many orders Kie.ai takes from the account in 10 s; more if it has agreed to"
    )
    orphan_expire_seconds: float = Field(
        default=3600.0, gt=0.0, description="how long a callback without a job waits for its job"
    )
    catalog_overlay: Path | None = Field(
        default=None, description="a file that hides, renames or prices models: see [the catalog](catalog.md)"
    )
    log_format: LogFormat = Field(default=LogFormat.HUMAN, description="`human` or `json` log lines")

    @field_validator("public_url", "telegram_api_url", "kie_api_url", "kie_upload_url")
    @classmethod
    def _address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http") or not parts.hostname:
            raise ValueError("must begin with https:// or http:// and name a host")
        if parts.query or parts.fragment or "@" in parts.netloc:
            raise ValueError("must be a plain address, without a password, ? or #")
        return url.rstrip("/")

    @field_validator("database_url")
    @classmethod
    def _database(cls, url: str) -> str:
        if not url.startswith(_SCHEMES):
            scheme = url.partition(":")[0][:20]
            raise ValueError(f"must begin with sqlite:/// or postgresql://, not {scheme!r}")
        return url

    @field_validator("telegram_token")
    @classmethod
    def _token(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not _TOKEN.fullmatch(token.get_secret_value()):
            raise ValueError("is not a bot's token, which looks like 123456789:AA…; copy it from @BotFather again")
        return token

    @field_validator("admin_ids", "media_private_hosts", mode="before")
    @classmethod
    def _list(cls, value: Any) -> Any:
        return [word for word in re.split(r"[\s,;]+", value.strip("[]")) if word] if isinstance(value, str) else value

    @field_validator("star_packages", mode="before")
    @classmethod
    def _packages(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        pairs = [word.split(":") for word in re.split(r"[\s,;]+", value) if word]
        if any(len(pair) != 2 or not all(word.isdigit() and int(word) for word in pair) for pair in pairs):  # noqa: PLR2004
            raise ValueError("must be STARS:CREDITS, with commas between them, such as 100:130,500:650")
        return {int(stars): int(credits_) for stars, credits_ in pairs}

    @field_validator("media_private_hosts")
    @classmethod
    def _hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if any(not _HOST.fullmatch(host) for host in hosts):
            raise ValueError("must be host:port, with commas between them, such as 127.0.0.1:8082")
        return hosts

    def secrets(self) -> list[str]:
        """Every secret there is here, so that no line shows one."""
        fields = (getattr(self, name) for name in type(self).model_fields)
        found = [field.get_secret_value() for field in fields if isinstance(field, SecretStr)]
        for password in _passwords(self.database_url):
            found += [password, unquote(password), unquote_plus(password)]
        return found


class ServiceSettings(Settings):
    """What a running service cannot do without; so everything that is missing or wrong is named together."""

    telegram_token: SecretStr = Field(
        validation_alias=_TOKEN_NAMES, description=Settings.model_fields["telegram_token"].description
    )
    kie_api_key: SecretStr = Field(
        validation_alias=_KEY_NAMES, description=Settings.model_fields["kie_api_key"].description
    )

    @field_validator("public_url")
    @classmethod
    def _brings_updates(cls, url: str | None, given: ValidationInfo) -> str | None:
        telegrams_own = given.data.get("telegram_api_url") == Settings.model_fields["telegram_api_url"].default
        if url is not None and url.startswith("http://") and telegrams_own:
            raise ValueError("must begin with https://, because Telegram brings updates nowhere else; or leave it out")
        return url

    @property
    def bot_id(self) -> str:
        """A token begins with the bot's id."""
        return self.telegram_token.get_secret_value().partition(":")[0]


Kind = TypeVar("Kind", bound=Settings)


def read_settings(kind: type[Kind]) -> Kind:
    """The settings as they are, or one refusal that names all that is wrong with them."""
    try:
        return kind()
    except ValidationError as error:
        problems = [_explain(kind, problem) for problem in error.errors(include_url=False)]
        lines = "\n".join(f"  {line}" for line in (*problems, *unknown_words()))
        raise Refusal(f"These settings are not right:\n{lines}") from None


def unknown_settings() -> Iterator[tuple[str, str | None]]:
    """Variables that look like settings and are none, each with the name that was probably meant. Never a value."""
    known = [name.upper() for name in Settings.model_fields]
    sources = (EnvSettingsSource(Settings), DotEnvSettingsSource(Settings))
    given = {name.upper() for source in sources for name in source.env_vars}
    for name in sorted(given - {f"{_PREFIX}{one}" for one in known} - _OTHERS):
        if name.startswith(_PREFIX):
            nearest = get_close_matches(name.removeprefix(_PREFIX), known, 1)
            yield name, f"{_PREFIX}{nearest[0]}" if nearest else None


def unknown_words() -> list[str]:
    """The same in sentences."""
    return [
        f"{name} is no setting and has no effect" + (f": did you mean {nearest}?" if nearest else "")
        for name, nearest in unknown_settings()
    ]


def _explain(kind: type[Settings], problem: Any) -> str:
    """Which variable it is, what is wrong with it, what belongs there. Never what it holds."""
    place = str(problem["loc"][0])
    name, field = next(
        (name, field)
        for name, field in kind.model_fields.items()
        if place == name or place in getattr(field.validation_alias, "choices", [])
    )
    if problem["type"] == "missing":
        return f"GENLOCK_{name.upper()} is not set: it is {field.description}"
    said = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
    rest = "" if field.is_required() else f" (or leave it out: {field.get_default()!s} is the default)"
    meaning = "" if problem["type"] == "value_error" else f"; it is {field.description}{rest}"
    return f"{place if place.isupper() else f'GENLOCK_{name.upper()}'} {said}{meaning}"


def _passwords(url: str) -> list[str]:
    """As they stand in a database's address: before the host, or among the options."""
    pairs = (option.partition("=") for option in url.partition("?")[2].split("&"))
    found: list[str | None] = [value for name, _, value in pairs if unquote_plus(name) in _PASSWORD_OPTIONS]
    with suppress(ValueError):
        found.append(urlsplit(url).password)
    return [password for password in found if password]
