"""What attackers, proxies and bugs send in place of a callback."""

import json
from collections.abc import Iterator
from typing import Any

#: values that stand in for every value of a genuine body
VALUES: tuple[Any, ...] = (
    None, True, -1, 10**30, 1e308, "", " ", "\0", "\ud800", "x" * 100_000, "javascript:alert(1)", "file:///etc/passwd",
    [], {}, [[[]]], {"url": {"url": "x"}},
)  # fmt: skip
BODIES = (
    b"",
    b" ",
    b"null",
    b"true",
    b"0",
    b'""',
    b"[]",
    b"{}",
    b"[{}]",
    b"{",
    b"\xff\xfe\x00",
    b"<html><body>502 Bad Gateway</body></html>",
    b"NaN",
    b'{"a": NaN, "b": Infinity}',
    b'{"id": "\\ud800", "status": "\\u0000"}',
    b'{"a":1,"a":2}',
    b"[" * 100_000,
    b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    b"9" * 10_000,
    b'{"data": "' + b"x" * 1_000_000 + b'"}',
)


def hostile_bodies(genuine: bytes | None) -> Iterator[bytes]:
    """Yield bodies that are none, and the genuine one cut short and with every value replaced."""
    yield from BODIES
    if genuine is None:
        return
    for share in (0.25, 0.5, 0.75, 0.99):
        yield genuine[: int(len(genuine) * share)]
    yield genuine + genuine
    try:
        content = json.loads(genuine)
    except ValueError:
        return
    for changed in _replaced(content):
        yield json.dumps(changed).encode()


def _replaced(content: Any) -> Iterator[Any]:
    """Yield the content once for every place in it and every hostile value."""
    yield from VALUES
    if isinstance(content, dict):
        for key, inner in content.items():
            yield {name: value for name, value in content.items() if name != key}
            yield from ({**content, key: changed} for changed in _replaced(inner))
    elif isinstance(content, list):
        for place, inner in enumerate(content):
            yield from ([*content[:place], changed, *content[place + 1 :]] for changed in _replaced(inner))
