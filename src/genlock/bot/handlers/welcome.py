"""The picture of the first screen. It is uploaded once; Telegram keeps it and sends it again by its id."""

import hashlib
from pathlib import Path

from genlock.bot.bundle import BotBundle
from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.domain.errors import LevelRefused
from genlock.ports import KvStore

PACKAGED_PICTURE = Path(__file__).parents[1] / "storefront" / "welcome.jpg"
UPLOADED = "chat:welcome_picture"


class Welcome:
    def __init__(self, *, view: ChatView, store: KvStore, bundle: BotBundle) -> None:
        self._view = view
        self._store = store
        self._bundle = bundle

    async def show_picture(self, ctx: UpdateContext) -> None:
        """Send the picture to a new user. A second attempt at the same update leaves it out, so it comes once."""
        path = self._bundle.rules.welcome_picture
        if path is None or ctx.group or not ctx.first or not ctx.profile.created:
            return
        content = path.read_bytes()
        mark = hashlib.sha256(content).hexdigest()[:16]
        known = await self._store.kv_get(UPLOADED, self._bundle.id)
        marked, _, file = known.value.partition(":") if known else ("", "", "")
        if marked == mark:
            try:
                await self._view.send_photo(ctx, file)
            except LevelRefused:  # Telegram has lost it
                pass
            else:
                return
        uploaded = await self._view.send_photo(ctx, content)
        await self._store.kv_put(UPLOADED, f"{mark}:{uploaded}", self._bundle.id)
