"""The settings of a running service."""

from typing import ClassVar

from pydantic import Field, ValidationInfo, field_validator

from genlock.settings.fields import TOKEN_NAMES, Settings
from genlock.settings.values import BotToken


class ServiceSettings(Settings):
    """With the required ones, so that all faults are reported together."""

    needs_provider: ClassVar[bool] = True

    telegram_token: BotToken = Field(
        validation_alias=TOKEN_NAMES, description=Settings.model_fields["telegram_token"].description
    )

    @field_validator("public_url")
    @classmethod
    def _is_https(cls, url: str | None, info: ValidationInfo) -> str | None:
        official_api = info.data.get("telegram_api_url") == Settings.model_fields["telegram_api_url"].default
        if url is not None and url.startswith("http://") and official_api:
            raise ValueError(
                "must begin with https://, because Telegram sends updates only to https URLs; or do not set it"
            )
        return url

    @property
    def bot_id(self) -> str:
        """The bot's id, which the token begins with."""
        return self.telegram_token.get_secret_value().partition(":")[0]
