"""Finds what answers a path: literal segments, then parameters, by one look-up per segment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Target = TypeVar("Target")
_REST = ":path}"


@dataclass(frozen=True)
class Found(Generic[Target]):
    """What is served at a path: a target for each method, with the values of its path parameters."""

    targets: Mapping[str, tuple[Target, tuple[str, ...]]]
    values: tuple[str, ...]

    @property
    def methods(self) -> list[str]:
        """The methods that are answered here, in order."""
        return sorted({*self.targets, *(["HEAD"] if "GET" in self.targets else [])})

    def target(self, method: str) -> tuple[Target, dict[str, str]] | None:
        """Return the target of a method and its parameters by name; HEAD is answered as GET."""
        found = self.targets.get(method) or (self.targets.get("GET") if method == "HEAD" else None)
        return None if found is None else (found[0], dict(zip(found[1], self.values, strict=True)))


@dataclass
class _Node(Generic[Target]):
    literals: dict[str, "_Node[Target]"] = field(default_factory=dict)
    #: for any one segment, and for everything that is left of the path
    parameter: "_Node[Target] | None" = None
    rest: "_Node[Target] | None" = None
    targets: dict[str, tuple[Target, tuple[str, ...]]] = field(default_factory=dict)


class Paths(Generic[Target]):
    """Targets by method and path. `{name}` stands for a segment, `{name:path}` at the end for any number of them."""

    def __init__(self) -> None:
        self._root: _Node[Target] = _Node()

    def add(self, method: str, path: str, target: Target) -> None:
        node, names = self._root, []
        for segment in path.split("/"):
            if segment.endswith(_REST):
                names.append(segment[1 : -len(_REST)])
                node.rest = node = node.rest or _Node()
            elif segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter = node = node.parameter or _Node()
            else:
                node = node.literals.setdefault(segment, _Node())
        node.targets[method] = target, tuple(names)

    def find(self, path: str) -> Found[Target] | None:
        return _walk(self._root, path.split("/"), ())


def _walk(node: _Node[Target], segments: list[str], values: tuple[str, ...]) -> Found[Target] | None:
    if not segments:
        return Found(node.targets, values) if node.targets else None
    first, later = segments[0], segments[1:]
    found = None
    if (literal := node.literals.get(first)) is not None:
        found = _walk(literal, later, values)
    if found is None and node.parameter is not None and first:
        found = _walk(node.parameter, later, (*values, first))
    if found is None and node.rest is not None:
        found = _walk(node.rest, [], (*values, "/".join(segments)))
    return found
