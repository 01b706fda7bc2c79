"""The ports of the sandbox, and what it says when they are in use."""

import socket
from collections.abc import Iterator

import pytest

from genlock.domain.errors import Refusal
from genlock.sandbox import run
from tests.journeys.sandbox_process import find_four_ports


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The first of four default ports, in use; the others are free."""
    port = find_four_ports()
    monkeypatch.setattr(run, "FIRST_PORT", port)
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        yield port


def test_a_default_port_that_is_in_use_is_replaced_and_named_in_one_line(first: int) -> None:
    ports = run._ports(None)
    assert ports[1:] == [first + 1, first + 2, first + 3]
    assert run._taken_ports(None, ports) == (
        f"Port {first} is in use, so the chat page is on {ports[0]}. --port N uses four ports from N on."
    )


def test_nothing_is_said_of_ports_that_are_used_as_expected(first: int) -> None:
    assert run._taken_ports(None, range(first, first + 4)) == ""
    chosen = find_four_ports()
    assert run._taken_ports(chosen, run._ports(chosen)) == ""
    with pytest.raises(Refusal, match=f"port {first} is in use"):
        run._ports(first)
