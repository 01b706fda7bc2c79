"""A command of the operators: `/admin NAME ARGS`, or a button with the same name and arguments."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from genlock.bot.context import UpdateContext
from genlock.domain.public_number import PublicNumbers
from genlock.i18n.translator import Html
from genlock.ports import Button, OutgoingMessage

#: runs a command with its arguments, and returns the screen that answers it
Run = Callable[[UpdateContext, Sequence[str]], Awaitable[OutgoingMessage]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """The question before a command runs: what it will do to the user and to the money."""

    text: Html
    #: label of the button that runs the command
    yes: str
    back: Button


#: returns the question that comes before a command, or the answer if there is nothing to ask
Ask = Callable[[UpdateContext, Sequence[str]], Awaitable[Question | OutgoingMessage]]


@dataclass(frozen=True, kw_only=True, slots=True)
class AdminCommand:
    run: Run
    #: the text `admin.usage_…` that shows how it is written; "" for a command without arguments
    usage: str = ""
    #: for a command that takes money or access away: it runs only after its question was answered
    ask: Ask | None = None


class NotUnderstood(Exception):
    """The arguments do not fit the command: the answer is its usage."""


class Declined(Exception):
    """The command was not carried out; `text` is the key of the text that says why, with its values."""

    def __init__(self, text: str, **values: object) -> None:
        super().__init__(text)
        self.text = text
        self.values = values


def argument(args: Sequence[str], index: int = 0) -> str:
    """Return an argument that must be there. Raises NotUnderstood."""
    if index >= len(args):
        raise NotUnderstood
    return args[index]


def order_number(args: Sequence[str], numbers: PublicNumbers) -> int:
    """Return the id of an order, from `125`, `#125` or the number that its user sees. Raises NotUnderstood."""
    job_id = numbers.order_id(argument(args))
    if job_id is None:
        raise NotUnderstood
    return job_id
