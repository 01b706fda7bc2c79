"""Control characters in names, prompts and callbacks reach neither a terminal nor the log."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

import genlock.cli
from genlock.cli.output import echo, echo_json, show
from genlock.domain.events import Event
from genlock.domain.printable import escape_unprintable
from genlock.log import LogObserver, Mask, set_up_logging
from genlock.sandbox import smoke
from genlock.sandbox.chaos import command as chaos_command
from genlock.sandbox.chaos.disrupted_run import Plan

#: clear the screen, C1 control sequence, next line, line and paragraph separator, right-to-left override, isolates,
#: zero-width ones, an invisible tag, delete
HOSTILE = "\x1b[2J\x9b2J\x85\u2028\u2029\u202a\u202e\u2066\u2069\u200b\u200d\ufeff\U000e0041\x7f\x00\r\n\tend"
#: a quote and a backslash print, and JSON escapes them differently
NOT_IN_JSON = str.maketrans("", "", '"\\')
BLOCK = 64
#: from here Unicode has only unassigned, private and tag characters: only one block of each step is tried
ASSIGNED_END, UNASSIGNED_STEP = 0x40000, 16 * BLOCK
ORDINARY = "Привет, Ann 🦊 — ¥100 é 漢字"


def unprintable(text: str) -> list[str]:
    return [char for char in text if not char.isprintable()]


def test_every_character_that_does_not_print_is_escaped_and_json_stays_valid() -> None:
    wrong = []
    for first in range(0, 0x110000, BLOCK):
        if first >= ASSIGNED_END and first % UNASSIGNED_STEP:
            continue
        characters = "".join(map(chr, range(first, first + BLOCK))).translate(NOT_IN_JSON)
        escaped = escape_unprintable(characters)
        if not escaped.isprintable() or json.loads(f'"{escaped}"') != characters:
            wrong.append(hex(first))
    assert wrong == []


def test_ordinary_text_is_not_changed() -> None:
    assert escape_unprintable(ORDINARY) == ORDINARY


@pytest.fixture(params=[False, True], ids=["human", "json"])
def log(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    stream = io.StringIO()
    set_up_logging(Mask([]), as_json=request.param, stream=stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)
    logging.getLogger("genlock").setLevel(logging.NOTSET)


def test_a_record_is_one_printable_line_of_the_log(log: io.StringIO) -> None:
    as_json = logging.getLogger().handlers[0].formatter._as_json  # type: ignore[union-attr]
    LogObserver(logging.getLogger("genlock"), as_json=as_json).event(Event.STAGE_ERROR, HOSTILE, error=HOSTILE)
    logging.getLogger("uvicorn.error").error("%s", HOSTILE)
    try:
        int(HOSTILE.join("xx"))
    except ValueError:
        logging.getLogger("genlock").exception("unexpected %s", HOSTILE)
    logging.getLogger().handlers[0].flush()
    lines = log.getvalue().split("\n")[:-1]
    assert len(lines) == 3
    assert [unprintable(line) for line in lines] == [[]] * 3
    if as_json:
        first, second, third = map(json.loads, lines)
        assert (first["error"], second["text"]) == (HOSTILE, HOSTILE)
        assert third["event"] == "LOG"


def test_a_command_prints_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"name": HOSTILE, HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}]}], as_json=False, empty="")
    table = capsys.readouterr().out
    assert unprintable(table.replace("\n", "")) == []
    assert len(table.splitlines()) == 3, "a name cannot begin a line of its own"
    show([{"name": HOSTILE}], as_json=True, empty="")
    assert json.loads(capsys.readouterr().out) == [{"name": HOSTILE}]
    echo_json({"name": HOSTILE})
    assert json.loads(capsys.readouterr().out) == {"name": HOSTILE}
    echo(f"{HOSTILE} {ORDINARY}", color="red", err=True)
    captured = capsys.readouterr().err
    assert unprintable(captured.replace("\n", "")) == []
    assert ORDINARY in captured


def test_an_unexpected_error_is_printed_without_secrets_and_control_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError(f"cannot reach postgresql://me:hunter2secret@db/x {HOSTILE}")

    monkeypatch.setenv("GENLOCK_DATABASE_URL", "postgresql://me:hunter2secret@db/x")
    monkeypatch.setattr(genlock.cli, "app", fail)
    with pytest.raises(SystemExit):
        genlock.cli.main()
    output = capsys.readouterr().err
    assert "RuntimeError" in output
    assert "hunter2" not in output
    assert unprintable(output.replace("\n", "")) == []


def test_reports_of_chaos_and_smoke_print_no_control_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = {"ok": False, "jobs": {HOSTILE: 1}, "violations": [f"[red]lost[/red] {HOSTILE}"]}

    async def chaos_report(*_: object) -> tuple[dict[str, object], list[list[str]]]:
        return report, [[HOSTILE, f"line of an order {HOSTILE}"]]

    async def smoke_phases(_: object) -> list[smoke.Phase]:
        return [smoke.Phase(name="money", ok=False, detail=HOSTILE)]

    monkeypatch.setattr(chaos_command, "_through_chats", chaos_report)
    monkeypatch.setattr(smoke, "_run", smoke_phases)
    for module in (chaos_command, smoke):
        monkeypatch.setattr(module, "guarded_folder", lambda: nullcontext(tmp_path))
    for as_json in (True, False):
        assert chaos_command.run(Plan(jobs=10), as_json=as_json) == 1
        captured = capsys.readouterr()
        assert unprintable((captured.out + captured.err).replace("\n", "")) == []
        assert "[red]lost[/red]" in captured.out, "what is in brackets is text, not a style"
        assert smoke.run(as_json=as_json) == 1
        assert unprintable(capsys.readouterr().out.replace("\n", "")) == []


def test_commands_print_only_through_the_module_that_escapes() -> None:
    folder = Path(genlock.cli.__file__).parent
    found = [
        f"{path.name}: {word}"
        for path in folder.glob("*.py")
        for word in ("typer.echo", "typer.secho", "click.echo", "print(", "sys.stdout", "Console(")
        if path.name != "output.py" and word in path.read_text(encoding="utf-8")
    ]
    assert found == [], "use genlock.cli.output"
