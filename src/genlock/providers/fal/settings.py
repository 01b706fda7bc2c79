"""What an operator sets to use fal."""

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr

from genlock.ports.base_url import BaseUrl

API_URL = "https://queue.fal.run"
REST_URL = "https://rest.fal.ai"


class FalSettings(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    key: SecretStr = Field(
        validation_alias=AliasChoices("GENLOCK_FAL_KEY", "FAL_KEY"),
        description="the API key of the fal account, from its dashboard; without it fal makes nothing",
    )
    admin_key: SecretStr | None = Field(
        default=None,
        description="a fal key with the scope ADMIN, only to read the credit left: fal shows it to no other key",
    )
    concurrency: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="how many generations may be at fal at once, for all instances together; further orders wait here, "
        "or another provider makes them; without it fal queues them",
    )
    api_url: BaseUrl = Field(default=API_URL, description="base URL of fal's queue")
    rest_url: BaseUrl = Field(
        default=REST_URL, description="base URL of fal's storage and of the keys of its callbacks"
    )
