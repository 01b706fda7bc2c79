"""The settings of the service itself, as every command reads them."""

from contextlib import suppress
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, unquote_plus, urlsplit

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from genlock.domain.retry import POLL_SECONDS
from genlock.entry_points import PREFIX
from genlock.ports.base_url import BaseUrl
from genlock.settings.declared import ENV_FILE, read_built_in, secrets_in
from genlock.settings.values import (
    BotToken,
    DatabaseUrl,
    MediaUrl,
    Picture,
    PrivateHosts,
    ReportChat,
    SealingKeys,
    StarBonus,
    StarPackages,
    TelegramIds,
    TimeZone,
    words,
)

TOKEN_NAMES = AliasChoices("GENLOCK_TELEGRAM_TOKEN", "TELEGRAM_BOT_TOKEN")
_PASSWORD_OPTIONS = ("password", "sslpassword")


class LogFormat(StrEnum):
    HUMAN = "human"
    JSON = "json"


class Settings(BaseSettings):
    """Each field is one variable with the prefix GENLOCK_; names that platforms set are aliases.

    Providers and plug-ins declare their own settings: see `genlock.settings.declared`.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=ENV_FILE,
        extra="ignore",
        populate_by_name=True,
        env_ignore_empty=True,
        hide_input_in_errors=True,
    )

    #: whether it is a fault that no provider is configured
    needs_provider: ClassVar[bool] = False

    telegram_token: BotToken | None = Field(
        default=None,
        validation_alias=TOKEN_NAMES,
        description="the bot's token from @BotFather",
    )
    telegram_api_url: BaseUrl = Field(default="https://api.telegram.org", description="base URL of the Bot API")
    database_url: DatabaseUrl = Field(
        default="sqlite:///genlock.db",
        validation_alias=AliasChoices("GENLOCK_DATABASE_URL", "DATABASE_URL"),
        description="the database of jobs and money: `sqlite:///FILE` for one process, `postgresql://…` for several",
    )
    public_url: BaseUrl | None = Field(
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
    admin_ids: TelegramIds = Field(
        default=(), description="Telegram ids of the operators, separated by commas; they also receive the alarms"
    )
    daily_report_hour: int | None = Field(
        default=None,
        ge=0,
        le=23,
        description="the hour at which operators get the report of the last 24 hours in the chat; "
        "without it there is none",
    )
    daily_report_zone: TimeZone = Field(
        default="UTC", description="the time zone of `GENLOCK_DAILY_REPORT_HOUR`, such as `Europe/Berlin`"
    )
    daily_report_chat: ReportChat = Field(
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
    welcome_picture: Picture = Field(
        default="packaged",
        description="the picture that a new user sees first: `packaged`, `off`, or the path of a JPEG or PNG file",
    )
    free_per_day: int = Field(default=0, ge=0, description="free runs per user and day, on the models marked `free`")
    markup: float = Field(default=2.0, gt=0.0, description="price for users as a multiple of the provider's price")
    credit_usd: float = Field(default=0.01, gt=0.0, description="price of one of our credits for users, in US dollars")
    star_packages: StarPackages = Field(
        default={},
        description="packages sold for Telegram Stars, as `STARS:CREDITS` separated by commas; "
        "default: six sizes at the price that the operator receives for a star",
    )
    star_bonus: StarBonus = Field(
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
        description="voice messages of up to two minutes that become prompts free of charge, per user and day; the "
        "operator pays the provider for them; 0: the user pays the price that is shown",
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
    keep_drafts_days: int = Field(default=180, ge=0, description="days after which a draft is emptied; 0: forever")
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
    media_url: MediaUrl | None = Field(
        default=None,
        description="where copies of API results and files of API clients are kept: `file:///FOLDER`, or "
        "`s3://KEY:SECRET@HOST/BUCKET?region=REGION` for several machines; default: the folder `genlock-media` beside "
        "the SQLite file, or in the working directory",
    )
    sealing_keys: SealingKeys | None = Field(
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
    media_private_hosts: PrivateHosts = Field(
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
    orphan_expire_seconds: float = Field(
        default=3600.0, gt=0.0, description="how long a callback without a job waits to be matched"
    )
    catalog_overlay: Path | None = Field(
        default=None, description="a file that hides, renames or reprices models: see [the catalog](catalog.md)"
    )
    log_format: LogFormat = Field(default=LogFormat.HUMAN, description="`human` or `json` log lines")

    @property
    def is_public(self) -> bool:
        """Whether the port can be reached from other machines, by itself or through the public URL."""
        hosts = [self.host, *([urlsplit(self.public_url).hostname or ""] if self.public_url else [])]
        return not all(_is_loopback(host) for host in hosts)

    def sealing_key_list(self) -> list[str]:
        return words(self.sealing_keys.get_secret_value()) if self.sealing_keys else []

    def secrets(self) -> list[str]:
        """Return every secret of the settings and of the providers that this package brings, for the log to mask."""
        found = [*secrets_in(self), *self.sealing_key_list()]
        media_url = self.media_url.get_secret_value() if self.media_url else ""
        for password in (*_passwords(self.database_url), *_passwords(media_url)):
            found += [password, unquote(password), unquote_plus(password)]
        for read in read_built_in().values():
            found += read.secrets()
        return found


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
