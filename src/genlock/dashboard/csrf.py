"""Proof that a form comes from a page of the same session."""

import hashlib
from urllib.parse import urlsplit

from starlette.requests import Request


def csrf_token(session_secret: str) -> str:
    """Return the token of a session's forms. It is derived, so that every instance knows it."""
    return hashlib.sha256(f"csrf:{session_secret}".encode()).hexdigest()


def is_same_origin(request: Request) -> bool:
    """Whether a form comes from a page of this host. Browsers name the origin of every form that is posted."""
    origin = request.headers.get("Origin")
    try:
        return origin is None or urlsplit(origin).netloc == request.headers.get("Host", "")
    except ValueError:  # no address at all
        return False
