"""A command of the operators: `/admin NAME ARGS`, or a button with the same name and arguments."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from genlock.bot.context import UpdateContext
from genlock.ports import OutgoingMessage

ORDER_DIGITS_MAX = 15

#: runs a command with its arguments, and returns the screen that answers it
Run = Callable[[UpdateContext, Sequence[str]], Awaitable[OutgoingMessage]]


@dataclass(frozen=True, kw_only=True, slots=True)
class AdminCommand:
    run: Run
    #: the text `admin.usage_…` that shows how it is written; "" for a command without arguments
    usage: str = ""


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


def order_number(args: Sequence[str]) -> int:
    """Return the number of an order, as `125` or `#125`. Raises NotUnderstood."""
    digits = argument(args).lstrip("#")
    if not digits.isdecimal() or len(digits) > ORDER_DIGITS_MAX:
        raise NotUnderstood
    return int(digits)
