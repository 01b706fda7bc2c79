"""The list of commands that Telegram shows beside the text field, in every language."""

import hashlib
import json

from telegram import BotCommand

from genlock.bot.bundle import BotBundle
from genlock.channels.telegram.caller import Priority
from genlock.i18n.loader import DEFAULT
from genlock.i18n.translator import Texts
from genlock.ports import KvStore

NAMES = (
    "start", "gen", "models", "results", "favourites", "history", "balance", "topup", "invite", "promo", "language",
    "help", "cancel", "terms", "paysupport", "privacy",
)  # fmt: skip
#: shown only where users' own programs can reach the API
API = "api"
REGISTERED = "chat:commands"


async def register(bundle: BotBundle, store: KvStore) -> bool:
    """Tell Telegram our commands, once for each change of them. False if it knew them."""
    caller, texts = bundle.caller, bundle.texts
    names = [*NAMES, API] if bundle.rules.api_url else NAMES
    lists = {
        language: [(name, texts.translator(language).plain(f"command.{name}")) for name in names]
        for language in texts.languages
    }
    mark = hashlib.sha256(json.dumps(lists).encode()).hexdigest()
    known = await store.kv_get(REGISTERED, bundle.id)
    if known is not None and known.value == mark:
        return False
    for code, language in ((None, DEFAULT), *by_telegram_code(texts)):
        await caller.call(
            caller.bot.set_my_commands,
            chat=None,
            priority=Priority.SCREEN,
            commands=[BotCommand(name, text) for name, text in lists[language]],
            language_code=code,
        )
    await store.kv_put(REGISTERED, mark, bundle.id)
    return True


def by_telegram_code(texts: Texts) -> list[tuple[str, str]]:
    """Languages other than the default, by each Telegram language code they serve."""
    others = [language for language in texts.languages.values() if language.code != DEFAULT]
    return [(code, language.code) for language in others for code in (language.code, *language.telegram_codes)]
