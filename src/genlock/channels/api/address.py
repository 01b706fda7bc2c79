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

    def __str__(self) -> str:
        content = {"request": self.request_hash, **({"metadata": dict(self.metadata)} if self.metadata else {})}
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> "ApiAddress":
        """Parse what `str` returned. Raises ValueError."""
        content = json.loads(text)
        return cls(request_hash=content["request"], metadata=content.get("metadata", {}))
