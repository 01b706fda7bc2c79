"""The command line: what an operator can ask and do."""

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from genlock import __version__
from genlock.domain.errors import GenlockError
from genlock.ports import Observer, Store, WholeStore

T = TypeVar("T")
#: columns of a table that no terminal shows
WIDE = 10_000

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Generations, delivered once and charged once.")
jobs = typer.Typer(no_args_is_help=True, help="Look at jobs, and help those that are stuck.")
orphans = typer.Typer(no_args_is_help=True, help="Callbacks whose job is not known.")
updates = typer.Typer(no_args_is_help=True, help="Messages and presses of the chat.")
wallet = typer.Typer(no_args_is_help=True, help="People's money.")
models = typer.Typer(no_args_is_help=True, help="What is on sale: models, their inputs and prices.")
app.add_typer(jobs, name="jobs")
app.add_typer(orphans, name="orphans")
app.add_typer(updates, name="updates")
app.add_typer(wallet, name="wallet")
app.add_typer(models, name="models")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Limit = Annotated[int, typer.Option(help="How many at the most.", min=1, max=1000)]
StoreName = Annotated[str, typer.Option("--store", help="sqlite or postgres.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(help="A PostgreSQL to use; without it one is started.", envvar="GENLOCK_BENCH_DATABASE_URL"),
]


def _tell_version(wanted: bool) -> None:  # noqa: FBT001 - a flag of the command
    if wanted:
        typer.echo(f"genlock {__version__}")
        raise typer.Exit


@app.callback()
def genlock(
    _: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """Generations, delivered once and charged once."""


def main() -> None:
    """Run a command; what went wrong is said in a sentence."""
    try:
        app()
    except GenlockError as error:
        typer.secho(str(error), fg="red", err=True)
        sys.exit(1)


def with_store(work: Callable[[WholeStore, Observer], Awaitable[T]], *, existing: bool = True) -> T:
    """Open the configured store, do something with it, close it."""
    from genlock.app import open_store
    from genlock.log import LogObserver, Mask, set_up_logging
    from genlock.settings import LogFormat, Settings, read_settings

    settings = read_settings(Settings)
    as_json = settings.log_format is LogFormat.JSON
    set_up_logging(Mask(settings.secrets()), as_json=as_json, stream=sys.stderr, level=logging.WARNING)
    observer = LogObserver(logging.getLogger("genlock"), as_json=as_json)

    async def run() -> T:
        store = await open_store(settings.database_url, observer=observer, beside=True, existing=existing)
        try:
            return await work(store, observer)
        finally:
            await store.close()

    return asyncio.run(run())


def show(rows: list[dict[str, Any]], *, as_json: bool, empty: str) -> None:
    """Print rows as JSON or as a table."""
    if as_json:
        typer.echo(json.dumps(rows, default=_plain, ensure_ascii=False, indent=2))
        return
    if not rows:
        typer.echo(empty)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in rows[0]:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_told(value)) for value in row.values()))
    # Where nobody looks, somebody searches: no column is cut or folded there.
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _told(value: object) -> str:
    """A value as one reads it in a table."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{value.astimezone(UTC):%d %b %H:%M}"
        case dict():
            return ", ".join(f"{key} {said}" for key, one in value.items() if (said := _told(one)) not in {"", "no"})
        case list() | tuple():
            return "\n".join(_told(one) for one in value)
        case _:
            return str(value)


@app.command()
def serve() -> None:
    """Run the bot: web doors and workers in one process. SIGTERM or Ctrl-C ends it in order, a second one at once."""
    from genlock.settings import ServiceSettings, read_settings

    settings = read_settings(ServiceSettings)
    from genlock.serve import run

    raise typer.Exit(run(settings))


@app.command()
def sandbox(
    postgres: Annotated[bool, typer.Option("--postgres", help="On a real PostgreSQL of its own, not SQLite.")] = False,
    instances: Annotated[int, typer.Option(help="How many processes; several need --postgres.", min=1, max=9)] = 1,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin with an empty world and keep nothing of it.")] = False,
    state: Annotated[Path, typer.Option(help="The folder that keeps the world between runs.")] = Path(".sandbox"),
    port: Annotated[
        int | None, typer.Option(help="The chat page's port, the first of four in a row. 8080 if free, else any.")
    ] = None,
    speed: Annotated[float, typer.Option(help="How many times faster models work than they do.", min=0.1)] = 6.0,
) -> None:
    """Run everything on this machine, without any account: simulators, service, and a chat page in the browser."""
    from genlock.sandbox.play import Options, run

    options = Options(postgres=postgres, instances=instances, state=None if fresh else state, port=port, speed=speed)
    raise typer.Exit(run(options))


@app.command()
def smoke(as_json: Json = False) -> None:
    """Take one order through the product and both simulators, in nine phases. Exits 1 if one does not hold."""
    from genlock.sandbox.smoke import run

    raise typer.Exit(run(as_json=as_json))


@app.command()
def chaos(  # noqa: PLR0913, PLR0917 - every kind of trouble is an option
    jobs: Annotated[int, typer.Option(help="How many orders people make.", min=1)] = 100,
    instances: Annotated[int, typer.Option(help="How many `genlock serve` processes.", min=1, max=9)] = 1,
    store: StoreName = "sqlite",
    kill_every: Annotated[
        float | None, typer.Option(help="Kill one and start it again, every so many seconds.")
    ] = None,
    pause: Annotated[bool, typer.Option("--pause", help="Stop some for longer than their lease.")] = False,
    restart_db: Annotated[
        bool, typer.Option("--restart-db", help="Restart PostgreSQL, in order and by crash.")
    ] = False,
    faults: Annotated[bool, typer.Option("--faults", help="Lost, late and wrong answers on both sides.")] = False,
    polling: Annotated[
        bool, typer.Option("--polling", help="As without a public address: nobody can call us.")
    ] = False,
    seed: Annotated[int, typer.Option(help="What is left to chance comes from here.")] = 1,
    as_json: Json = False,
) -> None:
    """Kill, pause and cut off real processes while people order; exits 1 if any promise was broken."""
    from genlock.sandbox.chaos.chaos import Plan, run

    plan = Plan(
        jobs=jobs,
        instances=instances,
        store=store,
        kill_every=kill_every,
        pause=pause,
        restart_db=restart_db,
        faults=faults,
        polling=polling,
        seed=seed,
    )
    raise typer.Exit(run(plan, as_json=as_json))


@app.command()
def migrate() -> None:
    """Bring the database's schema up to date. Safe to run again, and by several at once."""

    async def work(store: Store, _: Observer) -> list[str]:
        return store.applied  # opening a store brings it up to date

    applied = with_store(work, existing=False)
    typer.echo(f"Applied {', '.join(applied)}." if applied else "The schema is up to date.")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Try out the whole world this is set up for, and leave nothing behind. Exits 1 if something is not right."""
    from genlock.doctor.doctor import Doctor
    from genlock.settings import Settings, read_settings

    phases = asyncio.run(Doctor(read_settings(Settings)).examine())
    ok = all(phase.ok for phase in phases)
    if as_json:
        typer.echo(json.dumps({"ok": ok, "phases": [asdict(phase) for phase in phases]}, ensure_ascii=False, indent=2))
    else:
        for phase in phases:
            typer.secho(f"{'✔' if phase.ok else '✘'} {phase.name}: {phase.detail}", fg=None if phase.ok else "red")
        typer.echo("All is well." if ok else "Something is not right.")
    raise typer.Exit(0 if ok else 1)


@app.command()
def simulate(
    seeds: Annotated[int, typer.Option(help="How many runs.", min=1)] = 100,
    first_seed: Annotated[int, typer.Option(help="The first seed; the others follow.")] = 1,
    store: StoreName = "sqlite",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Crash the engine everywhere, on a virtual clock, and check every promise afterwards."""
    from genlock.sandbox.simulation.simulate import run

    raise typer.Exit(run(seeds, first_seed, store, database_url, as_json))


