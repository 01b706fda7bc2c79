"""Which bot of Telegram this is."""

from genlock.channels.telegram.caller import Caller, Priority, bot_id


class BotIdentity:
    """The bot's id, known from its token, and its username, asked from Telegram once."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.id = bot_id(caller.bot.token)
        #: in lower case; empty until `load` has succeeded
        self.username = ""

    async def load(self) -> None:
        """Ask Telegram for the username unless it is known."""
        if not self.username:
            me = await self._caller.call(self._caller.bot.get_me, chat=None, priority=Priority.SCREEN)
            self.username = (me.username or "").lower()

    @property
    def link(self) -> str:
        """The address that opens a private chat with the bot."""
        return f"https://t.me/{self.username}"
