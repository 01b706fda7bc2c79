"""What operators do for everybody at once: promo codes, broadcasts, the word about maintenance."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from genlock.bot.admin import campaign_screens as campaign
from genlock.bot.admin import screens as operator
from genlock.bot.admin.broadcasts import Broadcasts, Content
from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.channels.telegram.messages import OutgoingMessage
from genlock.domain.money import THOUSANDTHS
from genlock.domain.promo import Promo
from genlock.i18n.translator import DAY, Html

LISTED = 15
#: no calendar of a database ends before
DAYS_MAX = 36_500
MAINTENANCE = "chat:maintenance"
_CODE = re.compile(r"[A-Z0-9_-]{6,40}")
_OPTION = re.compile(r"(uses|each|days|runs)=(\d{1,9})")
_AMOUNT = re.compile(r"\d{1,9}(?:[.,]\d{1,3})?")

Command = Callable[[UpdateContext, Sequence[str]], Awaitable[OutgoingMessage]]


class Campaigns:
    def __init__(self, view: ChatView, broadcasts: Broadcasts) -> None:
        self._view = view
        self._store = view.store
        self._broadcasts = broadcasts
        self.commands: Mapping[str, Command] = {
            "promo": self._promo,
            "promos": self._promos,
            "close": self._close,
            "broadcast": self._broadcast,
            "send": self._send,
            "discard": self._discard,
            "stop": self._stop,
            "maintenance": self._maintenance,
        }

    # promo codes

    async def _promo(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        t = ctx.translator
        wanted = _read_promo(words[1:-1])
        if wanted is None:
            return campaign.usage(t, "promo")
        promo, days = replace(wanted[0], bot=str(self._view.caller.bot.id)), wanted[1]
        if promo.runs and not any(model.free for model in self._view.storefront.models()):
            return operator.word(t, t.html("admin.promo_useless"))
        lasting = days * DAY if days else None
        made = await self._store.create_promo(promo, lasting=lasting, author=ctx.profile.external_id)
        if not made and ctx.first:
            return await self._listed(ctx, t.html("admin.promo_exists"))
        await self._view.write(ctx, "promo", promo.code, " ".join(words[2:-1]))
        link = f"{self._view.link}?start=p_{promo.code}"
        note = t.html("admin.promo_made", code=promo.code, gift=campaign.gift(t, promo), link=link)
        return operator.word(t, note, (operator.key(t, "promos", "promos"),))

    async def _promos(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        return await self._listed(ctx)

    async def _listed(self, ctx: UpdateContext, note: Html | None = None) -> OutgoingMessage:
        found, now = await self._store.promos(LISTED, str(self._view.caller.bot.id)), await self._store.read_clock()
        return operator.noted(note, campaign.promos(ctx.translator, found, now))

    async def _close(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        name, t = words[1].upper() if len(words) > 2 else "", ctx.translator  # noqa: PLR2004 - verb, code, line
        if not name:
            return campaign.usage(t, "close")
        if not await self._store.close_promo(name, str(self._view.caller.bot.id)) and ctx.first:
            return await self._listed(ctx, t.html("admin.no_promo", code=name))
        await self._view.write(ctx, "close promo", name)
        return await self._listed(ctx, t.html("admin.promo_shut", code=name))

    # broadcasts

    async def _broadcast(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        """How it is done; with one under way, how far that is."""
        running = await self._store.running_broadcast(str(self._view.caller.bot.id))
        if running is not None:
            return campaign.progress(running, ctx.translator)
        return campaign.broadcast(ctx.translator, await self._store.count_reachable(str(self._view.caller.bot.id)))

    async def preview(self, ctx: UpdateContext, content: Content) -> OutgoingMessage:
        """Show the operator how it looks; nothing is sent to others yet."""
        await self._broadcasts.show(ctx.chat, content)
        waiting = json.dumps(
            {
                "key": f"broadcast:{ctx.update}",
                "text": content.text,
                "content": content.dump(),
            }
        )
        await self._store.kv_put(f"chat:waiting:{ctx.person}", waiting)
        return campaign.preview(
            ctx.translator, ctx.update, await self._store.count_reachable(str(self._view.caller.bot.id))
        )

    async def _previewed(self, ctx: UpdateContext, words: Sequence[str]) -> Mapping[str, str] | None:
        """The broadcast that waits; a button of an earlier preview is none of its."""
        waiting = await self._store.kv_get(f"chat:waiting:{ctx.person}")
        said: Mapping[str, str] = json.loads(waiting.value) if waiting else {}
        mark = words[1] if len(words) > 2 else ""  # noqa: PLR2004 - the verb, the preview, the line
        return said if said and said["key"] == f"broadcast:{mark}" else None

    async def _send(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        said = await self._previewed(ctx, words)
        if said is None:
            return operator.word(ctx.translator, ctx.translator.html("admin.preview_old"))
        author = ctx.profile.external_id
        broadcast = await self._store.begin_broadcast(
            said["text"],
            bot=str(self._view.caller.bot.id),
            author=author,
            request_key=said["key"],
            content=said.get("content", ""),
        )
        await self._view.write(ctx, "broadcast", broadcast.id, said["text"])
        return campaign.progress(broadcast, ctx.translator)

    async def watched_at(self, ctx: UpdateContext, message: int) -> None:
        """The operator's message tells how far the broadcast is."""
        running = await self._store.running_broadcast(str(self._view.caller.bot.id))
        if running is not None:
            await self._broadcasts.watched_at(running.id, ctx.chat, message, ctx.translator.language)

    async def _discard(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        if await self._previewed(ctx, words) is not None:
            await self._store.kv_delete(f"chat:waiting:{ctx.person}")
        return operator.word(ctx.translator, ctx.translator.html("admin.discarded"))

    async def _stop(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        stopped = await self._broadcasts.stop()
        if stopped is None:
            return operator.word(ctx.translator, ctx.translator.html("admin.broadcast_none"))
        await self._view.write(ctx, "stop broadcast", stopped.id)
        now = await self._store.broadcast(stopped.id)
        return campaign.progress(now or stopped, ctx.translator)

    # maintenance

    async def _maintenance(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        t = ctx.translator
        switch = words[1].lower() if len(words) > 2 else ""  # noqa: PLR2004 - the verb, the switch, the whole line
        if switch == "off":
            await self._store.kv_delete(MAINTENANCE)
            await self._view.write(ctx, "maintenance", "off")
            return operator.word(t, t.html("admin.maintenance_off"))
        if switch == "on":
            text = " ".join(words[2:-1])
            await self._store.kv_put(MAINTENANCE, text)
            await self._view.write(ctx, "maintenance", "on", text)
        elif switch:
            return campaign.usage(t, "maintenance")
        fact = await self._store.kv_get(MAINTENANCE)
        return campaign.maintenance(t, fact.value if fact else None)


def read_amount(word: str) -> int:
    """Credits as an operator writes them, in thousandths; 0 if that is no amount."""
    return int(Decimal(word.replace(",", ".")) * THOUSANDTHS) if _AMOUNT.fullmatch(word) else 0


def _read_promo(words: Sequence[str]) -> tuple[Promo, int] | None:
    """`CODE CREDITS [uses=N] [each=N] [days=N]`, or `CODE runs=N …`."""
    if not words or not _CODE.fullmatch(words[0].upper()):
        return None
    numbers = {"uses": 0, "each": 1, "days": 0, "runs": 0}
    amount = 0
    for word in words[1:]:
        if match := _OPTION.fullmatch(word.lower()):
            numbers[match[1]] = int(match[2])
        elif not amount and (read := read_amount(word)):
            amount = read
        else:
            return None
    if (amount > 0) == (numbers["runs"] > 0) or numbers["each"] < 1 or numbers["days"] > DAYS_MAX:
        return None
    promo = Promo(
        code=words[0].upper(),
        amount=amount,
        runs=numbers["runs"],
        uses_max=numbers["uses"] or None,
        per_account=numbers["each"],
        until=None,
    )
    return promo, numbers["days"]
