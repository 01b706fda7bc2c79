"""Write the parts of the docs that are generated from the code; with --check, fail if they are out of date.

Generated are `.env.example` and, in every page, the regions `<!-- from: NAME -->` … `<!-- end -->`.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

import click
import typer.main
from pydantic.fields import FieldInfo

import genlock.plugin
import genlock.testing
from docs import plugin_interface
from genlock import cli
from genlock.domain import delivery, events, inbox, job, money, update
from genlock.domain.alarm import ALARMS, NO_ACTIVE
from genlock.entry_points import PREFIX
from genlock.i18n.translator import translator
from genlock.metrics import COUNTS, GAUGES
from genlock.providers.kie.answers import ANSWERS, Row
from genlock.providers.kie.families import ROUTES
from genlock.sandbox.generations import faults as generation_faults
from genlock.sandbox.kie import faults as kie_faults
from genlock.sandbox.telegram import faults as telegram_faults
from genlock.sandbox.try_page.routes import FOLDER as TRY_PAGE
from genlock.settings import ServiceSettings, Settings
from genlock.settings.declared import built_in_fields
from genlock.settings.problems import aliases

DOCS = Path(__file__).parent
EXAMPLE = DOCS.parent / ".env.example"
REGION = re.compile(r"(<!-- from: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def descriptions(kind: type[StrEnum], module: object) -> Iterator[tuple[str, str]]:
    """Yield each member of an enum with the `#:` comment beside it."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")  # type: ignore[attr-defined]
    lines = source.splitlines()
    tree = next(
        node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            comment = [lines[statement.lineno - 1].partition("#: ")[2]]
            for line in lines[statement.lineno :]:
                if not line.strip().startswith("#: "):
                    break
                comment.append(line.strip().removeprefix("#: "))
            name = statement.targets[0].id
            if comment == [""]:
                raise SystemExit(f"{kind.__name__}.{name} needs a `#:` comment beside it that describes it")
            yield kind[name].value, " ".join(comment)


def table(kind: type[StrEnum], module: object) -> str:
    rows = "".join(f"| `{value}` | {text} |\n" for value, text in descriptions(kind, module))
    return f"| value | meaning |\n|---|---|\n{rows}"


def settings() -> str:
    lines = ["| setting | default | meaning |\n|---|---|---|\n"]
    for name, field in all_settings():
        default = "none" if field.is_required() or field.default in (None, (), {}, "") else f"`{field.default}`"
        names = ", or ".join(f"`{alias}`" for alias in aliases(field) or [name])
        lines.append(f"| {names} | {default} | {field.description} |\n")
    return "".join(lines)


def all_settings() -> list[tuple[str, FieldInfo]]:
    """Return every setting with its variable: first those of Telegram and of the providers, which must be set."""
    own = [(f"{PREFIX}{name.upper()}", field) for name, field in Settings.model_fields.items()]
    telegram = [row for row in own if row[0].startswith(f"{PREFIX}TELEGRAM_")]
    return [*telegram, *built_in_fields(), *(row for row in own if row not in telegram)]


def commands() -> str:
    root = typer.main.get_command(cli.app)
    return "\n".join(f"## `{path}`\n\n```\n{text}\n```\n" for path, text in _helps(root, "genlock", None))


def _helps(command: click.Command, path: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    context = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent)
    context.formatter_class = click.HelpFormatter
    formatter = click.HelpFormatter(width=100)
    click.Command.format_usage(command, context, formatter)
    click.Command.format_help_text(command, context, formatter)
    click.Command.format_options(command, context, formatter)
    children = sorted(getattr(command, "commands", {}).items())
    if children:
        with formatter.section("Commands"):
            formatter.write_dl([(name, child.get_short_help_str(limit=200)) for name, child in children])
    yield path, formatter.getvalue().strip()
    for name, child in children:
        yield from _helps(child, f"{path} {name}", context)


def counts() -> str:
    rows = "".join(
        f"| `genlock_{name}_total` | {', '.join(labels) or 'none'} | {text} |\n"
        for name, (text, labels) in COUNTS.items()
    )
    return f"| metric | labels | meaning |\n|---|---|---|\n{rows}"


def gauges() -> str:
    rows = "".join(f"| `genlock_{name}` | {text} |\n" for name, text in GAUGES.items())
    return f"| metric | meaning |\n|---|---|\n{rows}"


def alarms() -> str:
    t = translator("en")
    names = [alarm.name for alarm in (*ALARMS, NO_ACTIVE)]
    rows = "".join(
        f"| `{name}` | {t.plain(f'alarm.{name}.title')} | {t.plain(f'alarm.{name}.remedy')} |\n" for name in names
    )
    return f"| alarm | message | what to do |\n|---|---|---|\n{rows}"


def example() -> str:
    """A `.env` with every setting, its default and what it is for."""
    lines = [
        "# Copy this to `.env` (or /etc/genlock.env) and fill in the first two. All others may stay as they are.\n"
    ]
    first_provider = next(name for name, field in built_in_fields() if field.is_required())
    required = [
        f"{PREFIX}{name.upper()}" for name, field in ServiceSettings.model_fields.items() if field.is_required()
    ]
    for name, field in all_settings():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        shown = "" if default in (None, (), {}) else default
        mark = "" if name in (*required, first_provider) else "#"
        lines.append(f"\n# {field.description}\n{mark}{name}={shown}\n")
    lines.append("\n# for compose.yaml alone: the database's password, made up by you\n#POSTGRES_PASSWORD=\n")
    lines.append(
        "\n# for compose.yaml alone: the base images with their digests, as `make images` prints them\n"
        "#PYTHON_IMAGE=\n#POSTGRES_IMAGE=\n"
    )
    return "".join(lines)


def kie_routes() -> str:
    rows = "".join(
        f"| {family or '(usual)'} | {operation} | `{route.create}` | `{route.query}` |\n"
        for (family, operation), route in ROUTES.items()
    )
    return f"| family | operation | create | status query |\n|---|---|---|---|\n{rows}"


def kie_answers() -> str:
    rows = "".join(
        f"| {_codes(row)} | {_text(row)} | {row.kind} | {row.error_code or f'retry after {row.after:g} s'} |\n"
        for row in ANSWERS
    )
    return f"| code | text | outcome | error code for the user, or retry |\n|---|---|---|---|\n{rows}"


def _codes(row: Row) -> str:
    return "any" if row.codes is None else ", ".join(map(str, sorted(row.codes)))


def _text(row: Row) -> str:
    return "any" if row.text is None else "`" + row.text.pattern.replace("|", "\\|") + "`"


def try_page() -> str:
    """The client of the page at `/try`, as it is."""
    source = (TRY_PAGE / "api.js").read_text(encoding="utf-8")
    return f"```js\n{source}```\n"


REGIONS: dict[str, Callable[[], str]] = {
    "states": lambda: table(job.State, job),
    "deliveries": lambda: table(job.Delivery, job),
    "notices": lambda: table(job.Notice, job),
    "verdicts": lambda: table(job.Verdict, job),
    "hold_states": lambda: table(money.HoldState, money),
    "accounts": lambda: table(money.LedgerAccount, money),
    "inbox": lambda: table(inbox.InboxState, inbox),
    "steps": lambda: table(delivery.Step, delivery),
    "events": lambda: table(events.Event, events),
    "settings": settings,
    "commands": commands,
    "metrics": counts,
    "gauges": gauges,
    "alarms": alarms,
    "updates": lambda: table(update.UpdateState, update),
    "kie_routes": kie_routes,
    "kie_answers": kie_answers,
    "kie_faults": lambda: table(kie_faults.Fault, kie_faults),
    "generation_faults": lambda: table(generation_faults.Fault, generation_faults),
    "try_page": try_page,
    "telegram_faults": lambda: table(telegram_faults.Fault, telegram_faults),
    "plugin_interface": lambda: plugin_interface.interface(genlock.plugin, plugin_interface.PLUGIN),
    "testing_interface": lambda: plugin_interface.interface(genlock.testing, plugin_interface.TESTING),
}


def fill(text: str) -> str:
    return REGION.sub(lambda region: f"{region[1]}\n{REGIONS[region[2]]()}\n{region[3]}", text)


def main() -> int:
    stale = []
    for page in [*sorted(DOCS.rglob("*.md")), EXAMPLE]:
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        if (filled := example() if page is EXAMPLE else fill(text)) != text:
            stale.append(page.name)
            if "--check" not in sys.argv:
                page.write_text(filled, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"out of date: {', '.join(map(str, stale))}; run `make docs`", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
