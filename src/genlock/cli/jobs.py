"""`genlock jobs`: inspect jobs, and act on those that are stuck."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC
from typing import Annotated, Any

import typer

from genlock.cli.options import JobId, Json, Limit, choice
from genlock.cli.output import echo, in_credits, show, show_progress
from genlock.cli.store import audit, with_store
from genlock.domain.errors import JobNotFound
from genlock.ports import Database, Observer, Store

app = typer.Typer(no_args_is_help=True, help="Inspect jobs, and act on those that are stuck.")


@app.command()
def ls(
    state: Annotated[str | None, typer.Option(metavar="STATE", help="Only jobs in this state.")] = None,
    account: Annotated[int | None, typer.Option(metavar="ACCOUNT", help="Only jobs of this account.")] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List jobs, newest first."""
    from genlock.domain.job import State

    wanted = choice(State, state, "--state")
    found = with_store(lambda store, _: store.jobs(state=wanted, account_id=account, limit=limit))
    show(job_rows(found, as_json=as_json), as_json=as_json, empty="No jobs.")


@app.command()
def attention(limit: Limit = 50, as_json: Json = False) -> None:
    """List jobs that need an operator's attention. Exits 1 if there are any."""
    found = with_store(lambda store, _: store.jobs_needing_attention(limit))
    show(job_rows(found, as_json=as_json), as_json=as_json, empty="No job needs attention.")
    raise typer.Exit(1 if found else 0)


@app.command()
def check(as_json: Json = False) -> None:
    """Check the invariants of money, leases and job ends. Reads all rows; exits 1 if one is broken."""
    found = with_store(lambda store, _: store.violations(settled=False, progress=show_progress))
    show([asdict(violation) for violation in found], as_json=as_json, empty="Every invariant holds.")
    raise typer.Exit(1 if found else 0)


@app.command("show")
def show_job(job_id: JobId, as_json: Json = False) -> None:
    """Show what became of one job, its money and its result. With --json, every column."""

    async def read(store: Store, _: Observer) -> tuple[Any, list[Any]]:
        return await store.job(job_id), await store.attempts(job_id)

    job, attempts = with_store(read)
    if job is None:
        raise _no_job(job_id)
    if as_json:
        details = asdict(job) | {"attempt_list": [asdict(attempt) for attempt in attempts]}
        show([details], as_json=True, empty="")
        return
    lines = [*job_lines(job), ("attempts", "\n".join(_attempt(attempt) for attempt in attempts))]
    show([{"field": field, "value": value} for field, value in lines if value], as_json=False, empty="")


def _attempt(attempt: Any) -> str:
    """Return one attempt in words: who was asked, how it ended, and what it cost there."""
    outcome = attempt.outcome.value if attempt.outcome else "running"
    cost = "" if attempt.cost is None else f", cost {in_credits(attempt.cost)}"
    late = f", reported {attempt.late_report} afterwards" if attempt.late_report else ""
    return (
        f"{attempt.number}. {attempt.provider} {attempt.offer}: {outcome} {attempt.error_code}".rstrip() + cost + late
    )


@app.command()
def retry(job_id: JobId) -> None:
    """Run the next step of an unfinished job now.

    A job that waits for your decision is submitted again: if the provider has accepted it before, you pay twice.
    """
    _operate("retry", job_id)


@app.command()
def resend(job_id: JobId) -> None:
    """Send the result of an ended job again, free of charge. The result comes in new messages."""
    _operate("resend", job_id)


@app.command()
def cancel(job_id: JobId) -> None:
    """Cancel a job and release its hold."""
    _operate("cancel", job_id)


def _no_job(job_id: int) -> JobNotFound:
    return JobNotFound(f"There is no job {job_id}. `genlock jobs ls` lists them.")


def _operate(action: str, job_id: int) -> None:
    from genlock.app.engine import make_engine
    from genlock.domain.job import Job
    from genlock.engine import operate

    async def work(store: Database, observer: Observer) -> Job:
        ctx = make_engine(store, observer, providers={}, channels={}).ctx
        try:
            match action:
                case "retry":
                    job = await operate.retry(ctx, job_id, "operator", resubmit=True)
                case "resend":
                    job = await operate.resend(ctx, job_id, "operator")
                case _:
                    job = await operate.cancel(ctx, job_id, "operator")
        except JobNotFound:
            raise _no_job(job_id) from None
        await audit(store, action, f"#{job.id}", bot=job.bot)
        return job

    job = with_store(work)
    echo(f"Job {job.id}: {job.state}, delivery {job.delivery}. A running instance continues it.")


def job_rows(jobs: list[Any], *, as_json: bool) -> list[dict[str, Any]]:
    """Return a table of jobs that fits 80 columns; as JSON, with the names of the columns of the database."""
    if as_json:
        return [_brief(job) for job in jobs]
    rows = [
        {
            "job": job.id,
            "account": job.account_id,
            "model": job.model,
            "state": summary(job),
            "credits": f"{in_credits(job.price)} {_money(job)}",
            "created": job.created_at.replace(microsecond=0),
            "needs attention": job.attention_reason,
        }
        for job in jobs
    ]
    if not any(row["needs attention"] for row in rows):
        return [{name: value for name, value in row.items() if name != "needs attention"} for row in rows]
    return rows


def summary(job: Any) -> str:
    """Return in one word where a job is: its state, or how far its delivery is."""
    if not job.ended or not job.has_result:
        return str(job.state.value)
    return {"pending": "delivering", "sending": "delivering"}.get(job.delivery.value, str(job.delivery.value))


def _money(job: Any) -> str:
    """Return what became of the price, in a word for operators."""
    return {"captured": "charged", "released": "returned"}.get(job.hold_state.value, str(job.hold_state.value))


def job_lines(job: Any) -> Iterator[tuple[str, object]]:
    """Return what an operator needs to know of a job, in the order in which it is asked."""
    yield "job", f"{job.id}, {summary(job)}"
    yield "needs attention", job.attention_reason
    yield "error", f"{job.error_code}: {job.error_text}" if job.error_code else None
    yield "model", f"{job.model} at {job.provider}"
    yield "account", job.account_id
    yield "price", f"{in_credits(job.price)} credits, {_money(job)}"
    yield "provider cost", None if job.cost is None else f"{in_credits(job.cost)} of the provider's credits"
    yield "input", job.input
    yield "result", [part.value for part in job.parts if part.value] if job.has_result else None
    yield "delivery", job.delivery.value
    for name in ("created", "submitted", "ended", "delivered"):
        at = getattr(job, f"{name}_at")
        yield name, at and f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    yield "next step", job.due_at and f"{job.due_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    yield "provider's task", job.task_id
    yield "correlation ID", job.correlation_id


def _brief(job: Any) -> dict[str, Any]:
    return {
        "id": job.id,
        "account": job.account_id,
        "model": job.model,
        "state": job.state.value,
        "delivery": job.delivery.value,
        "price": in_credits(job.price),
        "hold_state": job.hold_state.value,
        "created": job.created_at.replace(microsecond=0),
        "attention": job.attention_reason,
    }
