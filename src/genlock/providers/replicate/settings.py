"""What an operator sets to use Replicate."""

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr

from genlock.ports.base_url import BaseUrl

API_URL = "https://api.replicate.com"


class ReplicateSettings(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    token: SecretStr = Field(
        validation_alias=AliasChoices("GENLOCK_REPLICATE_TOKEN", "REPLICATE_API_TOKEN"),
        description="the API token of the Replicate account; without it Replicate makes nothing",
    )
    api_url: BaseUrl = Field(default=API_URL, description="base URL of Replicate's API")