@app.command()
def bench(
    store: StoreName = "postgres",
    database_url: DatabaseUrl = None,
    history: Annotated[
        int, typer.Option(help="Finished jobs in the table for the history ratio; 0 leaves it out.", min=0)
    ] = 1_000_000,
    rounds: Annotated[int, typer.Option(help="Rounds of each kind, interleaved.", min=1)] = 5,
    scale: Annotated[float, typer.Option(help="Smaller for a quick look: 0.01 takes seconds.", min=0.001)] = 1.0,
    as_json: Json = False,
) -> None:
    """Measure whole lives of jobs against the plain protocol, in one run."""
    from genlock.sandbox.bench.bench import Sizes, run

    sizes = Sizes(rounds=rounds, history=history).scaled(scale)
    raise typer.Exit(run(store, database_url, sizes, as_json=as_json))


# jobs


@jobs.command("ls")
def jobs_ls(
    state: Annotated[str | None, typer.Option(help="Only jobs in this state.")] = None,
    person: Annotated[int | None, typer.Option(help="Only jobs of this person.")] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List jobs, newest first."""
    from genlock.domain.job import State

    wanted = _choice(State, state)
    found = with_store(lambda store, _: store.jobs(state=wanted, person_id=person, limit=limit))
    show([_brief(job) for job in found], as_json=as_json, empty="No jobs.")


@jobs.command("attention")
def jobs_attention(limit: Limit = 50, as_json: Json = False) -> None:
    """List what an operator should look at; exits 1 if there is anything."""
    found = with_store(lambda store, _: store.attention(limit))
    show([_brief(job) for job in found], as_json=as_json, empty="Nothing needs attention.")
    raise typer.Exit(1 if found else 0)


@jobs.command("check")
def jobs_check(as_json: Json = False) -> None:
    """Look for broken invariants: money, leases, ends. Exits 1 if there are any."""
    found = with_store(lambda store, _: store.violations(settled=False))
    show([asdict(violation) for violation in found], as_json=as_json, empty="Every invariant holds.")
    raise typer.Exit(1 if found else 0)


@jobs.command("show")
def jobs_show(job_id: int, as_json: Json = False) -> None:
    """Show everything about one job."""
    from genlock.domain.errors import NoSuchJob

    job = with_store(lambda store, _: store.job(job_id))
    if job is None:
        raise NoSuchJob(f"there is no job {job_id}")
    whole = asdict(job)
    if as_json:
        show([whole], as_json=True, empty="")
        return
    for field in ("price", "cost"):
        whole[field] = None if whole[field] is None else f"{_credits(whole[field])} credits"
    for field, value in whole.items():
        if isinstance(value, datetime):
            whole[field] = f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    show([{"field": field, "value": value} for field, value in whole.items()], as_json=False, empty="")


@jobs.command("retry")
def jobs_retry(job_id: int) -> None:
    """Do the next step of an unfinished job now."""
    _operate("retry", job_id)


@jobs.command("resend")
def jobs_resend(job_id: int) -> None:
    """Show an ended job's result again, on new messages, free."""
    _operate("resend", job_id)


@jobs.command("cancel")
def jobs_cancel(job_id: int) -> None:
    """Stop waiting for a job and give the money back."""
    _operate("cancel", job_id)


def _operate(action: str, job_id: int) -> None:
    from genlock.app import make_engine
    from genlock.domain.job import Job
    from genlock.engine import operate

    async def work(store: Store, observer: Observer) -> Job:
        kit = make_engine(store, observer, providers={}, channels={}).kit
        act = {"retry": operate.retry, "resend": operate.resend, "cancel": operate.cancel}[action]
        return await act(kit, job_id, "operator")

    job = with_store(work)
    typer.echo(f"Job {job.id}: {job.state}, delivery {job.delivery}. A running instance goes on with it.")


def _brief(job: Any) -> dict[str, Any]:
    return {
        "id": job.id,
        "person": job.person_id,
        "model": job.model,
        "state": job.state.value,
        "delivery": job.delivery.value,
        "price": _credits(job.price),
        "purse": job.purse.value,
        "created": job.created_at.replace(microsecond=0),
        "attention": job.attention,
    }


def _choice(kind: Any, word: str | None) -> Any:
    if word is None:
        return None
    try:
        return kind(word)
    except ValueError:
        raise typer.BadParameter(f"{word!r} is not one of {', '.join(member.value for member in kind)}") from None


# orphans


@orphans.command("ls")
def orphans_ls(
    state: Annotated[str, typer.Option(help="orphan, matched, expired, unreadable, …")] = "orphan",
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List stored callbacks by what became of them."""
    from genlock.domain.inbox import InboxState

    wanted = _choice(InboxState, state)
    found = with_store(lambda store, _: store.callbacks(wanted, limit))
    rows = [
        {
            "id": callback.id,
            "provider": callback.provider,
            "task": callback.task_id,
            "job": callback.job_id,
            "received": callback.received_at.replace(microsecond=0),
            "note": callback.note,
            "body": callback.body[:80].decode(errors="replace"),
        }
        for callback in found
    ]
    show(rows, as_json=as_json, empty=f"No callbacks are {state}.")


# updates


@updates.command("ls")
def updates_ls(
    state: Annotated[str, typer.Option(help="aside, new, done or repeated.")] = "aside",
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List updates by what became of them; those set aside could not be handled."""
    from genlock.domain.update import UpdateState

    wanted = _choice(UpdateState, state)
    found = with_store(lambda store, _: store.updates(wanted, limit))
    rows = [
        {
            "id": update.id,
            "bot": update.bot,
            "update": update.update_id,
            "kind": update.kind,
            "received": update.received_at.replace(microsecond=0),
            "note": update.note,
            "body": update.body if as_json else update.body[:60],
        }
        for update in found
    ]
    show(rows, as_json=as_json, empty=f"No updates are {state}.")


@updates.command("retry")
def updates_retry(update_id: Annotated[int, typer.Argument(metavar="ID")]) -> None:
    """Work off an update that was set aside."""
    from genlock.domain.errors import NotPossible

    if not with_store(lambda store, _: store.retry_update(update_id)):
        raise NotPossible(f"nothing under {update_id} was set aside")
    typer.echo(f"Update {update_id} is due. A running instance goes on with it.")


# money


def _credits(thousandths: int) -> str:
    return f"{thousandths / 1000:g}"


@wallet.command("show")
def wallet_show(person: int, limit: Limit = 20, as_json: Json = False) -> None:
    """Show what a person has and the last movements."""

    async def work(store: Store, _: Observer) -> tuple[Any, Any]:
        return await store.wallet(person), await store.movements(person, limit)

    purse, movements = with_store(work)
    if as_json:
        typer.echo(json.dumps({**asdict(purse), "movements": [asdict(line) for line in movements]}, default=str))
        return
    typer.echo(f"available {_credits(purse.available)}, held {_credits(purse.held)} credits")
    rows = [
        {
            "at": line.at.replace(microsecond=0),
            "what": line.kind.value,
            "credits": _credits(line.amount),
            "from": line.debit.value,
            "to": line.credit.value,
            "job": line.job_id,
            "reason": line.reason,
        }
        for line in movements
    ]
    show(rows, as_json=False, empty="No movements.")


@wallet.command("credit")
def wallet_credit(
    person: int,
    credits_: Annotated[float, typer.Argument(metavar="CREDITS", help="How many credits; negative takes them back.")],
    reason: Annotated[str, typer.Option(help="Why; kept in the ledger.", prompt=True)],
    key: Annotated[str | None, typer.Option(help="Makes it happen once, however often it is run.")] = None,
) -> None:
    """Give a person credits, or take them back."""
    import secrets

    from genlock.domain.money import Kind

    amount = round(abs(credits_) * 1000)
    if amount == 0:
        raise typer.BadParameter("nothing to move")
    kind = Kind.GRANT if credits_ > 0 else Kind.DEBIT
    name = f"operator:{key or secrets.token_hex(8)}"

    async def work(store: Store, _: Observer) -> tuple[bool, Any]:
        return await store.transfer(person, kind, amount, name, reason), await store.wallet(person)

    done, purse = with_store(work)
    said = "Done" if done else "This was done before"
    left = _credits(purse.available)
    typer.echo(f"{said} (key {name.removeprefix('operator:')}): person {person} has {left} credits available.")


# models


def _catalog() -> tuple[Any, Any]:
    from genlock.catalog import load
    from genlock.settings import Settings, read_settings

    settings = read_settings(Settings)
    return load(settings.catalog_overlay), settings


@models.command("ls")
def models_ls(
    category: Annotated[str | None, typer.Option(help="Only this category.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Also what is not offered, and why.")] = False,
    as_json: Json = False,
) -> None:
    """List models with the least they cost a person."""
    from genlock.catalog import tables
    from genlock.domain.catalog import Category, Status

    catalog, settings = _catalog()
    wanted = _choice(Category, category)
    rows = [
        tables.brief(model, settings.markup, settings.credit_usd, with_status=all_)
        for model in catalog.models.values()
        if (all_ or model.status is Status.OFFERED) and wanted in (None, model.category, *model.also)
    ]
    show(rows, as_json=as_json, empty="No models.")


@models.command("show")
def models_show(model_id: Annotated[str, typer.Argument(metavar="MODEL")], as_json: Json = False) -> None:
    """Show everything about one model: inputs, rules, prices."""
    from genlock.catalog import tables

    catalog, settings = _catalog()
    model = catalog.get(model_id)
    if as_json:
        whole = tables.whole(model, settings.markup, settings.credit_usd)
        typer.echo(json.dumps(whole, default=tables.plain, ensure_ascii=False, indent=2))
        return
    typer.echo(f"{model.title}, {model.category}, {model.status}" + (f": {model.reason}" if model.reason else ""))
    if model.note:
        typer.echo(model.note)
    typer.echo("")
    show(tables.inputs(model), as_json=False, empty="No inputs.")
    typer.echo("")
    show(tables.prices(model, settings.markup, settings.credit_usd), as_json=False, empty="No price is known.")


@models.command("check")
def models_check(as_json: Json = False) -> None:
    """Order the least and the most of every offered model from the simulated provider. Exits 1 if one is refused."""
    from genlock.sandbox.kie.order_all import order_all

    catalog, _ = _catalog()
    failures = [asdict(failure) for failure in asyncio.run(order_all(catalog))]
    offered, failed = len(catalog.offered()), len({failure["model"] for failure in failures})
    if as_json:
        result = {"offered": offered, "failed": failed, "failures": failures}
        typer.echo(json.dumps(result, ensure_ascii=False, indent=2))
    else:
        show(failures, as_json=False, empty=f"All {offered} offered models can be ordered, and each has a price.")
    raise typer.Exit(1 if failed else 0)


@models.command("sync")
def models_sync(
    apply: Annotated[bool, typer.Option("--apply", help="Write what differs to the overlay file.")] = False,
    as_json: Json = False,
) -> None:
    """Compare with the provider's public lists: new and gone models, changed prices."""
    from genlock.catalog import load, sync, tables
    from genlock.domain.errors import Refusal
    from genlock.settings import Settings, read_settings

    settings = read_settings(Settings)
    path = settings.catalog_overlay
    if apply and path is None:
        raise Refusal("GENLOCK_CATALOG_OVERLAY is not set, so there is no file to write to")
    catalog = load(path if path and path.exists() else None)
    lists = asyncio.run(sync.fetch(settings.kie_api_url))
    found = sync.diff(catalog, lists)
    if as_json:
        typer.echo(json.dumps(asdict(found), default=tables.plain, ensure_ascii=False, indent=2))
    else:
        show(tables.differences(found), as_json=False, empty="The catalog agrees with the provider's lists.")
    if apply and path:
        _apply_lists(lists, path)


def _apply_lists(lists: Any, path: Path) -> None:
    from genlock.catalog import load, overlay, sync

    changes = sync.overlay(load(), lists, datetime.now(UTC).date().isoformat())
    overlay.write(path, overlay.written(path, changes))
    typer.echo(f"{path}: {len(changes)} models differ from the package.", err=True)
