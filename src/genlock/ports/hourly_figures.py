"""Figures by hour: how the leader keeps them, and how the dashboard reads them.

Hours and days are numbers of full hours and days since 1970, UTC.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from genlock.domain.account_set import AccountSet
from genlock.domain.figures import Durations, JobFigures, ModelFigures, TopupFigures
from genlock.domain.value import value
from genlock.ports.instances import Role


@value
class FiguresProgress:
    """How far the figures have come: the newest job, and the newest one that they contain."""

    newest_job: int
    contained_job: int


@value
class NewOrder:
    job_id: int
    account_id: int
    bot: str
    hour: int
    #: whether the account ordered for the first time
    first: bool


@value
class NewAccount:
    account_id: int
    bot: str
    hour: int


@value
class NewPayment:
    account_id: int
    bot: str
    #: microseconds since 1970
    at: int
    #: whether the account had paid before
    repeated: bool
    #: old enough that no earlier payment can still be committed
    settled: bool


@value
class SetKey:
    """One piece of a stored set of accounts. The span is `hour`, `day` or `ever`."""

    kind: str
    span: str
    start: int
    bot: str
    piece: int


@value
class InstanceInfo:
    id: str
    version: str
    started_at: datetime
    #: seconds since its last heartbeat
    silent_seconds: float
    #: whether it is the leader
    active: bool


#: successive days whose sets of accounts are united when they have passed, from a day whose number is a multiple
UNITED_DAYS = 30


def united_kind(kind: str) -> str:
    """Return the kind of the sets of 30 days, of all bots together; each is stored with its first day."""
    return f"{kind}_30days"


#: from a time until another, within one hour of UTC
TimeSpan = tuple[datetime, datetime]


@value
class PartOrders:
    """The orders and payments of a part of an hour, of all bots."""

    #: all models of a provider together
    providers: tuple[ModelFigures, ...]
    topups: TopupFigures


class HourlyFigureStore(Protocol):
    """Every write is one commit and names the leader's role: the write of a former leader changes nothing."""

    async def figures_progress(self) -> FiguresProgress: ...

    async def due_job_blocks(self, limit: int) -> list[int]:
        """Return the next blocks of job ids that were never counted, or whose figures may have changed since.

        Of either kind there are about `limit` at most.
        """

    async def fold_jobs(self, block: int, role: Role) -> bool:
        """Count the jobs of a block again, and correct the figures by the difference. False: the role is lost."""

    async def changed_topup_hours(self, limit: int) -> list[int]:
        """Return hours of payments whose state changed since they were counted."""

    async def fold_topups(self, hour: int, role: Role) -> None:
        """Count the payments of an hour again."""

    async def figure_position(self, name: str) -> str:
        """Return how far the sets of accounts have been filled from a table; "" at the beginning."""

    async def orders_after(self, job_id: int, limit: int) -> list[NewOrder]:
        """Return the next orders, up to the first before which another one may still be committed."""

    async def accounts_after(self, account_id: int, limit: int) -> list[NewAccount]:
        """Return the next accounts, up to the first before which another one may still be committed."""

    async def payments_after(self, at: int, limit: int) -> list[NewPayment]:
        """Return the next payments after a time in microseconds."""

    async def account_sets(self, keys: Sequence[SetKey]) -> dict[SetKey, int]:
        """Return the bits of these pieces; an empty one is left out."""

    async def save_account_sets(
        self, name: str, expected: str, position: str, sets: Mapping[SetKey, int], role: Role
    ) -> bool:
        """Write pieces and the new position. False: the role is lost, or the position is not the expected one."""

    async def clear_figures(self) -> None:
        """Delete all figures: the leader counts everything again."""

    async def period_figures(
        self, since: int, until: int, hours: int = 1, bot: str | None = None
    ) -> dict[int, JobFigures]:
        """Return the figures of the orders of one bot or of all, from one hour until another.

        They are divided into periods of `hours` each, by the first hour of the period; one without orders is left out.
        """

    async def provider_figures(self, since: int, until: int, hours: int = 1) -> dict[int, list[ModelFigures]]:
        """Return the figures of each provider, of all models together, in successive periods, as `period_figures`."""

    async def model_figures(self, since: int, until: int, bot: str | None = None) -> list[ModelFigures]:
        """Return the figures of each model from one hour until another."""

    async def part_orders(self, parts: Sequence[TimeSpan]) -> list[PartOrders]:
        """Return the orders and payments of parts of hours, which begin and end at quarters of an hour."""

    async def part_models(self, parts: Sequence[TimeSpan]) -> list[Sequence[ModelFigures]]:
        """Count the orders of parts of hours by provider and model, from the rows themselves."""

    async def part_active(self, parts: Sequence[TimeSpan]) -> list[AccountSet]:
        """Return the accounts that ordered in parts of hours."""

    async def part_started(self, parts: Sequence[TimeSpan]) -> list[AccountSet]:
        """Return the accounts of parts of hours: those of the sets of the hours, by the time of each account."""

    async def count_started(self, parts: Sequence[TimeSpan]) -> list[int]:
        """Return how many accounts started in parts of hours."""

    async def part_first_orders(self, parts: Sequence[TimeSpan]) -> list[AccountSet]:
        """Return the accounts whose first order was made in parts of hours."""

    async def model_durations(
        self, since: int, until: int, bot: str | None = None
    ) -> dict[tuple[str, str], dict[int, int]]:
        """Return histograms from the order to the result by provider and model, of the UTC days that are touched."""

    async def delivery_durations(self, since: int, until: int, bot: str | None = None) -> Durations:
        """Return the histogram from the result to the chat, of the orders of these hours."""

    async def topup_figures(
        self, since: int, until: int, hours: int = 1, bot: str | None = None
    ) -> dict[int, TopupFigures]:
        """Return the payments of successive periods, as `period_figures`."""

    async def account_set_sizes(
        self, kind: str, since: int, until: int, hours: int = 1, bot: str | None = None
    ) -> dict[int, int]:
        """Return how many accounts `started`, or made their `first_order`, in successive periods."""

    async def account_set_days(self, kind: str, first_day: int, last_day: int) -> dict[int, int]:
        """Return how many accounts `started` or were `active` on each day, from one until another."""

    async def account_sets_of_days(self, kind: str, days: Sequence[int]) -> dict[int, AccountSet]:
        """Return the accounts that `started` or were `active` on each of these days; an empty set is left out."""

    async def account_set(self, kind: str, since: int, until: int, bot: str | None = None) -> AccountSet:
        """Return the accounts that `started` or were `active` in these hours.

        The other kinds, `ordered`, `topped_up` and `topped_up_again`, have no time: the accounts that ever did.
        """

    async def describe_instance(self, instance: str, version: str) -> None: ...

    async def instances(self) -> list[InstanceInfo]:
        """Return the instances, the longest running first."""
