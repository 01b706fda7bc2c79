"""Settings, read from the environment and a `.env` file. No other module knows the names of the variables."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote, unquote_plus, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AliasChoices, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, DotEnvSettingsSource, EnvSettingsSource, NoDecode, SettingsConfigDict

from genlock.domain.errors import Refusal
from genlock.domain.retry import POLL_SECONDS
from genlock.entry_points import setting_prefixes

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]+")
_CHAT = re.compile(r"-?\d{1,20}(?::\d{1,18})?", re.ASCII)
_SEALING_KEY_LENGTH = 20
#: percent; more is most likely a typing error
_BONUS_MAX = 100
_HOST = re.compile(r"[^\s:/]+:[0-9]{1,5}")
_SCHEMES = ("sqlite:///", "postgresql://", "postgres://")
_PREFIX = "GENLOCK_"
#: our variables that are not settings of the service
_OTHERS = {"GENLOCK_BENCH_DATABASE_URL", "GENLOCK_TEST_API_CASES", "GENLOCK_TEST_CHROMIUM", "GENLOCK_TEST_POSTGRES_URL"}
_PASSWORD_OPTIONS = ("password", "sslpassword")
_TOKEN_NAMES = AliasChoices("GENLOCK_TELEGRAM_TOKEN", "TELEGRAM_BOT_TOKEN")
_KEY_NAMES = AliasChoices("GENLOCK_KIE_API_KEY", "KIE_API_KEY")
_FAL_NAMES = AliasChoices("GENLOCK_FAL_KEY", "FAL_KEY")
_REPLICATE_NAMES = AliasChoices("GENLOCK_REPLICATE_TOKEN", "REPLICATE_API_TOKEN")


class LogFormat(StrEnum):
    HUMAN = "human"
    JSON = "json"


class Settings(BaseSettings):
    """Each field is one variable with the prefix GENLOCK_; names that platforms set are aliases."""

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
        description="the bot's token from @BotFather",
    )
    telegram_api_url: str = Field(default="https://api.telegram.org", description="base URL of the Bot API")
    fal_key: SecretStr | None = Field(
        default=None,
        validation_alias=_FAL_NAMES,
        description="the API key of the fal account, from its dashboard; without it fal makes nothing",
    )
    fal_admin_key: SecretStr | None = Field(
        default=None,
        description="a fal key with the scope ADMIN, only to read the credit left: fal shows it to no other key",
    )
    fal_concurrency: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="how many generations may be at fal at once, for all instances together; further orders wait here, "
        "or another provider makes them; without it fal queues them",
    )
    fal_api_url: str = Field(default="https://queue.fal.run", description="base URL of fal's queue")
    fal_rest_url: str = Field(
        default="https://rest.fal.ai", description="base URL of fal's storage and of the keys of its callbacks"
    )
    replicate_token: SecretStr | None = Field(
        default=None,
        validation_alias=_REPLICATE_NAMES,
        description="the API token of the Replicate account; without it Replicate makes nothing",
    )
    replicate_api_url: str = Field(default="https://api.replicate.com", description="base URL of Replicate's API")
    kie_api_key: SecretStr | None = Field(
        default=None,
        validate_default=True,
        validation_alias=_KEY_NAMES,
        description="the API key of the Kie.ai account, from its API key page",
    )
    kie_api_url: str = Field(default="https://api.kie.ai", description="base URL of Kie.ai's API")
    kie_upload_url: str = Field(default="https://kieai.redpandaai.co", description="base URL of Kie.ai's file upload")
    kie_webhook_key: SecretStr | None = Field(
        default=None,
        description="the key that Kie.ai signs callbacks with; when it is set, unsigned callbacks are refused",
    )
    database_url: str = Field(
        default="sqlite:///genlock.db",
        validation_alias=AliasChoices("GENLOCK_DATABASE_URL", "DATABASE_URL"),
        description="the database of jobs and money: `sqlite:///FILE` for one process, `postgresql://…` for several",
    )
    public_url: str | None = Field(
        default=None,
        validation_alias=AliasChoices("GENLOCK_PUBLIC_URL", "RENDER_EXTERNAL_URL"),
        description="public base URL of this service; without it Telegram and the providers are polled",
    )
    host: str = Field(
        default="127.0.0.1", description="the address that the web endpoints listen on; `0.0.0.0` for all"
    )
    port: int = Field(
        default=8080,
        ge=0,
        le=65535,
        validation_alias=AliasChoices("GENLOCK_PORT", "PORT"),
        description="the port that the web endpoints listen on",
    )
    admin_ids: Annotated[tuple[int, ...], NoDecode] = Field(
        default=(), description="Telegram ids of the operators, separated by commas; they also receive the alarms"
    )
    daily_report_hour: int | None = Field(
        default=None,
        ge=0,
        le=23,
        description="the hour at which operators get the report of the last 24 hours in the chat; "
        "without it there is none",
    )
    daily_report_zone: str = Field(
        default="UTC", description="the time zone of `GENLOCK_DAILY_REPORT_HOUR`, such as `Europe/Berlin`"
    )
    daily_report_chat: str = Field(
        default="",
        description="the group or channel that gets the daily report, as `CHAT_ID` or, for a topic, "
        "`CHAT_ID:TOPIC_ID`; without it every operator gets it",
    )
    dashboard_token: SecretStr | None = Field(
        default=None,
        description="the password of the dashboard for those without a chat, such as the output of "
        "`openssl rand -hex 24`; without it only one-time links open the dashboard",
    )
    viewers_see_prompts: bool = Field(
        default=True, description="whether viewers of the dashboard may read prompts and results"
    )
    metrics_token: SecretStr | None = Field(
        default=None,
        description="the bearer token for `/metrics` and the figures of `/health`; without it both are private where "
        "the service can be reached from outside: see [deploy](../how-to/deploy.md)",
    )
    support_credits_max: float = Field(
        default=100.0,
        ge=0.0,
        description="credits that an operator with the role `support` may credit, debit and refund in the dashboard in "
        "one day (UTC), all together, free runs at their value; owners have no limit",
    )
    welcome_credits: float = Field(default=0.0, ge=0.0, description="credits that a new user receives")
    welcome_picture: str = Field(
        default="packaged",
        description="the picture that a new user sees first: `packaged`, `off`, or the path of a JPEG or PNG file",
    )
    free_per_day: int = Field(default=0, ge=0, description="free runs per user and day, on the models marked `free`")
    markup: float = Field(default=2.0, gt=0.0, description="price for users as a multiple of the provider's price")
    credit_usd: float = Field(default=0.01, gt=0.0, description="price of one of our credits for users, in US dollars")
    star_packages: Annotated[dict[int, int], NoDecode] = Field(
        default={},
        description="packages sold for Telegram Stars, as `STARS:CREDITS` separated by commas; "
        "default: six sizes at the price that the operator receives for a star",
    )
    star_bonus: Annotated[dict[int, int], NoDecode] = Field(
        default={},
        description="percent of credits on top of larger packages, as `STARS:PERCENT` separated by commas, such as "
        "`500:5,1000:10`: each applies from that many stars on; default: none",
    )
    invoice_hours: float = Field(
        default=24.0,
        gt=0.0,
        description="hours for which an invoice can be paid; afterwards, or when its package is no longer sold, "
        "the payment is refused before anything is charged",
    )
    input_days: int = Field(
        default=0,
        ge=0,
        description="days after which the inputs of finished orders (prompts, links to files) are erased; "
        "0 keeps them until the user asks for erasure",
    )
    support: str = Field(default="", description="contact for users who need help, such as `@name`")
    reward_inviter_credits: float = Field(
        default=0.0, ge=0.0, description="credits for a user whose invitation was accepted"
    )
    reward_invited_credits: float = Field(default=0.0, ge=0.0, description="credits for a user who was invited")
    running_max: int = Field(default=5, gt=0, description="jobs that a user may have running at the same time")
    per_minute: int = Field(default=10, gt=0, description="orders per user and minute")
    per_hour: int = Field(default=100, gt=0, description="orders per user and hour")
    uploads_per_hour: int = Field(default=60, gt=0, description="files that a user may send per hour")
    free_transcriptions_per_day: int = Field(
        default=0,
        ge=0,
        description="voice messages per user and day that become prompts free of charge; the operator pays the "
        "provider for them; 0: the user pays the price that is shown",
    )
    inline_mode: bool = Field(
        default=True,
        description="whether users can share their results and begin orders in any chat by typing the bot's name; "
        "@BotFather must allow it, too: `/setinline`",
    )
    late_cancels_per_day: int = Field(
        default=5,
        ge=0,
        description="orders per user and day that may be cancelled after they were submitted to the provider; "
        "the operator pays what the provider bills for them",
    )
    keep_uploads_days: int = Field(
        default=365, ge=0, description="days after which files of an order can no longer be used again; 0: forever"
    )
    keep_drafts_days: int = Field(default=180, ge=0, description="days after which a draft is deleted; 0: forever")
    keep_audit_days: int = Field(
        default=730, ge=0, description="days after which a line of the audit log is deleted; 0: forever"
    )
    keep_events_days: int = Field(
        default=14,
        ge=0,
        description="days after which the events of a job, which its page in the dashboard shows, are deleted; "
        "0: they are not kept at all",
    )
    keep_promo_uses_days: int = Field(
        default=365, ge=0, description="days after the end of a promo code when its uses are deleted; 0: forever"
    )
    media_url: SecretStr | None = Field(
        default=None,
        description="where copies of API results and files of API clients are kept: `file:///FOLDER`, or "
        "`s3://KEY:SECRET@HOST/BUCKET?region=REGION` for several machines; default: the folder `genlock-media` beside "
        "the SQLite file, or in the working directory",
    )
    sealing_keys: SecretStr | None = Field(
        default=None,
        description="what seals the secrets of API clients' webhooks in the database, such as the output of "
        "`openssl rand -hex 32`; several, separated by commas: the first one seals, the others only open what they "
        "have sealed before; without it they are sealed with the bot's token, and lost with it: see "
        "[the API](../how-to/api.md#secrets-of-webhooks)",
    )
    keep_media_days: int = Field(
        default=30, ge=1, description="days after which copies of API results and files of API clients are deleted"
    )
    api_requests_per_second: int = Field(
        default=100, ge=1, le=10_000, description="requests per API key and second, over all instances"
    )
    api_upload_mb_per_day: int = Field(
        default=2000, ge=20, description="megabytes of files that an account may send through the API per day"
    )
    api_running_max: int = Field(
        default=1000, gt=0, description="jobs that an account may have running at the same time through the API"
    )
    media_private_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="private hosts that media may be fetched from, such as simulators: `host:port`, with commas",
    )
    lease_seconds: float = Field(
        default=30.0, ge=5.0, description="how long an instance keeps a job without renewing its lease"
    )
    poll_seconds: float = Field(
        default=POLL_SECONDS,
        gt=0.0,
        description="time between the first status queries of a task when there are no callbacks; "
        "later queries, and queries in addition to callbacks, are less frequent",
    )
    grace_seconds: float = Field(
        default=120.0,
        ge=1.0,
        description="how long a job waits for its callback when it is unknown whether the provider accepted it; "
        "then the hold is released",
    )
    kie_creates_per_10_seconds: int = Field(
        default=20,
        ge=1,
        description="create calls that Kie.ai allows the account in 10 s; raise it if Kie.ai has agreed to more",
    )
    orphan_expire_seconds: float = Field(
        default=3600.0, gt=0.0, description="how long a callback without a job waits to be matched"
    )
    catalog_overlay: Path | None = Field(
        default=None, description="a file that hides, renames or reprices models: see [the catalog](catalog.md)"
    )
    log_format: LogFormat = Field(default=LogFormat.HUMAN, description="`human` or `json` log lines")

    @field_validator(
        "public_url",
        "telegram_api_url",
        "kie_api_url",
        "kie_upload_url",
        "fal_api_url",
        "fal_rest_url",
        "replicate_api_url",
    )
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

    @field_validator("media_url")
    @classmethod
    def _media(cls, url: SecretStr | None) -> SecretStr | None:
        given = "" if url is None else url.get_secret_value()
        if url is not None and not given.startswith(("file:/", "s3://")):
            raise ValueError("must begin with file:/// or s3://")
        return url

    @field_validator("sealing_keys")
    @classmethod
    def _sealing_keys(cls, keys: SecretStr | None) -> SecretStr | None:
        if keys is not None and any(len(key) < _SEALING_KEY_LENGTH for key in _words(keys.get_secret_value())):
            raise ValueError(
                f"needs keys of at least {_SEALING_KEY_LENGTH} characters, such as of openssl rand -hex 32"
            )
        return keys

    @field_validator("telegram_token")
    @classmethod
    def _token(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not _TOKEN.fullmatch(token.get_secret_value()):
            raise ValueError("is not a bot's token, which looks like 123456789:AA…; copy it from @BotFather again")
        return token

    @field_validator("daily_report_zone")
    @classmethod
    def _zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError("is not a time zone, such as Europe/Berlin or UTC") from None
        return name

    @field_validator("daily_report_chat")
    @classmethod
    def _chat(cls, chat: str) -> str:
        if chat and not _CHAT.fullmatch(chat):
            raise ValueError("must be the id of a chat, or of a chat and a topic, such as -1001234567890:12")
        return chat

    @field_validator("welcome_picture")
    @classmethod
    def _picture(cls, picture: str) -> str:
        if picture not in ("packaged", "off") and not Path(picture).is_file():
            raise ValueError("must be `packaged`, `off`, or the path of a file that exists")
        return picture

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
            raise ValueError("must be STARS:CREDITS, separated by commas, such as 100:130,500:650")
        return {int(stars): int(credits_) for stars, credits_ in pairs}

    @field_validator("star_bonus", mode="before")
    @classmethod
    def _bonus(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        pairs = [word.split(":") for word in re.split(r"[\s,;]+", value) if word]
        if any(len(pair) != 2 or not all(word.isdecimal() and len(word) <= 9 for word in pair) for pair in pairs):  # noqa: PLR2004
            raise ValueError("must be STARS:PERCENT, separated by commas, such as 500:5,1000:10")
        bonus = {int(stars): int(percent) for stars, percent in pairs}
        if any(percent > _BONUS_MAX for percent in bonus.values()):
            raise ValueError(f"gives more than {_BONUS_MAX} percent")
        return bonus

    @field_validator("media_private_hosts")
    @classmethod
    def _hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if any(not _HOST.fullmatch(host) for host in hosts):
            raise ValueError("must be host:port, separated by commas, such as 127.0.0.1:8082")
        return hosts

    @property
    def is_public(self) -> bool:
        """Whether the port can be reached from other machines, by itself or through the public URL."""
        hosts = [self.host, *([urlsplit(self.public_url).hostname or ""] if self.public_url else [])]
        return not all(_is_loopback(host) for host in hosts)

    def sealing_key_list(self) -> list[str]:
        return _words(self.sealing_keys.get_secret_value()) if self.sealing_keys else []

    def secrets(self) -> list[str]:
        """Return every secret of the settings, so that the log can mask them."""
        fields = (getattr(self, name) for name in type(self).model_fields)
        found = [field.get_secret_value() for field in fields if isinstance(field, SecretStr)]
        found += self.sealing_key_list()
        media_url = self.media_url.get_secret_value() if self.media_url else ""
        for password in (*_passwords(self.database_url), *_passwords(media_url)):
            found += [password, unquote(password), unquote_plus(password)]
        return found


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if word]


class ServiceSettings(Settings):
    """The settings of a running service, with the required ones, so that all faults are reported together."""

    telegram_token: SecretStr = Field(
        validation_alias=_TOKEN_NAMES, description=Settings.model_fields["telegram_token"].description
    )

    @field_validator("kie_api_key")
    @classmethod
    def _has_a_provider(cls, key: SecretStr | None, given: ValidationInfo) -> SecretStr | None:
        is_set = key or given.data.get("fal_key") or given.data.get("replicate_token")
        if not is_set and not setting_prefixes():  # an installed plug-in may be the provider
            raise PydanticCustomError("missing", "no provider is configured")
        return key

    @field_validator("public_url")
    @classmethod
    def _is_https(cls, url: str | None, given: ValidationInfo) -> str | None:
        official_api = given.data.get("telegram_api_url") == Settings.model_fields["telegram_api_url"].default
        if url is not None and url.startswith("http://") and official_api:
            raise ValueError(
                "must begin with https://, because Telegram sends updates only to https URLs; or do not set it"
            )
        return url

    @property
    def bot_id(self) -> str:
        """The bot's id, which the token begins with."""
        return self.telegram_token.get_secret_value().partition(":")[0]


