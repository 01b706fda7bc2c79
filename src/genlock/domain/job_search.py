"""Searching jobs: filters that combine, a page of what was found, and how many there are."""

import json
from datetime import datetime
from enum import StrEnum
from typing import Any

from genlock.domain.job import OPEN, Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.domain.value import value

#: longer filter values match nothing that we store
FILTER_LENGTH_MAX = 200


@value
class JobFilter:
    """Which jobs are meant. Every filter that is set must match; one with several values matches any of them."""

    states: tuple[State, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    holds: tuple[HoldState, ...] = ()
    model: str = ""
    provider: str = ""
    account_id: int | None = None
    #: ordered at this time or later
    since: datetime | None = None
    #: ordered before this time
    until: datetime | None = None
    error_code: str = ""
    task_id: str = ""
    #: a part of the order's input, in any of the usual capitalisations
    text: str = ""
    #: only jobs that wait for an operator
    attention: bool = False

    @property
    def is_open(self) -> bool:
        """Whether only jobs that have not ended can match."""
        return bool(self.states and set(self.states) <= set(OPEN)) or self.deliveries == (Delivery.NONE,)

    @property
    def is_unfinished(self) -> bool:
        """Whether only jobs can match that are open or not delivered yet."""
        undelivered = {Delivery.NONE, Delivery.PENDING, Delivery.SENDING}
        return bool(self.deliveries and set(self.deliveries) <= undelivered) or self.holds == (HoldState.HELD,)

    @property
    def is_impossible(self) -> bool:
        """Whether a text is looked for that no database can store, so that nothing matches."""
        texts = (self.model, self.provider, self.error_code, self.task_id, self.text)
        return any("\0" in text or _has_surrogates(text) for text in texts)

    @property
    def texts(self) -> tuple[str, ...]:
        """The forms of the text that are looked for in the input, which is JSON.

        Databases fold the case of ASCII only, or depend on their locale.
        """
        forms = (self.text, self.text.lower(), self.text.upper(), self.text[:1].upper() + self.text[1:].lower())
        return tuple(dict.fromkeys(_in_json(form) for form in forms if form))

    def matches(self, job: Job) -> bool:
        return all(
            (
                not self.states or job.state in self.states,
                not self.deliveries or job.delivery in self.deliveries,
                not self.holds or job.hold_state in self.holds,
                self.model in ("", job.model),
                self.provider in ("", job.provider),
                self.account_id in (None, job.account_id),
                self.since is None or job.created_at >= self.since,
                self.until is None or job.created_at < self.until,
                self.error_code in ("", job.error_code),
                self.task_id in ("", job.task_id),
                not self.text or any(form in job.input for form in self.texts),
                not self.attention or job.attention_reason is not None,
            )
        )

    def dump(self) -> dict[str, Any]:
        """Return the filters that are set, as JSON has them."""
        rows = {
            "states": list(self.states),
            "deliveries": list(self.deliveries),
            "holds": list(self.holds),
            "model": self.model,
            "provider": self.provider,
            "account_id": self.account_id,
            "since": self.since and self.since.isoformat(),
            "until": self.until and self.until.isoformat(),
            "error_code": self.error_code,
            "task_id": self.task_id,
            "text": self.text,
            "attention": self.attention,
        }
        return {name: filter_value for name, filter_value in rows.items() if filter_value}

    @classmethod
    def load(cls, stored: dict[str, Any]) -> "JobFilter":
        """Return the filters that `dump` returned."""
        kinds: dict[str, Any] = {"states": State, "deliveries": Delivery, "holds": HoldState}
        values: dict[str, Any] = {
            name: tuple(map(kinds[name], filter_value)) if name in kinds else filter_value
            for name, filter_value in stored.items()
        }
        for name in ("since", "until"):
            if name in values:
                values[name] = datetime.fromisoformat(values[name])
        return cls(**values)


@value
class FoundJobs:
    jobs: tuple[Job, ...]
    #: the cursor of the next page; None if nothing older can match
    before: int | None
    #: when the oldest job that was looked at was ordered, if the time for the search ended before the page was full
    looked_back_to: datetime | None = None


class CountKind(StrEnum):
    EXACT = "exact"
    ABOUT = "about"  #: estimated from a sample
    AT_LEAST = "at_least"  #: counting stopped there
    AT_MOST = "at_most"  #: the sample contained none


@value
class JobCount:
    number: int
    kind: CountKind


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
