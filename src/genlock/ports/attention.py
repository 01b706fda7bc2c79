"""What waits for an operator, by reason."""

from collections.abc import Mapping
from typing import Protocol

from genlock.domain.anomaly import Anomaly, AnomalyKind
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import AttentionCode, Job
from genlock.domain.update import Update
from genlock.ports.kv import KvEntry


class AttentionStore(Protocol):
    """Lists are newest first; `before` is the id where the next page begins. A write says whether it took effect."""

    async def attention_counts(self, limit: int, refund_seconds: float) -> Mapping[str, int]:
        """Count by reason, each up to `limit`.

        The reasons are the attention codes of jobs, the kinds of anomalies, `expired` and `unreadable` callbacks,
        `dead_update`, `cost_above_price`, and `open_refund`: refunds that are older than `refund_seconds`.
        """

    async def jobs_with_attention(self, code: AttentionCode, limit: int, before: int | None = None) -> list[Job]: ...

    async def kept_callbacks(
        self, state: InboxState, limit: int, length: int, before: int | None = None
    ) -> list[Callback]:
        """Return expired or unreadable callbacks, with up to `length` bytes of their bodies."""

    async def retry_callback(self, callback_id: int) -> bool:
        """Have an expired or unreadable callback read again."""

    async def close_callback(self, callback_id: int, note: str) -> bool:
        """Take an expired or unreadable callback off the operator's list."""

    async def dead_updates(self, limit: int, before: int | None = None) -> list[Update]: ...

    async def discard_update(self, update: int, note: str) -> bool:
        """Give up a dead update: it is not handled any more."""

    async def anomalies(self, kind: AnomalyKind, limit: int, before: int | None = None) -> list[Anomaly]: ...

    async def job_anomalies(self, job_id: int) -> list[Anomaly]:
        """Return the anomalies of a job that no operator has handled."""

    async def handle_anomaly(self, anomaly_id: int) -> bool:
        """Record that an operator has handled an anomaly, once."""

    async def kv_list_of_all_bots(self, beginning: str, limit: int) -> list[KvEntry]:
        """Return the entries of all bots whose key starts with `beginning`, oldest first."""