Kind = TypeVar("Kind", bound=Settings)


def read_settings(kind: type[Kind]) -> Kind:
    """Return the settings. Raises one Refusal that names every missing and wrong setting."""
    try:
        return kind()
    except ValidationError as error:
        problems = [explain(kind, problem) for problem in error.errors(include_url=False)]
        lines = "\n".join(f"  {line}" for line in (*problems, *unknown_settings_messages()))
        raise Refusal(f"Some settings are missing or wrong:\n{lines}") from None


def unknown_settings() -> Iterator[tuple[str, str | None]]:
    """Yield unknown variables with our prefix, each with the closest known name. Never a value.

    Those of installed plug-ins are left out: only the plug-ins know them.
    """
    known = [name.upper() for name in Settings.model_fields]
    unknown = sorted(given_variables() - {f"{_PREFIX}{one}" for one in known} - _OTHERS)
    prefixes = setting_prefixes() if unknown else ()
    for name in unknown:
        if not name.startswith(prefixes):
            nearest = get_close_matches(name.removeprefix(_PREFIX), known, 1)
            yield name, f"{_PREFIX}{nearest[0]}" if nearest else None


def given_variables() -> set[str]:
    """Return the names of all variables with our prefix in the environment and the `.env` file."""
    sources = (EnvSettingsSource(Settings), DotEnvSettingsSource(Settings))
    names = {name.upper() for source in sources for name in source.env_vars}
    return {name for name in names if name.startswith(_PREFIX)}


