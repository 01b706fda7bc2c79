"""The list of commands that Telegram shows beside the text field, in both languages."""

import hashlib
import json

from telegram import BotCommand

from genlock.channels.telegram.caller import Caller, Priority
from genlock.i18n.translator import DEFAULT, LANGUAGES, READS_RUSSIAN, translator
from genlock.ports import KvStore

NAMES = (
    "start", "gen", "models", "history", "balance", "topup", "invite", "promo", "language", "help", "cancel", "terms",
    "paysupport",
)  # fmt: skip
REGISTERED = "chat:commands"


async def register(caller: Caller, store: KvStore) -> bool:
    """Tell Telegram our commands, once for each change of them. False if it knew them."""
    lists = {
        language: [(name, translator(language).plain(f"command.{name}")) for name in NAMES] for language in LANGUAGES
    }
    mark = hashlib.sha256(json.dumps([caller.bot.id, lists]).encode()).hexdigest()
    known = await store.kv_get(REGISTERED)
    if known is not None and known.value == mark:
        return False
    for code, language in ((None, DEFAULT), *((code, "ru") for code in READS_RUSSIAN)):
        await caller.call(
            caller.bot.set_my_commands,
            chat=None,
            priority=Priority.SCREEN,
            commands=[BotCommand(name, text) for name, text in lists[language]],
            language_code=code,
        )
    await store.kv_put(REGISTERED, mark)
    return True
