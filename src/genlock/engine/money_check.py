"""The money check: the leader compares jobs, balances and ledger in small steps, for as long as it runs.

Three things are checked in every round, each with a bounded number of rows:

- the **aged** jobs: each job once, an hour after its order, when it has normally ended, together with its account;
- a step of the **rolling** pass over all jobs and all accounts, which finds what was changed later;
- the violations found before, until they are repaired.

The positions are stored, so that another leader continues there. What is stored is also the proof that the check runs:
an alarm is raised when it gets old.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from genlock.domain.events import Event
from genlock.domain.value import value
from genlock.engine.context import EngineContext
from genlock.engine.leader import Leader
from genlock.ports import Database, Violation

PERIOD_SECONDS = 10.0
#: a job is checked at this age: nearly all have ended by then
AGED_SECONDS = 3600.0
#: jobs in one step of the aged jobs; a leader that is behind makes several steps in a round
AGED_JOBS = 200
STEPS_MAX = 20
PAUSE_SECONDS = 0.05
ROLLING_JOBS = 2000
ROLLING_ACCOUNTS = 100
#: violations that are remembered and checked again; more than these are only counted in the log
REMEMBERED = 100
POSITION = "money_check"
COUNT = "ledger_violations"


@dataclass(kw_only=True)
class _Position:
    """How far the check has come."""

    aged_job: int = 0
    rolling_job: int = 0
    rolling_account: int = 0
    #: what is broken: the kind and the id of the row
    broken: list[list[str]] = field(default_factory=list)


@value
class MoneyCheckState:
    """How far the check has come, and what it found broken."""

    age_seconds: float
    rolling_job: int
    rolling_account: int
    count: int
    #: the kind of a row (job, account) and its id
    broken: Sequence[tuple[str, str]]


async def read_state(store: Database) -> MoneyCheckState | None:
    """Return the state of the check; None if no leader has checked yet."""
    entry, count = await store.kv_get(POSITION), await store.kv_get(COUNT)
    if entry is None:
        return None
    position = _Position(**json.loads(entry.value))
    return MoneyCheckState(
        age_seconds=entry.age,
        rolling_job=position.rolling_job,
        rolling_account=position.rolling_account,
        count=int(count.value) if count else 0,
        broken=[(kind, subject) for kind, subject in position.broken],
    )


@dataclass(frozen=True)
class MoneyCheck:
    ctx: EngineContext
    leader: Leader
    store: Database

    async def round(self) -> None:
        """Check the next rows and store the position. Safe to repeat, also on two instances: it only reads."""
        if self.leader.role is None:
            return
        entry = await self.store.kv_get(POSITION)
        position = _Position(**json.loads(entry.value)) if entry else await self._start()
        broken = {tuple(subject) for subject in position.broken if await self._is_broken(*subject)}
        broken |= await self._aged(position) | await self._rolling(position)
        position.broken = [list(subject) for subject in sorted(broken)[:REMEMBERED]]
        await self.store.kv_put(COUNT, str(len(broken)))
        await self.store.kv_put(POSITION, json.dumps(asdict(position)))

    async def _start(self) -> _Position:
        """Begin at the newest job: the rolling pass checks the older ones."""
        newest = await self.store.jobs(limit=1)
        return _Position(aged_job=newest[0].id if newest else 0)

    async def _is_broken(self, kind: str, subject: str) -> bool:
        check = self.store.job_violations if kind == "job" else self.store.wallet_violations
        return bool(await check(int(subject) - 1, int(subject)))

    async def _aged(self, position: _Position) -> set[tuple[str, ...]]:
        """Check the jobs that have reached the age, and their accounts."""
        found: set[tuple[str, ...]] = set()
        for _ in range(STEPS_MAX):
            jobs = await self.store.aged_jobs(position.aged_job, AGED_SECONDS, AGED_JOBS)
            if not jobs:
                break
            found |= self._report("job", await self.store.job_violations(position.aged_job, jobs[-1].job_id))
            for account_id, orders in sorted(Counter(job.account_id for job in jobs).items()):
                found |= await self._check_accounts(account_id - 1, account_id, with_checkpoint=orders > 1)
            position.aged_job = jobs[-1].job_id
            await asyncio.sleep(PAUSE_SECONDS)
        return found

    async def _rolling(self, position: _Position) -> set[tuple[str, ...]]:
        """Check the next rows of all jobs and all accounts; after the last, begin with the first."""
        last_job = await self.store.next_job_id(position.rolling_job, ROLLING_JOBS)
        found: set[tuple[str, ...]] = set()
        if last_job is not None:
            found |= self._report("job", await self.store.job_violations(position.rolling_job, last_job))
        position.rolling_job = last_job or 0
        last_account = await self.store.next_account_id(position.rolling_account, ROLLING_ACCOUNTS)
        if last_account is not None:
            found |= await self._check_accounts(position.rolling_account, last_account, with_checkpoint=True)
        position.rolling_account = last_account or 0
        return found

    async def _check_accounts(self, after: int, until: int, *, with_checkpoint: bool) -> set[tuple[str, ...]]:
        """Check the accounts in a range of ids, and store how far those with many entries are verified.

        An account that orders all the time needs it between two visits of the rolling pass, which are hours apart:
        each check of its aged jobs would read more entries.
        """
        wrong = await self.store.wallet_violations(after, until)
        if with_checkpoint and not wrong:
            await self.store.save_ledger_checkpoints(after, until)
        return self._report("account", wrong)

    def _report(self, kind: str, violations: list[Violation]) -> set[tuple[str, ...]]:
        for violation in violations[:10]:
            self.ctx.observer.event(
                Event.ATTENTION, rule=violation.rule, subject=violation.subject, detail=violation.detail
            )
        return {(kind, violation.subject) for violation in violations}
