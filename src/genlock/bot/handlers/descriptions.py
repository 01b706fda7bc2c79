"""What Telegram shows about the bot before the first message and in its profile, in every language."""

import hashlib

from genlock.bot.bundle import BotBundle
from genlock.bot.handlers.command_menu import by_telegram_code
from genlock.bot.screen_context import shorten_lines
from genlock.channels.telegram.caller import Priority
from genlock.i18n.loader import DEFAULT
from genlock.ports import KvStore

#: what Telegram takes, in characters
DESCRIPTION_MAX, SHORT_DESCRIPTION_MAX = 512, 120


async def register_descriptions(bundle: BotBundle, store: KvStore) -> int:
    """Tell Telegram each description that has changed. Return how many were told.

    Each one is remembered by itself, because Telegram accepts only a few changes at a time.
    """
    bot, told = bundle.caller.bot, 0
    for code, language in ((None, DEFAULT), *by_telegram_code(bundle.texts)):
        t = bundle.texts.translator(language)
        for name, set_text, most in (
            ("description", bot.set_my_description, DESCRIPTION_MAX),
            ("short_description", bot.set_my_short_description, SHORT_DESCRIPTION_MAX),
        ):
            text = shorten_lines(t.plain(f"profile.{name}"), most)
            key, mark = f"chat:{name}:{code or ''}", hashlib.sha256(text.encode()).hexdigest()
            known = await store.kv_get(key, bundle.id)
            if known is not None and known.value == mark:
                continue
            await bundle.caller.call(
                set_text,
                chat=None,
                priority=Priority.SCREEN,
                language_code=code,
                **{name: text},
            )
            await store.kv_put(key, mark, bundle.id)
            told += 1
    return told
