"""Files that users have sent, and the copies that providers keep of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from genlock.domain.catalog import NOTHING, Model
from genlock.domain.field import FILES, Field


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """A user's file. Orders name it by its key."""

    #: the URL of the first copy that a provider kept of it, or the id of a file of the API
    key: str
    account_id: int
    #: the channel's file id, which does not expire
    file: str
    kind: str
    seconds: float | None
    age_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class UploadCopy:
    """A copy of a user's file that a provider keeps for its models to read."""

    #: of the upload
    key: str
    provider: str
    url: str
    #: until the provider deletes it
    left_seconds: float


def file_urls(model: Model, values: Mapping[str, Any]) -> list[str]:
    """Return the URLs of all files of an order."""
    return [url for field in model.fields for url in field_urls(field, values)]


def field_urls(field: Field, values: Mapping[str, Any]) -> list[str]:
    """Return the URLs of the files in one field of an order."""
    value = values.get(field.name)
    if field.type not in FILES or value in NOTHING:
        return []
    return [str(url) for url in value] if isinstance(value, list) else [str(value)]
