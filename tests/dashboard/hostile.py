"""Rows whose every text from outside is hostile: markup, directions of writing, control characters, great length."""

import json
import sqlite3
from dataclasses import dataclass
from functools import partial
from typing import Any

from genlock.domain.money import EntryKind
from genlock.stores.sqlite import SqliteStore
from tests.dashboard.world import DashboardWorld
from tests.stores.builders import ensure_profile

MARKUP = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'><b>&lt;{{7*7}}"
CONTROLS = "\u202eevil\u202c \x1b[31mred\x07 \u2066x\u2069 end"
LONG = "Ж" * 100_000
#: of everything a little at its beginning, since many fields take no more
MIXED = f"👩‍🚀🇷🇺 نص \u202eevil\u202c\x1b[31m {MARKUP} {CONTROLS} نص من اليمين إلى اليسار"
TEXTS = (MIXED, LONG, "a" * 3_000)
STATES = ("succeeded", "failed", "running", "expired", "cancelled", "queued")


@dataclass(frozen=True, kw_only=True)
class Hostile:
    jobs: tuple[int, ...]
    accounts: tuple[int, ...]


async def add_hostile_rows(dashboard: DashboardWorld) -> Hostile:
    """Store users, payments, orders, callbacks and audit lines that attack the pages; one order in each state."""
    store: Any = dashboard.store
    assert isinstance(store, SqliteStore)
    now, accounts = await store.read_clock(), []
    for number, text in enumerate(TEXTS):
        account_id = await store.ensure_account(dashboard.channel.name, "42", f"{1000 + number}")
        accounts.append(account_id)
        await ensure_profile(store, account_id, language="en", name=text, username=text[:50], referred_by=None)
        await store.transfer(account_id, EntryKind.GRANT, 100_000, f"gift:{number}", text)
        await store.add_payment(f"charge-{number}-{text[:40]}", account_id, 100, 130_000)
        await store.add_audit(key=f"{number}", actor=text[:60], action="credit", subject=text, detail=text)
        await store.begin_broadcast(text, bot="42", author="7", request_key=f"{number}")
    owners = [accounts[number % len(accounts)] for number in range(len(STATES))]
    rows = [_job(number, account_id, now.timestamp()) for number, account_id in enumerate(owners)]
    ids = await store.session.call(lambda connection: [_insert(connection, "jobs", row) for row in rows])
    callbacks = [_callback(number, job_id, now.timestamp()) for number, job_id in enumerate(ids)]
    await store.session.call(lambda connection: [_insert(connection, "inbox", row) for row in callbacks])
    for number, account_id in enumerate(accounts):
        await store.session.call(partial(_add_webhook, number, account_id))
    return Hostile(jobs=tuple(ids), accounts=tuple(accounts))


def _text(number: int) -> str:
    return TEXTS[number % len(TEXTS)]


def _job(number: int, account_id: int, now: float) -> dict[str, Any]:
    text, state = _text(number), STATES[number]
    at = int((now - 3600 - number) * 1_000_000)
    is_open, succeeded = state in ("queued", "running"), state == "succeeded"
    attention = state in ("failed", "expired")
    part = {"kind": "text", "value": text, "level": "text", "step": "done", "message": "5"}
    return {
        "account_id": account_id, "request_key": f"k{number}", "request_hash": "x", "correlation_id": f"corr{number}",
        "provider": "fake", "channel": "chat", "bot": "42", "address": "1", "placeholder": "5",
        "model": "z-image" if number % 2 else text[:60], "input": json.dumps({"prompt": text, "aspect_ratio": "1:1"}),
        "price": 0, "hold_state": "free", "state": state, "task_id": f"task{number}-{text[:30]}",
        "error_code": "" if succeeded or is_open else "provider_failed", "error_text": text,
        "cancelled_by": "user" if state == "cancelled" else "", "parts": json.dumps([part] if succeeded else []),
        "delivery": "none" if is_open else "delivered", "notice": "none", "deadline_at": at, "lease_token": 2,
        "attention_code": "undeliverable" if attention else None, "attention_reason": text if attention else None,
        "due_at": at * 2 if is_open else None, "created_at": at, "submitted_at": at,
        "ended_at": None if is_open else at, "delivered_at": None if is_open else at,
    }  # fmt: skip


def _callback(number: int, job_id: int, now: float) -> dict[str, Any]:
    body = json.dumps({"state": "success", "text": _text(number)}).encode()
    state = ("done", "unreadable", "orphan", "expired", "matched", "done")[number]
    return {
        "provider": "fake", "job_id": None if state in ("orphan", "expired") else job_id, "task_id": f"task{number}",
        "body": body, "state": state, "note": _text(number), "received_at": int((now - 60) * 1_000_000),
    }  # fmt: skip


def _add_webhook(number: int, account_id: int, connection: sqlite3.Connection) -> None:
    """Add an endpoint with a delivery in each state; every text is hostile."""
    text = TEXTS[number]
    webhook = {
        "account_id": account_id, "public_id": f"we_{number}", "url": f"https://x.example/{text}", "events": " ",
        "description": text, "enabled": number % 2, "disabled_reason": text, "held_until": 1, "created_at": 1,
        "secret": "v1.1.lost.AAAA" if number == 0 else "",
    }  # fmt: skip
    webhook_id = _insert(connection, "webhooks", webhook)
    for state in ("pending", "delivered", "failed"):
        delivery = {
            "public_id": f"msg_{number}{state}", "webhook_id": webhook_id, "job_id": number + 1,
            "event": "job.succeeded", "event_at": 1, "state": state, "attempts": 3, "last_status": 500,
            "due_at": 1 if state == "pending" else None, "last_error": text, "last_answer": text,
        }  # fmt: skip
        _insert(connection, "webhook_deliveries", delivery)


def _insert(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> int:
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    found = connection.execute(f"INSERT INTO {table} ({names}) VALUES ({values}) RETURNING id", row)  # noqa: S608
    return int(found.fetchone()[0])
