"""Options and arguments that several commands share."""

from decimal import Decimal
from typing import Annotated, Any

import typer


def _job_id(text: str) -> int:
    """Return the id of a job from its id or from the number that its user sees, such as `#K7Q2M9`."""
    from genlock.domain.public_number import PublicNumbers
    from genlock.settings import Settings

    numbers, token = PublicNumbers(), None
    if not text.removeprefix("#").isdecimal() and (token := Settings().telegram_token) is not None:
        numbers = PublicNumbers.of_bot(token.get_secret_value())
    if (job_id := numbers.order_id(text)) is None:
        hint = "" if token else "; numbers such as #K7Q2M9 need GENLOCK_TELEGRAM_TOKEN, as the service has it"
        raise typer.BadParameter(f"{text!r} is not the number of a job: `genlock jobs ls` lists them{hint}")
    return job_id


def _account_id(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**63:
        raise typer.BadParameter(f"{text!r} is not the number of an account: `genlock wallet ls NAME` finds it")
    return int(text)


def amount(text: str) -> Decimal:
    """Return a number of credits. Raises BadParameter for what is none, such as `nan`, `1,000` and `0.0001`."""
    from genlock.domain.money import THOUSANDTHS, read_amount, read_decimal

    digits = text.removeprefix("-")
    thousandths = read_amount(digits)
    if thousandths == 0 and read_decimal(digits) != 0:
        raise typer.BadParameter(
            f"{text!r} is not a number of credits: write it like 1000 or 2.5, with at most 3 digits after the point"
        )
    credits_ = Decimal(thousandths) / THOUSANDTHS
    return -credits_ if text.startswith("-") else credits_


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JobId = Annotated[
    int,
    typer.Argument(
        metavar="JOB", parser=_job_id, help="The job's number, as `genlock jobs ls` shows it, or as its user sees it."
    ),
]
AccountId = Annotated[
    int,
    typer.Argument(
        metavar="ACCOUNT", parser=_account_id, help="The account's number, as `genlock wallet ls` shows it."
    ),
]
Limit = Annotated[int, typer.Option(metavar="N", help="The largest number of rows.", min=1, max=1000)]
StoreName = Annotated[str, typer.Option("--store", metavar="STORE", help="sqlite or postgres.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="URL of a PostgreSQL to use; by default one is started.",
        envvar="GENLOCK_BENCH_DATABASE_URL",
    ),
]


def choice(kind: Any, word: str | None, option: str) -> Any:
    """Return the member of an enum with the value of an option. Raises BadParameter that lists the values."""
    if word is None:
        return None
    try:
        return kind(word)
    except ValueError:
        values = ", ".join(member.value for member in kind)
        raise typer.BadParameter(f"{word!r} is not one of {values}", param_hint=f"'{option}'") from None
