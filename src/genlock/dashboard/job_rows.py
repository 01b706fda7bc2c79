"""An order as a row of a list."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from genlock.dashboard.job_money import CreditOf, costs_usd
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.ports import JobSearchStore

PROMPT_LENGTH = 120
#: fields that have the user's words in most models, the best first
_PROMPT_FIELDS = ("prompt", "text", "lyrics", "description")
_DIGEST_LENGTH = 8
STATE_TONES: Mapping[State, str] = {
    State.QUEUED: "busy", State.SUBMITTING: "busy", State.RUNNING: "busy", State.SUCCEEDED: "good",
    State.FAILED: "bad", State.CANCELLED: "", State.EXPIRED: "bad",
}  # fmt: skip
HOLD_TONES: Mapping[HoldState, str] = {
    HoldState.FREE: "", HoldState.HELD: "busy", HoldState.CAPTURED: "good", HoldState.RELEASED: "",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class JobRow:
    job: Job
    title: str
    user: str
    #: the first words; empty if the viewer may not read them
    prompt: str
    refunded: bool
    #: what every provider billed for it, in US dollars; None: not reported, or the value of a credit is not known
    cost_usd: Decimal | None

    @property
    def state_tone(self) -> str:
        return STATE_TONES[self.job.state]

    @property
    def hold_tone(self) -> str:
        return HOLD_TONES[self.job.hold_state]

    @property
    def is_changing(self) -> bool:
        """Whether the row will change by itself."""
        return not self.job.ended or self.job.delivery in (Delivery.PENDING, Delivery.SENDING)

    @property
    def seconds(self) -> float:
        """How long the order took, or has taken so far."""
        return ((self.job.ended_at or self.job.read_at) - self.job.created_at).total_seconds()

    @property
    def digest(self) -> str:
        """Changes when something changes that the row shows; the seconds of an open order do not count."""
        job = self.job
        shown = (
            job.state,
            job.delivery,
            job.hold_state,
            job.error_code,
            job.cost,
            job.attention_reason,
            self.refunded,
            self.cost_usd,
        )
        return hashlib.sha256(repr(shown).encode()).hexdigest()[:_DIGEST_LENGTH]


async def make_rows(
    store: JobSearchStore, jobs: Sequence[Job], titles: Mapping[str, str], credit_of: CreditOf, *, see_prompts: bool
) -> list[JobRow]:
    """Return jobs with what a list shows besides; three statements, however many jobs."""
    if not jobs:
        return []
    names = await store.account_names({job.account_id for job in jobs})
    captured = [job.id for job in jobs if job.hold_state is HoldState.CAPTURED]
    refunded = await store.refunded_jobs(captured) if captured else frozenset()
    costs = await costs_usd(store, jobs, credit_of)
    return [
        JobRow(
            job=job,
            title=titles.get(job.model, job.model),
            user=names.get(job.account_id, f"#{job.account_id}"),
            prompt=prompt_of(job) if see_prompts else "",
            refunded=job.id in refunded,
            cost_usd=costs[job.id],
        )
        for job in jobs
    ]


def prompt_of(job: Job) -> str:
    """Return the user's words, on one line; empty if the order had none or they were erased."""
    values = _values(job.input)
    texts = [values[name] for name in _PROMPT_FIELDS if isinstance(values.get(name), str)]
    texts += [text for text in values.values() if isinstance(text, str) and " " in text]
    return " ".join(next(iter(texts), "")[: 4 * PROMPT_LENGTH].split())


def _values(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
