"""Writes six weeks of an invented bot's business into the sandbox's database before it starts.

The pictures of the dashboard then show orders of many models and ends, payments, refunds, and what needs attention. The
ledger adds up, because the service checks it while the pictures are taken.
"""

import asyncio
import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from random import Random
from time import time
from typing import Any

from genlock.app.databases import open_store
from genlock.log import Silent

BOT = "42"
USERS, ORDERS, DAYS = 140, 1_800, 42
SECOND = 1_000_000
DAY = 86_400 * SECOND
NAMES = (
    "Анна", "Mia", "Иван", "Олег", "Kate", "José", "Дарья", "Liam", "Noor", "Яна", "Tom", "Мария", "Sofia", "Павел",
)  # fmt: skip
#: model, price in our credits, cost in credits of kie, seconds, weight among the orders
MODELS = (
    ("z-image", 2, 0.8, 14, 30), ("google/nano-banana", 8, 4, 22, 24), ("kling-2.6/text-to-video", 110, 55, 150, 12),
    ("veo3_fast", 120, 60, 120, 9), ("suno/generate", 24, 12, 95, 8), ("seedream/4.5-text-to-image", 13, 6.5, 25, 8),
    ("gpt-image/1.5-image-to-image", 16, 8, 40, 6), ("wan/2-6-image-to-video", 140, 70, 180, 5),
    ("elevenlabs/text-to-speech-multilingual-v2", 24, 12, 12, 5), ("topaz/image-upscale", 20, 10, 30, 4),
    ("kling/ai-avatar-standard", 160, 80, 210, 2), ("flux-2/pro-text-to-image", 10, 5, 18, 7),
)  # fmt: skip
#: by provider: what half a US cent, a credit of kie, is in thousandths of its own credit (fal's is a US dollar)
CREDIT = {"kie": 1000, "fal": 5}
PROMPTS = (
    "cat astronaut on the Moon, film grain", "кот-космонавт на Луне, плёночное зерно", "a ship in a storm, slow zoom",
    "портрет девушки в стиле барокко", "neon city after rain, cinematic", "логотип кофейни, минимализм",
    "lo-fi beat for a rainy evening", "дракон над замком на рассвете", "product photo of a glass bottle",
)  # fmt: skip
FAILURES = (
    ("moderation", "Your prompt was flagged by the content filter"), ("provider_failed", "Internal error, try again"),
    ("provider_timeout", "The task took too long"),
)  # fmt: skip
AUDIT: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("credit", "{account}", {"before": {"balance": "0"}, "after": {"balance": "50", "reason": "slow delivery"}}),
    ("ban", "{account}", {"after": {"reason": "spam"}}),
    ("resend", "#{job}", {"before": "succeeded/undeliverable/held/", "after": "succeeded/pending/held/"}),
    ("refund", "#{job}", {"before": "succeeded/delivered/captured/", "after": "refunded 24 credits"}),
    ("edit model", "veo3_fast", {"before": {"price": 60}, "after": {"price": 55}}),
    ("free runs", "{account}", {"after": {"runs": 3}}), ("ledger check", "all", {}),
)  # fmt: skip


