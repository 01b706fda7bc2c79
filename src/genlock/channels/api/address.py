"""The address of an API order: what the client said of it besides the order itself."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

#: Clients ask for the same jobs again and again: this many short addresses are kept parsed.
CACHED_MAX, CACHED_LENGTH_MAX = 2000, 500


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiAddress:
    #: the hash of the request, to tell a repeated request from another one under the same idempotency key
    request_hash: str
    #: the client's own notes, returned with the job
    metadata: Mapping[str, str] = field(default_factory=dict)
    #: whether the order was made by a request that may be the repetition of another one, and had no idempotency key
    may_be_repeated: bool = False

    def __str__(self) -> str:
        content: dict[str, object] = {"request": self.request_hash}
        if self.metadata:
            content["metadata"] = dict(self.metadata)
        if self.may_be_repeated:
            content["repeated"] = True
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> "ApiAddress":
        """Parse what `str` returned. Raises ValueError."""
        return _parse(text) if len(text) <= CACHED_LENGTH_MAX else _parse.__wrapped__(text)


@lru_cache(maxsize=CACHED_MAX)
def _parse(text: str) -> ApiAddress:
    content = json.loads(text)
    return ApiAddress(
        request_hash=content["request"],
        metadata=MappingProxyType(content.get("metadata", {})),
        may_be_repeated=content.get("repeated", False),
    )
