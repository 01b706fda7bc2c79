"""The figures by hour: written by the leader in small steps, read by the dashboard."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile

from genlock.domain.account_set import AccountSet, dump_piece, load_piece
from genlock.domain.figures import DURATION_BOUNDS, Durations, JobFigures, ModelFigures, TopupFigures
from genlock.ports import FiguresProgress, InstanceInfo, NewAccount, NewOrder, NewPayment, Role, SetKey
from genlock.stores.rows import Row, not_null
from genlock.stores.session import Subject

#: successive job ids that are counted together, in a few milliseconds
BLOCK_JOBS = 2000
#: A block with open jobs is counted again after this time, or after an eighth of the time since its last change.
RECHECK_SECONDS = 8.0
#: A block without open jobs is final when its newest job is as old as this: a job with a lower id may be committed
#: later, but not as late as that. What changes in a job that has ended is recorded.
SETTLED_SECONDS = 60.0
#: A statement is cut after 10 s. After twice this time, none can still commit a row with a lower id or an earlier time.
COMMIT_SECONDS = 20.0
HOURS_PER_DAY = 24
#: a month of the figures, counted from 1970
DAYS_PER_MONTH = 30
_JOB_FIGURES = (
    "orders", "delivered", "failed", "cancelled", "refunded", "revenue", "cost", "loss", "last_failed_job",
)  # fmt: skip
_TOPUP_FIGURES = ("topups", "paid_amount", "credits", "repeated", "refunds", "refunded_amount")


class HourlyFigures(Subject):
    async def figures_progress(self) -> FiguresProgress:
        [row] = await self.session.one("job_blocks")
        return FiguresProgress(newest_job=row["newest"], contained_job=row["contained"] or 0)

    async def due_job_blocks(self, limit: int) -> list[int]:
        due = {row["block"] for row in await self.session.one("due_job_blocks", limit=limit, size=BLOCK_JOBS)}
        [row] = await self.session.one("job_blocks")
        if row["newest"] > (row["contained"] or 0):
            # The last block that was counted may have new jobs.
            first = row["last_block"] if row["last_block"] is not None else (row["oldest"] - 1) // BLOCK_JOBS
            last = (row["newest"] - 1) // BLOCK_JOBS
            due |= set(range(first, min(last, first + limit) + 1))
        return sorted(due)

    async def fold_jobs(self, block: int, role: Role) -> bool:
        rows = await self.session.one(
            "fold_jobs", block=block, after=block * BLOCK_JOBS, until=(block + 1) * BLOCK_JOBS,
            bounds=self.session.array(DURATION_BOUNDS), recheck_seconds=RECHECK_SECONDS,
            settled_seconds=SETTLED_SECONDS, holder=role.holder, epoch=role.epoch,
        )  # fmt: skip
        return bool(rows)

    async def changed_topup_hours(self, limit: int) -> list[int]:
        return [row["hour"] for row in await self.session.one("topup_hours", limit=limit)]

    async def fold_topups(self, hour: int, role: Role) -> None:
        await self.session.one("fold_topups", hour=hour, holder=role.holder, epoch=role.epoch)

    async def figure_position(self, name: str) -> str:
        rows = await self.session.one("figure_position", name=name)
        return str(rows[0]["position"]) if rows else ""

    async def orders_after(self, job_id: int, limit: int) -> list[NewOrder]:
        rows = await self.session.one("orders_after", after=job_id, limit=limit, commit_seconds=COMMIT_SECONDS)
        return [
            NewOrder(
                job_id=row["id"], account_id=row["account_id"], bot=row["bot"], hour=row["hour"],
                first=bool(row["first"]),
            )
            for row in takewhile(_is_settled, rows)
        ]  # fmt: skip

    async def accounts_after(self, account_id: int, limit: int) -> list[NewAccount]:
        rows = await self.session.one("accounts_after", after=account_id, limit=limit, commit_seconds=COMMIT_SECONDS)
        return [
            NewAccount(account_id=row["id"], bot=row["bot"], hour=row["hour"]) for row in takewhile(_is_settled, rows)
        ]

    async def payments_after(self, at: int, limit: int) -> list[NewPayment]:
        rows = await self.session.one("payments_after", after=at, limit=limit, commit_seconds=COMMIT_SECONDS)
        return [
            NewPayment(
                account_id=row["account_id"], bot=row["bot"], at=row["at"], repeated=bool(row["repeated"]),
                settled=_is_settled(row),
            )
            for row in rows
        ]  # fmt: skip

    async def account_sets(self, keys: Sequence[SetKey]) -> dict[SetKey, int]:
        if not keys:
            return {}
        rows = await self.session.many("read_account_sets", {}, [_key_params(key) for key in keys])
        return {
            SetKey(kind=row["kind"], span=row["span"], start=row["start"], bot=row["bot"], piece=row["piece"]):
            load_piece(row["members"]) for row in rows
        }  # fmt: skip

    async def save_account_sets(
        self, name: str, expected: str, position: str, sets: Mapping[SetKey, int], role: Role
    ) -> bool:
        shared = {
            "name": name, "expected": expected, "position": position, "holder": role.holder, "epoch": role.epoch,
        }  # fmt: skip
        items = [
            {**_key_params(key), "size": bits.bit_count(), "members": dump_piece(bits)} for key, bits in sets.items()
        ]
        return bool(await self.session.many("save_account_sets", shared, items or [_NO_ITEM]))

    async def clear_figures(self) -> None:
        await self.session.one("clear_figures")

    async def period_figures(
        self, since: int, until: int, hours: int = 1, bot: str | None = None
    ) -> dict[int, JobFigures]:
        rows = await self.session.one("period_figures", since=since, until=until, hours=hours, bot=bot)
        return {row["start"]: _job_figures(row) for row in rows}

    async def provider_figures(self, since: int, until: int, hours: int = 1) -> dict[int, list[ModelFigures]]:
        periods: dict[int, list[ModelFigures]] = defaultdict(list)
        for row in await self.session.one("provider_figures", since=since, until=until, hours=hours):
            periods[row["start"]].append(read_model_figures(row))
        return dict(periods)

    async def model_figures(self, since: int, until: int, bot: str | None = None) -> list[ModelFigures]:
        rows = await self.session.one("model_figures", **_months_days_and_hours(since, until), bot=bot)
        return [read_model_figures(row) for row in rows]

    async def model_durations(
        self, since: int, until: int, bot: str | None = None
    ) -> dict[tuple[str, str], dict[int, int]]:
        days = {"first_day": since // HOURS_PER_DAY, "last_day": -(-until // HOURS_PER_DAY)}
        durations: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
        for row in await self.session.one("model_durations", **days, bot=bot):
            durations[row["provider"], row["model"]][row["bucket"]] = row["jobs"]
        return dict(durations)

    async def delivery_durations(self, since: int, until: int, bot: str | None = None) -> Durations:
        rows = await self.session.one("delivery_durations", since=since, until=until, bot=bot)
        return {row["bucket"]: row["jobs"] for row in rows}

    async def topup_figures(
        self, since: int, until: int, hours: int = 1, bot: str | None = None
    ) -> dict[int, TopupFigures]:
        rows = await self.session.one("topup_figures", since=since, until=until, hours=hours, bot=bot)
        return {row["start"]: read_topup_figures(row) for row in rows}

    async def account_set_sizes(
        self, kind: str, since: int, until: int, hours: int = 1, bot: str | None = None
    ) -> dict[int, int]:
        rows = await self.session.one("account_set_sizes", kind=kind, since=since, until=until, hours=hours, bot=bot)
        return {row["start"]: row["size"] for row in rows}

    async def account_set_days(self, kind: str, first_day: int, last_day: int) -> dict[int, int]:
        rows = await self.session.one("account_set_days", kind=kind, first_day=first_day, last_day=last_day)
        return {row["day"]: row["size"] for row in rows}

    async def account_sets_of_days(self, kind: str, days: Sequence[int]) -> dict[int, AccountSet]:
        pieces: dict[int, dict[int, int]] = defaultdict(dict)
        for row in await self.session.one("account_sets_of_days", kind=kind, days=self.session.array(days)):
            found = pieces[row["day"]]
            found[row["piece"]] = found.get(row["piece"], 0) | load_piece(row["members"])
        return {day: AccountSet(found) for day, found in pieces.items()}

    async def account_set(self, kind: str, since: int, until: int, bot: str | None = None) -> AccountSet:
        rows = await self.session.one("account_set_pieces", kind=kind, **_days_and_hours(since, until), bot=bot)
        pieces: dict[int, int] = {}
        for row in rows:
            pieces[row["piece"]] = pieces.get(row["piece"], 0) | load_piece(row["members"])
        return AccountSet(pieces)

    async def describe_instance(self, instance: str, version: str) -> None:
        await self.session.one("describe_instance", instance=instance, version=version)

    async def instances(self) -> list[InstanceInfo]:
        return [
            InstanceInfo(
                id=row["id"], version=row["version"], started_at=not_null(self.session.time(row["started_at"])),
                silent_seconds=float(row["silent_seconds"]), active=bool(row["active"]),
            )
            for row in await self.session.one("instances")
        ]  # fmt: skip


#: a piece without members, which is not written: a batch needs at least one item
_NO_ITEM = {"kind": "", "span": "", "start": 0, "bot": "", "piece": 0, "size": 0, "members": ""}


def _is_settled(row: Row) -> bool:
    return bool(row["settled"])


def _key_params(key: SetKey) -> dict[str, str | int]:
    return {"kind": key.kind, "span": key.span, "start": key.start, "bot": key.bot, "piece": key.piece}


def read_model_figures(row: Row) -> ModelFigures:
    return ModelFigures(provider=row["provider"], model=row["model"], figures=_job_figures(row))


def _job_figures(row: Row) -> JobFigures:
    return JobFigures(**{name: row[name] for name in _JOB_FIGURES})


def read_topup_figures(row: Row) -> TopupFigures:
    return TopupFigures(**{name: row[name] for name in _TOPUP_FIGURES})


def _days_and_hours(since: int, until: int) -> dict[str, int]:
    """Divide hours into whole days and the hours before and after them."""
    first_day, last_day = -(-since // HOURS_PER_DAY), until // HOURS_PER_DAY
    if last_day <= first_day:
        return {
            "since": since, "hours_before": until, "first_day": 0, "last_day": 0, "hours_after": until, "until": until,
        }  # fmt: skip
    return {
        "since": since, "hours_before": first_day * HOURS_PER_DAY, "first_day": first_day, "last_day": last_day,
        "hours_after": last_day * HOURS_PER_DAY, "until": until,
    }  # fmt: skip


def _months_days_and_hours(since: int, until: int) -> dict[str, int]:
    """Divide hours into periods of 30 days, and the days and hours before and after them."""
    found = _days_and_hours(since, until)
    first_day, last_day = found["first_day"], found["last_day"]
    first_month, last_month = -(-first_day // DAYS_PER_MONTH), last_day // DAYS_PER_MONTH
    if last_month <= first_month:
        return {**found, "days_before": last_day, "days_after": last_day, "first_month": 0, "last_month": 0}
    return {
        **found, "days_before": first_month * DAYS_PER_MONTH, "days_after": last_month * DAYS_PER_MONTH,
        "first_month": first_month, "last_month": last_month,
    }  # fmt: skip
