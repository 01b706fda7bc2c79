"""Makes the logins to the dashboard."""

from genlock.engine.logins import Logins
from genlock.ports import Database
from genlock.settings import Settings


def make_logins(settings: Settings, store: Database) -> Logins:
    token = settings.dashboard_token.get_secret_value() if settings.dashboard_token else None
    return Logins(store, owners=frozenset(settings.admin_ids), token=token)


def public_url(settings: Settings) -> str:
    """Return the base URL under which an operator reaches this installation: the public one, or this machine."""
    if settings.public_url:
        return settings.public_url
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::", "") else settings.host  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"
