"""What an operator sets to use Kie.ai."""

from typing import Annotated

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr

from genlock.ports.base_url import BaseUrl

API_URL = "https://api.kie.ai"
UPLOAD_URL = "https://kieai.redpandaai.co"
#: create calls that Kie.ai allows an account in 10 s, unless it has agreed to more
CREATES_PER_10_SECONDS = 20


ApiUrl = Annotated[BaseUrl, Field(description="base URL of Kie.ai's API")]


class KiePublicSettings(BaseModel):
    """What the public lists of models and prices are read with."""

    api_url: ApiUrl = API_URL


class KieSettings(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    api_key: SecretStr = Field(
        validation_alias=AliasChoices("GENLOCK_KIE_API_KEY", "KIE_API_KEY"),
        description="the API key of the Kie.ai account, from its API key page",
    )
    api_url: ApiUrl = API_URL
    upload_url: BaseUrl = Field(default=UPLOAD_URL, description="base URL of Kie.ai's file upload")
    webhook_key: SecretStr | None = Field(
        default=None,
        description="the key that Kie.ai signs callbacks with; when it is set, unsigned callbacks are refused",
    )
    creates_per_10_seconds: int = Field(
        default=CREATES_PER_10_SECONDS,
        ge=1,
        description="create calls that Kie.ai allows the account in 10 s; raise it if Kie.ai has agreed to more",
    )
