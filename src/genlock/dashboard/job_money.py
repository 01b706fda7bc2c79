"""What a job brought and cost, with every attempt that a provider billed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from genlock.domain.attempt import Attempt
from genlock.domain.job import Job
from genlock.domain.money import THOUSANDTHS, HoldState
from genlock.ports import JobSearchStore

#: returns the US dollars per credit of a provider, if known
CreditOf = Callable[[str], Decimal | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bill:
    """What one provider billed for one attempt, in thousandths of its credit."""

    provider: str
    cost: int
    #: the job was given to another provider, or submitted again
    is_abandoned: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class JobMoney:
    """What a job brought and cost. US dollars are None where something is not known."""

    price: int
    hold_state: HoldState
    refunded: bool
    #: in thousandths of the provider's credit; None: not reported, or billed by several providers
    cost: int | None
    revenue_usd: Decimal
    cost_usd: Decimal | None
    #: whether the provider of the current attempt reported what it billed
    is_complete: bool
    #: the part of it for attempts that the job has given up
    abandoned_usd: Decimal | None
    margin_usd: Decimal | None

    @property
    def margin_share(self) -> float | None:
        if self.margin_usd is None or not self.revenue_usd:
            return None
        return float(self.margin_usd / self.revenue_usd * 100)


def job_money(
    job: Job, attempts: Sequence[Attempt], *, refunded: bool, credit_usd: float, credit_of: CreditOf
) -> JobMoney:
    """Return the figures of a job. Only a captured price that was not refunded is revenue."""
    paid = job.hold_state is HoldState.CAPTURED and not refunded
    revenue = Decimal(job.price if paid else 0) / THOUSANDTHS * Decimal(str(credit_usd))
    bills = _bills(job, attempts)
    cost = _dollars(bills, credit_of) if bills else None
    is_complete = any(not bill.is_abandoned for bill in bills)
    return JobMoney(
        price=job.price,
        hold_state=job.hold_state,
        refunded=refunded,
        cost=sum(bill.cost for bill in bills) if len({bill.provider for bill in bills}) == 1 else None,
        revenue_usd=revenue,
        cost_usd=cost,
        is_complete=is_complete,
        abandoned_usd=_dollars((bill for bill in bills if bill.is_abandoned), credit_of),
        margin_usd=revenue - cost if cost is not None and is_complete else None,
    )


def _bills(job: Job, attempts: Iterable[Attempt]) -> list[Bill]:
    """Return what was billed, each once: the row has the cost of its own attempt."""
    found = [] if job.cost is None else [Bill(provider=job.provider, cost=job.cost, is_abandoned=False)]
    for attempt in attempts:
        is_current = attempt.number == job.attempt
        if attempt.cost and not (is_current and job.cost is not None):
            found.append(Bill(provider=attempt.provider, cost=attempt.cost, is_abandoned=not is_current))
    return found


async def costs_usd(store: JobSearchStore, jobs: Sequence[Job], credit_of: CreditOf) -> dict[int, Decimal | None]:
    """Return what the providers billed for each of several jobs, as the page of a job shows it."""
    bills: dict[int, list[Bill]] = {
        job.id: [] if job.cost is None else [Bill(provider=job.provider, cost=job.cost, is_abandoned=False)]
        for job in jobs
    }
    uncertain = [job.id for job in jobs if job.cost is None or job.attempt > 1]
    for cost in await store.attempt_costs(uncertain) if uncertain else ():
        bills[cost.job_id].append(Bill(provider=cost.provider, cost=cost.cost, is_abandoned=True))
    return {job_id: _dollars(found, credit_of) if found else None for job_id, found in bills.items()}


def _dollars(bills: Iterable[Bill], credit_of: CreditOf) -> Decimal | None:
    total = Decimal(0)
    for bill in bills:
        credit = credit_of(bill.provider)
        if credit is None:
            return None
        total += Decimal(bill.cost) / THOUSANDTHS * credit
    return total
