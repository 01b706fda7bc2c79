"""Programs that need no account: the sandbox, and what puts genlock to the test."""

from pathlib import Path
from typing import Annotated

import typer

from genlock.cli.options import DatabaseUrl, Json, StoreName

app = typer.Typer()


def _must_have_simulators() -> None:
    """Say at once what would otherwise show in the middle of the first order."""
    from importlib.util import find_spec

    from genlock.domain.errors import Refusal

    if find_spec("av") is None:
        raise Refusal(
            "The simulated Kie.ai cannot make pictures here: `pip install 'genlock[sandbox]'` adds what it needs."
        )


@app.command()
def sandbox(
    postgres: Annotated[bool, typer.Option("--postgres", help="On a real PostgreSQL of its own, not SQLite.")] = False,
    instances: Annotated[int, typer.Option(help="How many processes; several need --postgres.", min=1, max=9)] = 1,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin with an empty world and keep nothing of it.")] = False,
    state: Annotated[Path, typer.Option(help="The folder that keeps the world between runs.")] = Path(".sandbox"),
    port: Annotated[
        int | None,
        typer.Option(
            help="The chat page's port, the first of four in a row. 8080 if free, else any.", min=1, max=65_532
        ),
    ] = None,
    speed: Annotated[float, typer.Option(help="How many times faster models work than they do.", min=0.1)] = 6.0,
) -> None:
    """Run everything on this machine, without any account: simulators, service, and a chat page in the browser."""
    _must_have_simulators()
    from genlock.sandbox.run import Options, run

    options = Options(postgres=postgres, instances=instances, state=None if fresh else state, port=port, speed=speed)
    raise typer.Exit(run(options))


@app.command()
def smoke(as_json: Json = False) -> None:
    """Take one order through the product and both simulators, in nine phases. Exits 1 if one does not hold."""
    _must_have_simulators()
    from genlock.sandbox.smoke import run

    raise typer.Exit(run(as_json=as_json))


@app.command()
def chaos(  # noqa: PLR0913, PLR0917 - every kind of trouble is an option
    jobs: Annotated[int, typer.Option(help="How many orders people make.", min=1)] = 100,
    instances: Annotated[int, typer.Option(help="How many `genlock serve` processes.", min=1, max=9)] = 1,
    store: StoreName = "sqlite",
    kill_every: Annotated[
        float | None, typer.Option(help="Kill one and start it again, every so many seconds.", min=0.1)
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
    _must_have_simulators()
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
