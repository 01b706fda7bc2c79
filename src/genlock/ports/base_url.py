"""The type of a setting that is the base URL of an HTTP API."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator


def _check(url: str) -> str:
    """Return the URL without a slash at its end. Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ValueError("must begin with https:// or http:// and name a host")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("must be a plain address, without a password, ? or #")
    return url.rstrip("/")


#: the type of a setting that is the base URL of an HTTP API
BaseUrl = Annotated[str, AfterValidator(_check)]
