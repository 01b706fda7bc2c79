"""`genlock jobs`: look at jobs, and help those that are stuck."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from genlock.cli.options import JobId, Json, Limit, choice
from genlock.cli.output import in_credits, show
from genlock.cli.store import with_store
from genlock.ports import Observer, Store

app = typer.Typer(no_args_is_help=True, help="Look at jobs, and help those that are stuck.")


@app.command()
def ls(
    state: Annotated[str | None, typer.Option(help="Only jobs in this state.")] = None,
    person: Annotated[int | None, typer.Option(help="Only jobs of this person.")] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List jobs, newest first."""
    from genlock.domain.job import State

    wanted = choice(State, state)
    found = with_store(lambda store, _: store.jobs(state=wanted, account_id=person, limit=limit))
    show([_brief(job) for job in found], as_json=as_json, empty="No jobs.")


@app.command()
def attention(limit: Limit = 50, as_json: Json = False) -> None:
    """List what an operator should look at; exits 1 if there is anything."""
    found = with_store(lambda store, _: store.jobs_needing_attention(limit))
    show([_brief(job) for job in found], as_json=as_json, empty="Nothing needs attention.")
    raise typer.Exit(1 if found else 0)


@app.command()
def check(as_json: Json = False) -> None:
    """Look for broken invariants: money, leases, ends. Exits 1 if there are any."""
    found = with_store(lambda store, _: store.violations(settled=False))
    show([asdict(violation) for violation in found], as_json=as_json, empty="Every invariant holds.")
    raise typer.Exit(1 if found else 0)


@app.command("show")
def show_job(job_id: JobId, as_json: Json = False) -> None:
    """Show everything about one job."""
    from genlock.domain.errors import JobNotFound

    job = with_store(lambda store, _: store.job(job_id))
    if job is None:
        raise JobNotFound(f"there is no job {job_id}")
    whole = asdict(job)
    if as_json:
        show([whole], as_json=True, empty="")
        return
    for field in ("price", "cost"):
        whole[field] = None if whole[field] is None else f"{in_credits(whole[field])} credits"
    for field, value in whole.items():
        if isinstance(value, datetime):
            whole[field] = f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    show([{"field": field, "value": value} for field, value in whole.items()], as_json=False, empty="")


@app.command()
def retry(job_id: JobId) -> None:
    """Do the next step of an unfinished job now."""
    _operate("retry", job_id)


@app.command()
def resend(job_id: JobId) -> None:
    """Show an ended job's result again, on new messages, free."""
    _operate("resend", job_id)


@app.command()
def cancel(job_id: JobId) -> None:
    """Stop waiting for a job and give the money back."""
    _operate("cancel", job_id)


def _operate(action: str, job_id: int) -> None:
    from genlock.app import make_engine
    from genlock.domain.job import Job
    from genlock.engine import operate

    async def work(store: Store, observer: Observer) -> Job:
        ctx = make_engine(store, observer, providers={}, channels={}).ctx
        act = {"retry": operate.retry, "resend": operate.resend, "cancel": operate.cancel}[action]
        return await act(ctx, job_id, "operator")

    job = with_store(work)
    typer.echo(f"Job {job.id}: {job.state}, delivery {job.delivery}. A running instance goes on with it.")


def _brief(job: Any) -> dict[str, Any]:
    return {
        "id": job.id,
        "person": job.account_id,
        "model": job.model,
        "state": job.state.value,
        "delivery": job.delivery.value,
        "price": in_credits(job.price),
        "hold_state": job.hold_state.value,
        "created": job.created_at.replace(microsecond=0),
        "attention": job.attention_reason,
    }
