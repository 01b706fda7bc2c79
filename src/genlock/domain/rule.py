"""Rules of a model: conditions between its fields, such as "no sound without a video"."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from genlock.domain.errors import InvalidInput
from genlock.domain.field import Number
from genlock.domain.offer import NOTHING


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A condition between fields. It applies when `when` and `given` match; exactly one of the other fields is set."""

    when: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()  #: at least one of these fields must be given
    require: tuple[str, ...] = ()  #: all of these fields must be given
    forbid: tuple[str, ...] = ()  #: none of these fields may be given
    apart: tuple[tuple[str, ...], ...] = ()  #: only fields of one of these groups may be given
    never: bool = False  #: the combination is not available
    most: Mapping[str, int] = field(
        default_factory=dict
    )  #: lower limits by field: characters, files, or the value of a number

    def check(self, values: Mapping[str, object]) -> None:
        """Raise InvalidInput if the values break the rule."""
        given = {name for name, value in values.items() if value not in NOTHING}
        met = all(values.get(name) in allowed for name, allowed in self.when.items())
        if not met or not given.issuperset(self.given):
            return
        condition = _condition(self.when, self.given)
        if self.never:
            raise _refused((*self.when, *self.given)[0], f"not available together: {condition}")
        if self.any_of and not given & set(self.any_of):
            raise _refused(self.any_of[0], f"give at least one of {', '.join(self.any_of)}", problem="missing")
        for name in (name for name in self.require if name not in given):
            raise _refused(name, f"is required when {condition}", problem="missing")
        for name in (name for name in self.forbid if name in given):
            raise _refused(name, f"cannot be used when {condition}")
        for name, limit in self.most.items():
            if _size(values.get(name)) > limit:
                raise _refused(name, f"{_at_most(values.get(name), limit)} when {condition}", problem="range")
        self._check_apart(given)

    def _check_apart(self, filled: set[str]) -> None:
        used = [[name for name in group if name in filled] for group in self.apart]
        first, *others = [names for names in used if names] or [[]]
        if others:
            raise _refused(others[0][0], f"cannot be combined with {', '.join(first)}")


def _size(value: object) -> Number:
    return value if isinstance(value, int | float) else len(value) if isinstance(value, str | list) else 0


def _at_most(value: object, limit: int) -> str:
    match value:
        case str():
            return f"must have at most {limit} characters"
        case list():
            return f"must be at most {limit}, not {len(value)},"
        case _:
            return f"must be at most {limit}"


def _condition(when: Mapping[str, tuple[object, ...]], given: tuple[str, ...]) -> str:
    equal = [f"{name} = {' or '.join(_readable(value) for value in allowed)}" for name, allowed in when.items()]
    return ", ".join([*equal, *(f"{name} is given" for name in given)])


def _readable(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _refused(name: str, message: str, *, problem: str = "combination") -> InvalidInput:
    return InvalidInput(name, message, problem=problem)
