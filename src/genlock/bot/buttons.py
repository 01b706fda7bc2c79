"""Callback data of buttons: built and parsed here only, at most 64 bytes."""

from dataclasses import dataclass, replace

from genlock.ports import Button, OutgoingMessage

DATA_BYTES_MAX = 64
#: last argument of buttons whose message stays as it is: the screen appears below it
BELOW = "below"
#: prefix of buttons that carry the version of a draft, so that outdated ones are recognised
_DRAFT = "w"
#: characters of a label, with its emoji, that fits beside another one on a phone
BESIDE_ANOTHER = 17
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

Row = tuple[Button, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ButtonData:
    verb: str
    args: tuple[str, ...] = ()
    #: version of the draft that the button belongs to; None if the button never becomes outdated
    version: int | None = None

    def number(self, index: int = 0) -> int:
        """Return an argument as a number; -1 if it is missing or not a number."""
        word = self.args[index] if index < len(self.args) else ""
        return int(word) if word.isdecimal() and len(word) <= 18 else -1  # noqa: PLR2004 - digits of a 64-bit integer

    def word(self, index: int = 0) -> str:
        return self.args[index] if index < len(self.args) else ""


def read(data: str) -> ButtonData:
    verb, *args = data.split(":")
    if verb == _DRAFT and len(args) > 1:
        version, verb, *rest = args
        return ButtonData(verb=verb, args=tuple(rest), version=_from_base36(version))
    return ButtonData(verb=verb, args=tuple(args))


def button(text: str, verb: str, *args: object) -> Button:
    """Return a button that never becomes outdated."""
    return Button(text=text, data=_short(":".join((verb, *map(str, args)))))


def draft_button(text: str, version: int, verb: str, *args: object) -> Button:
    """Return a button that is valid for one version of a draft."""
    return Button(text=text, data=_short(":".join((_DRAFT, base36(version), verb, *map(str, args)))))


def staying(message: OutgoingMessage) -> OutgoingMessage:
    """Return the message with buttons that leave it as it is: notices stay readable."""
    rows = tuple(
        tuple(replace(key, data=_short(f"{key.data}:{BELOW}")) if key.data else key for key in row)
        for row in message.buttons
    )
    return replace(message, buttons=rows)


def grid(buttons: list[Button], columns: int) -> list[Row]:
    return [tuple(buttons[start : start + columns]) for start in range(0, len(buttons), columns)]


def pairs(buttons: list[Button]) -> list[Row]:
    """Put two buttons in a row; a label that is too long for half a phone gets a row of its own."""
    rows: list[Row] = []
    for key in buttons:
        beside = rows and len(rows[-1]) == 1 and max(len(key.text), len(rows[-1][0].text)) <= BESIDE_ANOTHER
        rows[-1:] = [(*rows[-1], key)] if beside else [*rows[-1:], (key,)]
    return rows


def base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits


def _from_base36(text: str) -> int:
    try:
        return int(text, 36)
    except ValueError:
        return -1


def from_base36(text: str) -> int | None:
    """Parse a number written by `base36`; None if it is not one."""
    number = _from_base36(text) if len(text) <= 12 else -1  # noqa: PLR2004 - digits of a 64-bit integer
    return number if number >= 0 and base36(number) == text else None


def _short(data: str) -> str:
    assert len(data.encode()) <= DATA_BYTES_MAX, data
    return data
