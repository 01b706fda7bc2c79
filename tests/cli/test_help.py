"""`--help` as an operator reads it in a terminal of 80 columns."""

import re
from collections.abc import Iterator

import typer.main
from typer.testing import CliRunner

from genlock import cli

#: what is written in a terminal of 80 columns
WIDTH = 78
TYPES = re.compile(r"<\w[^>]*(range|list\[)|\{[a-z]")


def helps() -> Iterator[tuple[str, str]]:
    """Yield each command and its help."""
    paths: list[tuple[str, ...]] = [()]
    root = typer.main.get_command(cli.app)
    for path in paths:
        command = root
        for name in path:
            command = command.commands[name]  # type: ignore[attr-defined]
        paths += [(*path, name) for name in getattr(command, "commands", {})]
        yield " ".join(("genlock", *path)), CliRunner().invoke(cli.app, [*path, "--help"], terminal_width=WIDTH).output


def test_no_help_cuts_a_sentence_or_shows_the_name_of_a_type() -> None:
    shown = dict(helps())
    assert len(shown) > 30
    lines = [(command, line) for command, text in shown.items() for line in text.splitlines()[1:]]
    assert [line for line in lines if line[1].endswith("...")] == [], "each first sentence fits its line in the list"
    assert [line for line in lines if TYPES.search(line[1])] == []
    assert [line for line in lines if len(line[1]) > WIDTH] == []
