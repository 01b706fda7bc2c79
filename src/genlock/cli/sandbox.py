"""Commands that need no account: the sandbox, and the tools that test and measure genlock."""

from pathlib import Path
from typing import Annotated

import typer

from genlock.cli.options import DatabaseUrl, Json, StoreName

app = typer.Typer()


def _require_simulators(command: str) -> None:
    """Fail now if a package is missing that the first order would need. An installation on a server lacks them."""
    from importlib.util import find_spec

    from genlock.domain.errors import Refusal

    if find_spec("av") is None:
        raise Refusal(
            f"`genlock {command}` needs packages that are not installed here. Run it in a checkout of genlock's "
            f"repository with `make {command}`, which installs them there from the lock."
        )


@app.command()
def sandbox(
    postgres: Annotated[
        bool, typer.Option("--postgres", help="Start a PostgreSQL and use it instead of SQLite.")
    ] = False,
    instances: Annotated[
        int, typer.Option(metavar="N", help="Number of processes; more than one needs --postgres.", min=1, max=9)
    ] = 1,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start empty and keep nothing afterwards.")] = False,
    state: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder that keeps the state between runs.")] = Path(
        ".sandbox"
    ),
    port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            help="Port of the chat page, the first of four. Default: 8080 if free, else any.",
            min=1,
            max=65_532,
        ),
    ] = None,
    speed: Annotated[
        float, typer.Option(metavar="FACTOR", help="Run models this many times faster than in reality.", min=0.1)
    ] = 6.0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Set a variable of the service, such as one of a plug-in; repeatable."
        ),
    ] = None,
) -> None:
    """Run everything on this machine, without accounts. Starts simulators, the service and a chat page."""
    _require_simulators("sandbox")
    from genlock.sandbox.run import Options, read_given_settings, run

    options = Options(
        postgres=postgres,
        instances=instances,
        state=None if fresh else state,
        port=port,
        speed=speed,
        settings=read_given_settings(settings or []),
    )
    raise typer.Exit(run(options))


@app.command()
def smoke(as_json: Json = False) -> None:
    """Send one order through the service and the simulators. Exits 1 if one of its nine phases fails."""
    _require_simulators("smoke")
    from genlock.sandbox.smoke import run

    raise typer.Exit(run(as_json=as_json))


@app.command()
def chaos(  # noqa: PLR0913, PLR0917 - one argument per option
    jobs: Annotated[int, typer.Option(metavar="N", help="Number of orders.", min=1)] = 100,
    instances: Annotated[int, typer.Option(metavar="N", help="Number of `genlock serve` processes.", min=1, max=9)] = 1,
    store: StoreName = "sqlite",
    through: Annotated[
        str,
        typer.Option(
            metavar="WHO", help="Who orders: users in chats (chat), or clients of the HTTP API with webhooks (api)."
        ),
    ] = "chat",
    kill_every: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Kill and restart a process at this interval.", min=0.1)
    ] = None,
    pause: Annotated[bool, typer.Option("--pause", help="Pause processes for longer than their lease.")] = False,
    restart_db: Annotated[
        bool, typer.Option("--restart-db", help="Restart PostgreSQL, gracefully and by a crash.")
    ] = False,
    faults: Annotated[
        bool, typer.Option("--faults", help="Inject lost, late and wrong answers on both sides.")
    ] = False,
    polling: Annotated[
        bool, typer.Option("--polling", help="Run without a public URL: Telegram and the provider are polled.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random generator.")] = 1,
    as_json: Json = False,
) -> None:
    """Kill, pause and disconnect real processes while users order. Exits 1 if a guarantee was broken."""
    _require_simulators("chaos")
    from genlock.sandbox.chaos.command import run
    from genlock.sandbox.chaos.disrupted_run import Plan

    plan = Plan(
        jobs=jobs,
        instances=instances,
        store=store,
        through=through,
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
    seeds: Annotated[int, typer.Option(metavar="N", help="Number of runs.", min=1)] = 100,
    first_seed: Annotated[int, typer.Option(metavar="N", help="The first seed; the next runs count up.")] = 1,
    store: StoreName = "sqlite",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Crash the engine at every point and check every guarantee. Runs on a virtual clock; exits 1 if one was broken."""
    from genlock.sandbox.simulation.simulate import run

    raise typer.Exit(run(seeds, first_seed, store, database_url, as_json))


@app.command()
def bench(
    store: StoreName = "postgres",
    database_url: DatabaseUrl = None,
    history: Annotated[
        int, typer.Option(metavar="N", help="Finished jobs in the table for the history ratio; 0 skips it.", min=0)
    ] = 1_000_000,
    rounds: Annotated[int, typer.Option(metavar="N", help="Rounds of each kind, interleaved.", min=1)] = 5,
    scale: Annotated[
        float, typer.Option(metavar="FACTOR", help="Size of the load; 0.01 takes seconds.", min=0.001)
    ] = 1.0,
    parts: Annotated[
        list[str] | None,
        typer.Option(
            "--part",
            metavar="PART",
            help="Measure only this part: engine, service, order or api; may be repeated. Default: all.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure the engine, the service, an order's cost and the API. The engine is compared with a minimal one."""
    _require_simulators("bench")
    from genlock.sandbox.bench.bench import PARTS, Sizes, run

    sizes = Sizes(rounds=rounds, history=history).scaled(scale)
    raise typer.Exit(run(store, database_url, sizes, parts or PARTS, as_json=as_json))


@app.command()
def soak(
    store: StoreName = "postgres",
    database_url: DatabaseUrl = None,
    minutes: Annotated[float, typer.Option(metavar="MINUTES", help="How long the load lasts.", min=0.1)] = 10.0,
    per_second: Annotated[
        float, typer.Option(metavar="N", help="Orders per second, by command and by buttons in turn.", min=0.1)
    ] = 2.0,
    as_json: Json = False,
) -> None:
    """Order at a steady rate and print what it costs, by minute. Reports memory, latency, CPU and bytes per order."""
    _require_simulators("soak")
    from genlock.sandbox.bench.soak import run

    raise typer.Exit(run(store, database_url, minutes, per_second, as_json=as_json))
