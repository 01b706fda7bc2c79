"""Options that several commands take."""

from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JobId = Annotated[int, typer.Argument(metavar="JOB", help="Its number, as `genlock jobs ls` shows it.")]
PersonId = Annotated[
    int, typer.Argument(metavar="PERSON", help="The number of a person, as `genlock wallet ls` shows it.")
]
Limit = Annotated[int, typer.Option(help="How many at the most.", min=1, max=1000)]
StoreName = Annotated[str, typer.Option("--store", help="sqlite or postgres.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(help="A PostgreSQL to use; without it one is started.", envvar="GENLOCK_BENCH_DATABASE_URL"),
]


def choice(kind: Any, word: str | None) -> Any:
    """The member of an enum that somebody named."""
    if word is None:
        return None
    try:
        return kind(word)
    except ValueError:
        raise typer.BadParameter(f"{word!r} is not one of {', '.join(member.value for member in kind)}") from None