def unknown_settings_messages(more: Iterable[tuple[str, str | None]] = ()) -> list[str]:
    """Return a message for each unknown variable, and for `more` of them."""
    return [
        f"Unknown setting {name}: " + (f"did you mean {nearest}?" if nearest else "it has no effect, remove it")
        for name, nearest in (*unknown_settings(), *more)
    ]


def explain(kind: type[BaseSettings], problem: Any, prefix: str = _PREFIX) -> str:
    """Return which variable is wrong, why, and what it means. Never its value."""
    place = str(problem["loc"][0])
    name, field = next(
        (name, field)
        for name, field in kind.model_fields.items()
        if place == name or place in getattr(field.validation_alias, "choices", [])
    )
    if problem["type"] == "missing":
        return f"{prefix}{name.upper()} is not set" + (f": it is {field.description}" if field.description else "")
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
    rest = "" if field.is_required() else f" (default: {field.get_default()!s})"
    is_told = problem["type"] == "value_error" or not field.description
    meaning = "" if is_told else f"; it is {field.description}{rest}"
    return f"{place if place.isupper() else f'{prefix}{name.upper()}'} {message}{meaning}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _passwords(url: str) -> list[str]:
    """Return the passwords in a database URL: before the host, or among the options."""
    pairs = (option.partition("=") for option in url.partition("?")[2].split("&"))
    found: list[str | None] = [value for name, _, value in pairs if unquote_plus(name) in _PASSWORD_OPTIONS]
    with suppress(ValueError):
        found.append(urlsplit(url).password)
    return [password for password in found if password]
