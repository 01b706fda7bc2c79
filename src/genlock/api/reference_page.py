"""The reference of the API as one HTML page, made from its OpenAPI document: no script, no request to other hosts."""

from html import escape
from typing import Any

from genlock.api.problems import CODES

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: light-dark(#5f5f5f, #a3a3a3); --code: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem 1rem 4rem; }
code, pre { font: 14px/1.45 ui-monospace, monospace; background: var(--code); border-radius: 4px; padding: .1em .3em; }
pre { padding: .8em; overflow-x: auto; }
details { border: 1px solid var(--line); border-radius: 8px; margin: .5rem 0; }
summary { cursor: pointer; padding: .6rem .8rem; overflow-wrap: anywhere; }
details > div { padding: 0 1rem 1rem; }
.method { display: inline-block; min-width: 4em; font-weight: 700; }
.dim { color: var(--dim); }
table { border-collapse: collapse; width: 100%; display: block; overflow-x: auto; }
td, th { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
h2 { margin-top: 2rem; text-transform: capitalize; }
"""
_EXAMPLE = """curl -sS {base_url}/v1/jobs \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Idempotency-Key: order-1" \\
  -H "Content-Type: application/json" -H "Prefer: wait=60" \\
  -d '{{"model": "MODEL", "input": {{"prompt": "a cat in a space suit"}}}}'"""


def render_reference(document: dict[str, Any], public_url: str | None) -> str:
    """Return the page, with an example for the public URL, if there is one.

    All texts are escaped: the document is ours, but models may be an operator's.
    """
    tags: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tags.setdefault(operation["tags"][0], []).append(_operation(path, method, operation))
    operations = "".join(f"<h2>{escape(tag)}</h2>{''.join(found)}" for tag, found in tags.items())
    schemas = "".join(_schema(name, schema) for name, schema in document["components"]["schemas"].items())
    info = document["info"]
    example = _EXAMPLE.format(base_url=public_url or "https://YOUR-HOST")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} API</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(info['title'])} API</h1><p>{_prose(info['description'])}</p>"
        f'<p class="dim">OpenAPI {document["openapi"]}: <a href="/v1/openapi.json">openapi.json</a></p>'
        f"<pre>{escape(example)}</pre>{operations}<h2>types</h2>{schemas}<h2>problems</h2>{_problems()}</body></html>"
    )


def _problems() -> str:
    rows = "".join(
        f'<tr id="problem-{code}"><td><code>{code}</code></td><td>{_prose(text)}</td></tr>'
        for code, text in CODES.items()
    )
    return f"<table>{rows}</table>"


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    parameters = "".join(
        f"<tr><td><code>{escape(row['name'])}</code></td><td>{escape(row['in'])}"
        f"{', required' if row['required'] else ''}</td><td>{_prose(row.get('description', ''))}</td></tr>"
        for row in operation["parameters"]
    )
    table = f"<table><tr><th>Parameter</th><th>In</th><th></th></tr>{parameters}</table>" if parameters else ""
    answers = "".join(
        f"<tr><td>{status}</td><td>{_prose(answer['description'])}</td>"
        f"<td>{_content(answer.get('content', {}))}</td></tr>"
        for status, answer in operation["responses"].items()
    )
    body = f"<p>Body: {_content(operation['requestBody']['content'])}</p>" if "requestBody" in operation else ""
    return (
        f'<details id="{escape(operation["operationId"])}"><summary><span class="method">{method.upper()}</span> '
        f'<code>{escape(path)}</code> <span class="dim">{escape(operation["summary"])}</span></summary><div>'
        f"<p>{_prose(operation['description'])}</p>{table}{body}"
        f"<table><tr><th>Status</th><th>Meaning</th><th>Content</th></tr>{answers}</table></div></details>"
    )


def _content(content: dict[str, Any]) -> str:
    return "<br>".join(
        f"<code>{escape(kind)}</code> {_type(media['schema']) if 'schema' in media else ''}"
        for kind, media in content.items()
    )


def _schema(name: str, schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = "".join(
        f"<tr><td><code>{escape(field)}</code>{' *' if field in required else ''}</td><td>{_type(field_schema)}</td>"
        f"<td>{_prose(field_schema.get('description', ''))}</td></tr>"
        for field, field_schema in schema.get("properties", {}).items()
    )
    values = (
        f"<p>{' '.join(f'<code>{escape(str(word))}</code>' for word in schema['enum'])}</p>" if "enum" in schema else ""
    )
    return (
        f'<details id="type-{escape(name)}"><summary><code>{escape(name)}</code></summary><div>'
        f"<p>{_prose(schema.get('description', ''))}</p>{values}<table>{rows}</table></div></details>"
    )


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#type-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(variant) for variant in schema["anyOf"])
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    if "enum" in schema:
        return " ".join(f"<code>{escape(str(word))}</code>" for word in schema["enum"])
    kind = escape(str(schema.get("type", "any")))
    return f"{kind} ({escape(schema['format'])})" if "format" in schema else kind


def _prose(text: str) -> str:
    """Escape a text and mark what stands between backquotes as code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces))
