"""Opens the configured store for the duration of a command, and writes down what commands change."""

import asyncio
import json
import logging
import secrets
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

from genlock.ports import Database, Observer

T = TypeVar("T")
#: who did it, in the audit log: a command does not know who types it
ACTOR = "command"


def with_store(work: Callable[[Database, Observer], Awaitable[T]], *, existing: bool = True) -> T:
    """Open the configured store, await `work` with it, and close it."""
    from genlock.app.databases import open_store
    from genlock.log import LogObserver, Mask, set_up_logging
    from genlock.settings import LogFormat, Settings, read_settings

    settings = read_settings(Settings)
    as_json = settings.log_format is LogFormat.JSON
    set_up_logging(Mask(settings.secrets()), as_json=as_json, stream=sys.stderr, level=logging.WARNING)
    observer = LogObserver(logging.getLogger("genlock"), as_json=as_json)

    async def run() -> T:
        store = await open_store(settings.database_url, observer=observer, in_use_ok=True, existing=existing)
        try:
            return await work(store, observer)
        finally:
            await store.close()

    return asyncio.run(run())


async def audit(
    store: Database, action: str, subject: object, *, bot: str = "", key: str = "", **detail: object
) -> None:
    """Write a line of the audit log; the same key again adds nothing."""
    await store.add_audit(
        key=key or f"command:{secrets.token_hex(16)}",
        actor=ACTOR,
        action=action,
        subject=str(subject),
        detail=json.dumps(detail, ensure_ascii=False) if detail else "",
        bot=bot,
    )
