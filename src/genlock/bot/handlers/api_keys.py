"""`/api`: keys with which a user's own programs order from the user's balance."""

import hmac
from collections.abc import Mapping

from genlock.bot.bundle import BotBundle
from genlock.bot.buttons import BELOW, ButtonData, Row, button
from genlock.bot.context import Handler, UpdateContext
from genlock.bot.handlers.pages import Pages
from genlock.domain.api_key import ALL_SCOPES, ApiKey
from genlock.engine.api_keys import create_api_key
from genlock.i18n.translator import Html
from genlock.ports import Database

#: keys of a user that are not revoked
KEYS_MAX = 5
_READ = 100


class ApiKeyPages:
    def __init__(self, *, bundle: BotBundle, store: Database, pages: Pages) -> None:
        self._bundle = bundle
        self._store = store
        self._pages = pages
        self.button_handlers: Mapping[str, Handler] = {
            "api": lambda ctx, _: self.show(ctx),
            "apinew": lambda ctx, _: self._create(ctx),
            "apioff": self._ask,
            "apioffnow": self._revoke,
        }

    async def show(self, ctx: UpdateContext, note: Html | None = None) -> None:
        """Show the keys. Where the API is not open, they can only be revoked: a proxy may still lead to it."""
        if await self._pages.is_group(ctx, "api"):
            return
        t, keys, url = ctx.translator, await self._keys(ctx), self._bundle.rules.api_url
        about = t.html("api.text", url=f"{url}/v1/docs") if url else self._off(ctx)
        lines = [*([note, ""] if note else []), about]
        if url or keys:
            lines += ["", t.html("api.keys" if keys else "api.none"), *(self._line(ctx, key) for key in keys)]
        rows: list[Row] = [(button(t.plain("api.revoke", key=_short(key)), "apioff", key.id),) for key in keys]
        if url and len(keys) < KEYS_MAX:
            rows.insert(0, (button(t.plain("api.create"), "apinew"),))
        await self._pages.send_text(ctx, Html("\n".join(lines)), *rows)

    def _off(self, ctx: UpdateContext) -> Html:
        t = ctx.translator
        return t.html("api.off", support=self._bundle.rules.support or t.plain("paysupport.support_default"))

    def _line(self, ctx: UpdateContext, key: ApiKey) -> Html:
        t = ctx.translator
        if key.last_used_at is None:
            return t.html("api.line_unused", key=_short(key))
        return t.html("api.line", key=_short(key), day=t.day_and_time(key.last_used_at))

    async def _create(self, ctx: UpdateContext) -> None:
        """Make a key and show it. The same press handled again shows the same key: it is derived from the update."""
        if not self._bundle.rules.api_url:
            await self.show(ctx)
            return
        if await self._pages.is_group(ctx, "api"):
            return
        t, request_key = ctx.translator, f"chat:{self._bundle.id}:{ctx.update}"
        if len(await self._keys(ctx)) >= KEYS_MAX and ctx.first:
            await self.show(ctx, t.html("api.too_many", n=KEYS_MAX))
            return
        _, secret = await create_api_key(
            self._store,
            ctx.account_id,
            name="chat",
            scopes=ALL_SCOPES,
            spend_limit=None,
            request_key=request_key,
            author=f"user {ctx.account_id}",
            random_bytes=lambda number: self._derive(request_key)[:number],
        )
        assert secret is not None
        await self.show(ctx)
        # A message of its own: the next screen would remove the only copy of the key.
        await self._pages.send_page(ctx, t.html("api.made", secret=secret), (button(t.plain("api.all"), "api", BELOW),))

    def _derive(self, request_key: str) -> bytes:
        token = self._bundle.caller.bot.token
        return hmac.digest(token.encode(), f"genlock: API key/{request_key}".encode(), "sha256")

    async def _ask(self, ctx: UpdateContext, data: ButtonData) -> None:
        """Ask before a key is revoked: a program that uses it stops working."""
        key = next((candidate for candidate in await self._keys(ctx) if candidate.id == data.number()), None)
        if ctx.group or key is None:
            await self.show(ctx)
            return
        t = ctx.translator
        yes = button(t.plain("api.revoke_yes"), "apioffnow", key.id)
        text = t.html("api.revoke_ask", key=_short(key))
        await self._pages.show_text(ctx, text, (yes,), (button(t.plain("button.back"), "api"),))

    async def _revoke(self, ctx: UpdateContext, data: ButtonData) -> None:
        if not ctx.group:
            await self._store.revoke_api_key(data.number(), ctx.account_id)
        await self.show(ctx, ctx.translator.html("api.revoked"))

    async def _keys(self, ctx: UpdateContext) -> list[ApiKey]:
        """Return the keys that are not revoked, however many were revoked since the oldest of them was made."""
        found: list[ApiKey] = []
        before = None
        while page := await self._store.api_keys(ctx.account_id, before=before, limit=_READ):
            found += [key for key in page if key.revoked_at is None]
            before = page[-1].id
        return found


def _short(key: ApiKey) -> str:
    return f"{key.shown}…"
