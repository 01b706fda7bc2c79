"""Limits for reading one file: a parser stops at the first thing it does not understand, or at a number of steps."""

#: boxes, table entries, packets and frames of one file: three hours of audio have fewer
STEPS_MAX = 500_000


class NotMeasured(Exception):
    """The file contains something that the parser does not understand, so its duration is not known."""


class TooComplex(Exception):
    """Reading the file takes more steps, time or memory than any honest file needs."""


class Budget:
    """Counts the steps of reading one file."""

    def __init__(self, steps: int = STEPS_MAX) -> None:
        self._left = steps

    def spend(self, steps: int = 1) -> None:
        """Count steps before they are taken. Raises TooComplex."""
        self._left -= steps
        if self._left < 0:
            raise TooComplex("the file has too many elements")


def require(condition: object, what: str) -> None:
    """Raise NotMeasured unless the condition holds."""
    if not condition:
        raise NotMeasured(what)
