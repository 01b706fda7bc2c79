"""Options and arguments that several commands share."""

from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JobId = Annotated[int, typer.Argument(metavar="JOB", help="The job's number, as `genlock jobs ls` shows it.")]
AccountId = Annotated[
    int, typer.Argument(metavar="ACCOUNT", help="The account's number, as `genlock wallet ls` shows it.")
]
Limit = Annotated[int, typer.Option(help="The largest number of rows.", min=1, max=1000)]
StoreName = Annotated[str, typer.Option("--store", help="sqlite or postgres.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(help="URL of a PostgreSQL to use; by default one is started.", envvar="GENLOCK_BENCH_DATABASE_URL"),
]


def choice(kind: Any, word: str | None) -> Any:
    """Return the member of an enum with this value. Raises BadParameter that lists the values."""
    if word is None:
        return None
    try:
        return kind(word)
    except ValueError:
        raise typer.BadParameter(f"{word!r} is not one of {', '.join(member.value for member in kind)}") from None
