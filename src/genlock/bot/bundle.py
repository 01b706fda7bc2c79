"""A bot as a bundle: everything that differs between two bots on one database."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from genlock.bot.rules import BotRules
from genlock.channels.telegram.caller import Caller, Priority, bot_id
from genlock.engine.tell import SendQueued
from genlock.i18n.translator import Texts, Translator, package_texts

__all__ = ["BotBundle", "MakeDashboardLink", "SendQueued"]

#: returns the address of a one-time link to the dashboard for a Telegram id; None if the id has no access
MakeDashboardLink = Callable[[str], Awaitable[str | None]]


@dataclass(kw_only=True)
class BotBundle:
    caller: Caller
    rules: BotRules
    dashboard_link: MakeDashboardLink | None = None
    texts: Texts = field(default_factory=package_texts)
    #: the bot's own name in lower case; empty until `introduce` has succeeded
    username: str = ""

    @property
    def id(self) -> str:
        """Which accounts, update queues, audit lines, broadcasts and kv entries are this bot's."""
        return bot_id(self.caller.bot.token)

    @property
    def admin_ids(self) -> frozenset[int]:
        return self.rules.admin_ids

    @property
    def link(self) -> str:
        """The address that opens a private chat with the bot."""
        return f"https://t.me/{self.username}"

    async def introduce(self) -> None:
        """Ask Telegram for the username unless it is known."""
        if not self.username:
            me = await self.caller.call(self.caller.bot.get_me, chat=None, priority=Priority.SCREEN)
            self.username = (me.username or "").lower()

    def translator_for(self, telegram_code: str | None) -> Translator:
        """Return the translator for a user without a profile, by the language of their Telegram client."""
        return self.texts.translator(self.texts.guess_language(telegram_code))
