"""AWS Signature Version 4 for requests to S3: some forty lines, where a client library brings dozens of modules."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Credentials:
    key: str
    secret: str = field(repr=False)
    region: str


def sign(
    credentials: Credentials,
    method: str,
    host: str,
    path: str,
    *,
    now: datetime,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    sha256: str = EMPTY_SHA256,
) -> dict[str, str]:
    """Return the headers of a signed request. `path` is not encoded; `sha256` is the hash of the body."""
    time = f"{now:%Y%m%dT%H%M%SZ}"
    signed = {"host": host, "x-amz-content-sha256": sha256, "x-amz-date": time}
    signed |= {name.lower(): " ".join(value.split()) for name, value in (headers or {}).items()}
    names = ";".join(sorted(signed))
    request = "\n".join(
        (
            method,
            encode_path(path),
            encode_query(query or {}),
            *(f"{name}:{signed[name]}" for name in sorted(signed)),
            "",
            names,
            sha256,
        )
    )
    scope = f"{now:%Y%m%d}/{credentials.region}/s3/aws4_request"
    text = "\n".join((ALGORITHM, time, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{credentials.secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    authorization = f"{ALGORITHM} Credential={credentials.key}/{scope},SignedHeaders={names},Signature={signature}"
    return {name: value for name, value in signed.items() if name != "host"} | {"authorization": authorization}


def encode_path(path: str) -> str:
    return quote(path, safe="/-_.~")


def encode_query(query: Mapping[str, str]) -> str:
    return "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))
