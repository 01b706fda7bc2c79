"""Describe what plug-ins import, from the docstrings of the code and its `#:` comments."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType

from genlock.domain import attempt
from genlock.ports import base_url, plugin, provider

Subjects = Mapping[str, tuple[str, ...]]
PLUGIN: Subjects = {
    "The plug-in of a provider": (
        "ProviderPlugin", "ProviderContext", "ProviderBundle", "RateLimit", "ProviderHealth", "VerifyCallback",
        "SampleCallback", "CreateRequest", "UploadFile", "BaseUrl", "PORT_VERSION",
    ),
    "The adapter of a provider": (
        "Provider", "TaskOrder", "Handle", "Report", "Outcome", "Piece", "PartKind", "CancelOutcome", "ELSEWHERE",
    ),
    "What a provider publishes": (
        "PublicSource", "PublicLists", "FetchSchemas", "ModelSchema", "InputSchema", "normalise_label",
    ),
    "The plug-in of a channel": ("ChannelPlugin", "ChannelContext", "ChannelBundle", "Orders", "OrderRefused"),
    "The adapter of a channel": (
        "Channel", "Part", "Level", "Placed", "MessageTexts", "OutgoingMessage", "Button", "FileLabel",
    ),
    "The job": ("Job", "State", "Delivery", "HoldState"),
    "Errors": (
        "SubmitRefused", "ProviderBusy", "SubmitUnknown", "ProviderError", "LevelRefused", "PlaceholderGone",
        "ChannelBusy", "ChannelOutcomeUnknown", "AddressChanged", "RecipientUnreachable", "InvalidResult",
        "ChannelError",
    ),
}  # fmt: skip
TESTING: Subjects = {
    "The tests of a provider": (
        "ProviderConformance", "ProviderCallbackConformance", "ProviderSubject", "Situation", "SentCallback",
    ),
    "The tests of a channel": ("ChannelConformance", "ChannelSubject", "ChannelSituation", "Shown"),
    "For both": ("NotShown", "make_job", "make_order"),
}  # fmt: skip
#: where the constants and the types of functions are defined
CONSTANTS: tuple[ModuleType, ...] = (provider, plugin, base_url, attempt)


def interface(module: ModuleType, subjects: Subjects) -> str:
    """Return the description of every name of a module, by subject."""
    listed, exported = {name for names in subjects.values() for name in names}, set(module.__all__)
    if listed != exported:
        raise SystemExit(f"{__file__} and {module.__name__}.__all__ differ: {sorted(listed ^ exported)}")
    constants = {name: text for source in CONSTANTS for name, text in _constants(source)}
    return "\n\n".join(
        "\n\n".join([f"## {subject}", *(_described(name, getattr(module, name), constants).strip() for name in names)])
        for subject, names in subjects.items()
    )


def _described(name: str, value: object, constants: Mapping[str, str]) -> str:
    head = f"### `{name}`\n\n"
    if not inspect.isclass(value) and not inspect.isfunction(value):
        return head + constants[name]
    source = inspect.getsource(value)
    node = ast.parse(source).body[0]
    if isinstance(node, ast.FunctionDef):
        return head + _function(node)
    assert isinstance(node, ast.ClassDef)
    return head + _docstring(node) + _fields(node, source.splitlines()) + "".join(_methods(node))


def _constants(module: ModuleType) -> Iterator[tuple[str, str]]:
    source = inspect.getsource(module)
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = _comment(node, source.splitlines())
            yield node.targets[0].id, f"{text}\n\n```python\n{ast.get_source_segment(source, node)}\n```\n"


def _docstring(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    text = ast.get_docstring(node)
    return f"{text}\n\n" if text else ""


def _fields(node: ast.ClassDef, lines: list[str]) -> str:
    """Return fields, members of an enum and properties as a table."""
    rows = []
    for statement in node.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            rows.append((ast.unparse(statement), _comment(statement, lines)))
        elif isinstance(statement, ast.FunctionDef) and _is_property(statement):
            rows.append((f"{statement.name}: {ast.unparse(statement.returns or statement)}", _docstring(statement)))
    cells = [f"| `{_cell(name)}` | {_cell(text)} |\n" for name, text in rows]
    return f"| name | meaning |\n|---|---|\n{''.join(cells)}\n" if cells else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _comment(statement: ast.stmt, lines: list[str]) -> str:
    """Return the `#:` comment that begins beside a statement, else the one before it."""
    place, texts = statement.lineno - 1, []
    if "#: " in lines[place]:
        texts.append(lines[place].partition("#: ")[2])
        rest = lines[place + 1 :]
    else:
        rest = lines[:place][::-1]
    for line in rest:
        if not line.strip().startswith("#: "):
            break
        texts.append(line.strip().removeprefix("#: "))
    return " ".join(texts if "#: " in lines[place] else texts[::-1])


def _methods(node: ast.ClassDef) -> Iterator[str]:
    for method in node.body:
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) or _is_property(method):
            continue
        if method.name == "__init__" or not method.name.startswith(("_", "test_")):
            yield _function(method)


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    arguments = ast.unparse(node.args).replace("=", " = ")
    return f"```python\n{kind} {node.name}({arguments}){returns}\n```\n\n{_docstring(node)}"
