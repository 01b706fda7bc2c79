"""Templates and static files, read once."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from genlock import __version__
from genlock.dashboard import formats
from genlock.dashboard.timeline_facts import Fact, fact_in_words
from genlock.domain.money import THOUSANDTHS
from genlock.domain.printable import shown
from genlock.i18n.audit_words import actor_in_words, change_in_words
from genlock.i18n.catalog_texts import model_title

_MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


@cache
def environment() -> Environment:
    found = Environment(
        loader=PackageLoader("genlock.dashboard", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {
        "t": _translate, "static": static_path, "release": release, "time": _time, "thousandths": THOUSANDTHS,
    }  # fmt: skip
    found.filters |= {
        "credits": _credits,
        "amount": _amount,
        "aligned_amount": _aligned_amount,
        "number": _number,
        "duration": _duration,
        "fine_dollars": _fine_dollars,
        "shown": shown,
        "model_title": _model_title,
        "provider_title": _provider_title,
        "actor": _actor,
        "change_in_words": _change_in_words,
        "fact": _fact,
    }
    return found


@pass_context
def _translate(context: Context, key: str, /, **values: Any) -> str:
    return str(context["context"].t.plain(key, **values))


@pass_context
def _credits(context: Context, thousandths: int) -> str:
    return str(context["context"].t.credits(thousandths))


@pass_context
def _fine_dollars(context: Context, amount: Decimal) -> str:
    return str(context["context"].t.dollars(Decimal(amount), fine=True))


@pass_context
def _amount(context: Context, thousandths: int) -> str:
    return str(context["context"].t.amount(thousandths))


@pass_context
def _aligned_amount(context: Context, thousandths: int) -> str:
    return str(context["context"].t.aligned_amount(thousandths))


@pass_context
def _number(context: Context, number: float) -> str:
    return str(context["context"].t.number(number))


@pass_context
def _duration(context: Context, seconds: float) -> str:
    return str(context["context"].t.duration(seconds))


@pass_context
def _provider_title(context: Context, name: str) -> str:
    return str(context["context"].provider_title(name))


@pass_context
def _model_title(context: Context, title: str) -> str:
    return model_title(title, context["context"].t)


@pass_context
def _actor(context: Context, actor: str) -> str:
    return actor_in_words(actor, context["context"].t)


@pass_context
def _change_in_words(context: Context, fields: Mapping[str, Any]) -> str:
    return change_in_words(fields, context["context"].t)


@pass_context
def _fact(context: Context, value: Any, name: str) -> Fact:
    return fact_in_words(name, value, context["context"].t, context["context"].provider_title)


@pass_context
def _time(context: Context, at: datetime | None, *, seconds: bool = False, after: datetime | None = None) -> str:
    """Return a time in the viewer's zone; the hover text is UTC. The day is left out if it is the day of `after`."""
    if at is None:
        return "—"
    page = context["context"]
    local = at.astimezone(page.zone)
    written = f"{local:%H:%M:%S}" if seconds else f"{local:%H:%M}"
    if after is None or after.astimezone(page.zone).date() != local.date():
        written = f"{page.day(local)}, {written}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(formats.iso(at), formats.utc(at), written)


# static files


@cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """Return every static file with its media type, by name."""
    folder = files("genlock.dashboard") / "static"
    found = {}
    for file in folder.iterdir():
        kind = file.name.rpartition(".")[2]
        if kind in _MEDIA_TYPES:
            found[file.name] = (file.read_bytes(), _MEDIA_TYPES[kind])
    return MappingProxyType(found)


@cache
def release() -> str:
    """Return what distinguishes this version of the pages from another: the version and the static files."""
    digest = hashlib.sha256(__version__.encode())
    for name in sorted(static_files()):
        digest.update(static_path(name).encode())
    return digest.hexdigest()[:12]


@cache
def static_path(name: str) -> str:
    """Return the address of a static file. It changes with the content, so that browsers may keep the file."""
    digest = hashlib.sha256(static_files()[name][0]).hexdigest()[:12]
    return f"/dashboard/static/{digest}/{name}"
