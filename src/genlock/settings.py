"""Settings, from the environment and a `.env` file. The one place that knows their names."""

from enum import StrEnum
from pathlib import Path

from pydantic import AliasChoices, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from genlock.domain.retry import POLL_SECONDS


class LogFormat(StrEnum):
    HUMAN = "human"
    JSON = "json"


class Settings(BaseSettings):
    """Each field is one variable, GENLOCK_ in front; where a platform sets a plain name, that is taken too."""

    model_config = SettingsConfigDict(
        env_prefix="GENLOCK_", env_file=".env", extra="ignore", populate_by_name=True, env_ignore_empty=True
    )

    database_url: str = Field(
        default="sqlite:///genlock.db",
        validation_alias=AliasChoices("GENLOCK_DATABASE_URL", "DATABASE_URL"),
        description="where jobs and money are kept: `sqlite:///FILE` for one process, `postgresql://…` for many",
    )
    public_url: str | None = Field(
        default=None,
        validation_alias=AliasChoices("GENLOCK_PUBLIC_URL", "RENDER_EXTERNAL_URL"),
        description="where the world reaches us; without it the provider is only asked, it cannot call back",
    )
    kie_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("GENLOCK_KIE_API_KEY", "KIE_API_KEY"),
        description="the key of the account at Kie.ai",
    )
    kie_api_url: str = Field(default="https://api.kie.ai", description="where Kie.ai takes orders")
    kie_upload_url: str = Field(default="https://kieai.redpandaai.co", description="where Kie.ai takes files")
    kie_webhook_key: SecretStr | None = Field(
        default=None, description="the key that Kie.ai signs callbacks with; once set, unsigned ones are refused"
    )
    poll_seconds: float = Field(
        default=POLL_SECONDS,
        gt=0.0,
        description="the pause between the first status queries of a task where no callbacks come; "
        "later ones, and those that are only the net under callbacks, are longer",
    )
    lease_seconds: float = Field(
        default=30.0, ge=5.0, description="how long work is reserved for an instance that does not renew it"
    )
    orphan_expire_seconds: float = Field(
        default=3600.0, gt=0.0, description="how long a callback without a job waits for its job"
    )
    markup: float = Field(default=2.0, gt=0.0, description="how many times the provider's price a person pays")
    credit_usd: float = Field(default=0.01, gt=0.0, description="what one of our credits costs a person, in US dollars")
    catalog_overlay: Path | None = Field(
        default=None, description="a file that hides, renames or prices models: see [the catalog](../catalog.md)"
    )
    log_format: LogFormat = Field(default=LogFormat.HUMAN, description="`human` or `json` log lines")

    @field_validator("public_url", "kie_api_url", "kie_upload_url")
    @classmethod
    def _address(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("https://", "http://")):
            raise ValueError("must begin with https:// or http://")
        return url.rstrip("/") if url else None