class History:
    def __init__(self, connection: sqlite3.Connection, rng: Random, now: int) -> None:
        self._connection, self._rng, self._now = connection, rng, now
        self._available: dict[int, int] = defaultdict(int)

    def write(self) -> None:
        self._add_users()
        for number in range(ORDERS):
            self._add_order(number, self._now - int(DAYS * DAY * (1 - number / ORDERS) ** 1.3) - 600 * SECOND)
        self._add_lists()
        self._connection.execute(
            "UPDATE profiles SET seen_at = max(seen_at, coalesce((SELECT max(created_at) FROM jobs"
            " WHERE jobs.account_id = profiles.account_id), 0))"
        )
        for account, available in self._available.items():
            self._connection.execute("UPDATE accounts SET available = ? WHERE id = ?", (available, account))

    def _insert(self, table: str, **row: Any) -> int:
        names, places = ", ".join(row), ", ".join("?" * len(row))
        cursor = self._connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", tuple(row.values()))  # noqa: S608
        return int(cursor.lastrowid or 0)

    def _move(self, kind: str, account: int, amount: int, key: str, at: int, reason: str = "", **row: Any) -> None:
        routes = {
            "hold": ("available", "held"), "capture": ("held", "house"), "release": ("held", "available"),
            "topup": ("house", "available"), "grant": ("house", "available"), "refund": ("house", "available"),
        }  # fmt: skip
        debit, credit = routes[kind]
        self._available[account] += amount * ((credit == "available") - (debit == "available"))
        self._insert(
            "ledger", key=key, account_id=account, kind=kind, debit=debit, credit=credit, amount=amount, reason=reason,
            at=at, **row,
        )  # fmt: skip

    def _add_users(self) -> None:
        for number in range(1, USERS + 1):
            at = self._now - int(DAYS * DAY * (1 - number / USERS) ** 1.2) - 3600 * SECOND
            name = f"{self._rng.choice(NAMES)} {self._rng.choice('DFGKLMNRS')}."
            account = self._insert(
                "accounts", channel="telegram", bot=BOT, external_id=str(700_000_000 + number * 7919),
                address=f"{700_000_000 + number * 7919}/en", created_at=at,
            )  # fmt: skip
            self._insert(
                "profiles", account_id=account, language=self._rng.choice(("ru", "ru", "en")), name=name,
                username=f"user{number * 37}" if number % 4 else "",
                created_at=at, seen_at=min(at + DAY // 3, self._now),
                referred_by=number // 2 if number % 9 == 0 else None,
                banned_at=at + DAY if number % 45 == 0 else None, ban_reason="spam" if number % 45 == 0 else "",
            )  # fmt: skip
            self._move("grant", account, 300_000, f"welcome:{account}", at, "welcome")
            for payment in range(self._rng.choice((0, 0, 1, 1, 2, 4))):
                self._add_payment(account, min(at + int((payment + 0.3) * 4 * DAY), self._now - 900 * SECOND), payment)

    def _add_payment(self, account: int, at: int, number: int) -> None:
        stars = self._rng.choice((100, 250, 500, 1000))
        charge = f"stx{account:04d}{number}Kq7"
        self._move("topup", account, stars * 4000, f"stars:{charge}", at)
        self._insert(
            "payments", charge=charge, account_id=account, stars=stars, amount=stars * 4000, state="paid", at=at
        )

    def _add_order(self, number: int, at: int) -> None:
        rng = self._rng
        model, price, cost, seconds, _ = rng.choices(MODELS, [row[4] for row in MODELS])[0]
        account = max(1, int(USERS * rng.random() ** 1.6 * min(1, (number + 60) / ORDERS)))
        end = at + int(seconds * SECOND * rng.uniform(0.6, 1.9))
        paid = self._available[account] >= price * 1000 and number % 17 > 0
        state = rng.choices(("succeeded", "failed", "cancelled", "expired"), (90, 6, 3, 0.5))[0]
        succeeded = state == "succeeded"
        provider = "fal" if number % 11 == 0 else "kie"
        lost = succeeded and number % 170 == 0
        code, text = rng.choice(FAILURES) if state == "failed" else ("", "")
        part = {
            "kind": "file", "value": f"https://files.example/{number}.png", "level": "address", "step": "done",
            "message": "5",
        }  # fmt: skip
        hold = "free" if not paid else "captured" if succeeded and not lost else "released"
        job = self._insert(
            "jobs", account_id=account, request_key=f"history-{number}", request_hash="0" * 32,
            correlation_id=f"history-{number}", provider=provider, channel="telegram", bot=BOT,
            address=f"{700_000_000 + account * 7919}/en", placeholder="5", model=model,
            input=json.dumps({"prompt": rng.choice(PROMPTS)}, ensure_ascii=False), price=price * 1000 if paid else 0,
            hold_state=hold, state=state, task_id=f"task-{number:06d}", error_code=code, error_text=text,
            cancelled_by="user" if state == "cancelled" else "",
            cost=int(cost * CREDIT[provider]) if succeeded else None,
            parts=json.dumps([part] if succeeded else []), delivery="undeliverable" if lost else "delivered",
            notice="none", deadline_at=at + 900 * SECOND, lease_token=2, created_at=at, submitted_at=at + SECOND,
            ended_at=end, delivered_at=None if lost else end + SECOND, attempt=1,
            attention_code="undeliverable" if lost else None,
            attention_reason="Forbidden: bot was blocked by the user" if lost else None,
        )  # fmt: skip
        if paid:
            self._move("hold", account, price * 1000, f"hold:{job}", at, job_id=job)
            kind = "capture" if hold == "captured" else "release"
            self._move(kind, account, price * 1000, f"settle:{job}", end, job_id=job)
        if hold == "captured" and number % 90 == 0:
            self._move("refund", account, price * 1000, f"refund:{job}", end + 3600 * SECOND, f"order {job} refunded")

    def _add_lists(self) -> None:
        for number in range(60):
            action, subject, detail = AUDIT[number % len(AUDIT)]
            subject = subject.format(account=1 + number * 7 % USERS, job=1 + number * 31 % ORDERS)
            self._insert(
                "audit", at=self._now - (60 - number) * DAY // 5, bot=BOT, key=f"history-{number}", actor="1003",
                action=action, subject=subject, detail=json.dumps(detail) if detail else "",
            )  # fmt: skip
        for number, code in enumerate(("AUTUMN", "WELCOME50", "BLOGGER-KIRA", "HALLOWEEN")):
            self._insert(
                "promos", code=code, bot=BOT, amount=(20_000, 50_000, 40_000, 30_000)[number], runs=0,
                used=(37, 112, 8, 64)[number],
                uses_max=(100, None, 50, 64)[number], per_account=1, author="1003",
                created_at=self._now - (40 - 9 * number) * DAY,
            )  # fmt: skip
        for number, text in enumerate(("<b>Veo 3.1</b> is here", "Скидка 20 % на звёзды до воскресенья")):
            self._insert(
                "broadcasts", bot=BOT, text=text, author="1003", request_key=f"history-{number}", state="done",
                reached=USERS, sent=USERS - 9 - number, failed=9 + number, total=USERS,
                created_at=self._now - (20 - 12 * number) * DAY,
            )  # fmt: skip
        for number in range(3):
            self._insert(
                "inbox", provider="kie", body=b'{"code": 200, "msg": ', state="unreadable", note="not JSON",
                received_at=self._now - number * DAY,
            )  # fmt: skip
        cancelled = "SELECT id FROM jobs WHERE state = 'cancelled' ORDER BY id DESC LIMIT 3"
        for number, (job,) in enumerate(self._connection.execute(cancelled).fetchall()):
            self._connection.execute("UPDATE jobs SET cost = 4000 WHERE id = ?", (job,))
            self._insert("job_anomalies", job_id=job, kind="loss", at=self._now - number * DAY)


async def _create(file: Path) -> None:
    await (await open_store(f"sqlite:///{file}", observer=Silent())).close()


def write_history(file: Path) -> None:
    """Create the sandbox's database with the history in it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    asyncio.run(_create(file))
    with closing(sqlite3.connect(file)) as connection, connection:
        History(connection, Random(7), int(time()) * SECOND).write()  # noqa: S311 - invented data
