"""What a page gets with a request, and how it answers."""

import base64
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from genlock.dashboard.forms import Form
from genlock.dashboard.rendering import render
from genlock.dashboard.roles import Permission
from genlock.domain.operator import Operator
from genlock.engine.logins import Login
from genlock.i18n.translator import Translator
from genlock.ports import AuditStore

ROOT = "/dashboard"
NOTICE_COOKIE = "genlock_notice"
NOTICE_LENGTH_MAX = 1_000
_REQUEST_KEY_LENGTH_MAX = 64
_DETAIL_LENGTH_MAX = 4_000


class PageNotFound(Exception):
    """There is nothing at this address; `subject` is the key of the text that says what is missing."""

    def __init__(self, text: str = "dashboard.error.no_page", **values: object) -> None:
        super().__init__(text)
        self.text = text
        self.values = values


@dataclass(frozen=True, kw_only=True)
class FlashMessage:
    """A line above the next page about what has just been done. `tone` is `good` or `bad`."""

    text: str
    tone: str = "good"


@dataclass(kw_only=True)
class PageContext:
    """One request of an operator who is logged in."""

    request: Request
    login: Login
    permissions: frozenset[Permission]
    t: Translator
    zone: tzinfo
    #: proves that a form comes from a page of this session
    csrf: str
    audit_store: AuditStore
    #: whether the session is still open, for an answer that takes long
    is_logged_in: Callable[[], Awaitable[bool]]
    #: returns the name that operators know a provider by
    provider_title: Callable[[str], str]
    #: figures that every page shows, such as the number of jobs that need attention
    badges: Mapping[str, int] = field(default_factory=dict)
    form: Form = field(default_factory=lambda: Form({}))
    notice: FlashMessage | None = None

    @property
    def operator(self) -> Operator:
        return self.login.operator

    def day(self, local: datetime) -> str:
        """Return the day of a time in the viewer's zone; with its year, if that is not the current one."""
        written = local.replace(tzinfo=UTC)  # texts are written in UTC
        is_this_year = local.year == self.login.session.seen_at.astimezone(self.zone).year
        return self.t.day(written) if is_this_year else self.t.date(written)

    def can(self, permission: Permission | str) -> bool:
        return permission in self.permissions

    @cached_property
    def request_key(self) -> str:
        """The key of the posted form: the same form posted twice acts once."""
        return self.form["request_key"][:_REQUEST_KEY_LENGTH_MAX] or secrets.token_hex(16)

    @property
    def is_part(self) -> bool:
        """Whether a script of the page asked for a part of it only."""
        return "HX-Request" in self.request.headers and "HX-Boosted" not in self.request.headers

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        text = render(template, context=self, new_key=lambda: secrets.token_hex(16), **values)
        response = HTMLResponse(text, status)
        if self.notice is not None and not self.is_part:
            response.delete_cookie(NOTICE_COOKIE, path=ROOT)
        return response

    def redirect(self, path: str, notice: str = "", *, tone: str = "good", **values: object) -> Response:
        """Answer a form: go to a page of the dashboard, with a notice above it."""
        response = RedirectResponse(f"{ROOT}{path}", 303)
        if notice:
            text = self.t.plain(notice, **values)[:NOTICE_LENGTH_MAX]
            packed = base64.urlsafe_b64encode(json.dumps([tone, text]).encode()).decode()
            response.set_cookie(NOTICE_COOKIE, packed, max_age=60, path=ROOT, httponly=True, samesite="lax")
        return response

    async def audit(
        self, action: str, subject: object, *, before: object = None, after: object = None, once: bool = False
    ) -> None:
        """Write down what the operator did.

        `once` says that the form cannot act a second time, so that it adds one line however often it is posted. Any
        other action is a line each time: the key of a form comes from outside, and must not hide what was done.
        """
        detail = {name: value for name, value in (("before", before), ("after", after)) if value is not None}
        key = self.request_key if once else secrets.token_hex(16)
        await self.audit_store.add_audit(
            key=f"dashboard:{self.operator.id}:{key}:{action}:{subject}",
            actor=self.operator.id,
            action=action,
            subject=str(subject),
            detail=json.dumps(detail, ensure_ascii=False, default=str)[:_DETAIL_LENGTH_MAX] if detail else "",
        )

    def here(self, **changes: object) -> str:
        """Return the address of this page with some parameters changed; None removes one."""
        query = {**self.request.query_params, **changes}
        text = urlencode({name: value for name, value in query.items() if value not in (None, "")})
        return f"{self.request.url.path}?{text}" if text else self.request.url.path


Handler = Callable[[PageContext], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class PageRoute:
    #: below `/dashboard`, with parameters as Starlette writes them
    path: str
    handler: Handler
    permission: Permission
    method: str = "GET"
    #: whether the answer is not a whole page: a part of one, a stream or a file
    is_data: bool = False


def read_notice(request: Request) -> FlashMessage | None:
    packed = request.cookies.get(NOTICE_COOKIE)
    if not packed or len(packed) > NOTICE_LENGTH_MAX * 8:
        return None
    try:
        tone, text = json.loads(base64.urlsafe_b64decode(packed))
    except (ValueError, TypeError):
        return None
    return FlashMessage(text=str(text)[:NOTICE_LENGTH_MAX], tone="bad" if tone == "bad" else "good")
