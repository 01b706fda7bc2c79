"""Correlation ids: each ties together the log lines of one job, and of the update that ordered it."""

import secrets


def update_correlation_id(update_id: int) -> str:
    """Return the id of an update and of the job that it orders; the same on every attempt at the update."""
    return f"u{update_id}"


def new_correlation_id() -> str:
    """Return a random id, for an order that no update made."""
    return secrets.token_hex(8)
