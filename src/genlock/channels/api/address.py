"""The address of an API order: what the client said of it besides the order itself."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field


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
        content = json.loads(text)
        return cls(
            request_hash=content["request"],
            metadata=content.get("metadata", {}),
            may_be_repeated=content.get("repeated", False),
        )
