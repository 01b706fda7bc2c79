"""`/admin promo`, `broadcast`, `maintenance`: what operators do for all users of the bot at once."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from genlock.bot.admin import campaign_screens as campaign
from genlock.bot.admin import questions, screens
from genlock.bot.admin.audit import AuditLog
from genlock.bot.admin.broadcasts import Broadcasts, Content
from genlock.bot.admin.command import AdminCommand, Declined, NotUnderstood, Question, argument
from genlock.bot.bundle import BotBundle
from genlock.bot.context import UpdateContext
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.broadcast import Segment
from genlock.domain.money import read_amount
from genlock.domain.promo import Promo, promo_problems, promo_terms
from genlock.i18n.translator import DAY, Html
from genlock.ports import Database, OutgoingMessage

LISTED = 15
#: kv entry of the bot: there while maintenance is on; the value is the operator's text
MAINTENANCE = "chat:maintenance"
_OPTION = re.compile(r"(uses|each|days|runs)=(\d{1,9})")


class CampaignCommands:
    def __init__(
        self, *, bundle: BotBundle, store: Database, storefront: Storefront, broadcasts: Broadcasts, audit: AuditLog
    ) -> None:
        self._bundle = bundle
        self._store = store
        self._storefront = storefront
        self._broadcasts = broadcasts
        self._audit = audit

    @property
    def commands(self) -> Mapping[str, AdminCommand]:
        return {
            "promo": AdminCommand(run=self._promo, usage="promo"),
            "promos": AdminCommand(run=lambda ctx, _: self._promos(ctx)),
            "close": AdminCommand(run=self._close, usage="close", ask=self._ask_close),
            "broadcast": AdminCommand(run=self._broadcast, usage="broadcast"),
            "send": AdminCommand(run=self._send),
            "discard": AdminCommand(run=self._discard),
            "stop": AdminCommand(run=self._stop),
            "maintenance": AdminCommand(run=self._maintenance, usage="maintenance", ask=self._ask_maintenance),
        }

    # promo codes

    async def _promo(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        t = ctx.translator
        if not args:
            return await self._promos(ctx)
        promo, days = _read_promo(args)
        promo = replace(promo, bot=self._bundle.id)
        if promo.runs and not any(model.free for model in self._storefront.models()):
            return screens.message(t, t.html("admin.promo_useless"))
        lasting = days * DAY if days else None
        made = await self._store.create_promo(promo, lasting=lasting, author=ctx.profile.external_id)
        if not made and ctx.first:
            return await self._promos(ctx, t.html("admin.promo_exists"))
        await self._audit.write(ctx, "create promo", promo.code, json.dumps({"after": promo_terms(promo, days)}))
        link = f"{self._bundle.link}?start=p_{promo.code}"
        note = t.html("admin.promo_made", code=promo.code, gift=campaign.gift(t, promo), link=link)
        return screens.message(t, note, (screens.admin_button(t, "promos", "promos"),))

    async def _promos(self, ctx: UpdateContext, note: Html | None = None) -> OutgoingMessage:
        found, now = await self._store.promos(LISTED, self._bundle.id), await self._store.read_clock()
        return screens.with_note(note, campaign.promos(ctx.translator, found, now))

    async def _close(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        code, t = argument(args).upper(), ctx.translator
        if not await self._store.close_promo(code, self._bundle.id) and ctx.first:
            return await self._promos(ctx, t.html("admin.no_promo", code=code))
        await self._audit.write(ctx, "close promo", code)
        return await self._promos(ctx, t.html("admin.promo_shut", code=code))

    async def _ask_close(self, ctx: UpdateContext, args: Sequence[str]) -> Question | OutgoingMessage:
        code, t = argument(args).upper(), ctx.translator
        promo = await self._store.promo(code)
        if promo is None or promo.closed or promo.bot not in ("", self._bundle.id):
            return await self._promos(ctx, t.html("admin.no_promo", code=code))
        return questions.close_promo(t, promo)

    # broadcasts

    async def _broadcast(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        """How to write a broadcast; while one runs, how far it is."""
        running = await self._store.running_broadcast(self._bundle.id)
        if running is not None:
            return campaign.progress(running, ctx.translator)
        return campaign.broadcast(ctx.translator, await self._store.count_reachable(self._bundle.id))

    async def preview(self, ctx: UpdateContext, content: Content, segment: Segment) -> OutgoingMessage:
        """Show the operator how the message looks; it is sent to users after a button is pressed."""
        if segment.language and segment.language not in self._bundle.texts.languages:
            raise Declined("no_language", language=segment.language, known=", ".join(self._bundle.texts.languages))
        await self._broadcasts.show(ctx.chat, content)
        key, told = f"broadcast:{ctx.update}", asdict(segment)
        waiting = {"key": key, "text": content.text, "content": content.dump(), "segment": told}
        await self._store.kv_put(_preview_key(ctx), json.dumps(waiting), self._bundle.id)
        count = await self._store.count_reachable(self._bundle.id, segment)
        return campaign.preview(ctx.translator, ctx.update, count, segment)

    async def _previewed(self, ctx: UpdateContext, args: Sequence[str]) -> Mapping[str, Any] | None:
        """Return the broadcast that waits to be sent; None for the button of an earlier preview."""
        entry = await self._store.kv_get(_preview_key(ctx), self._bundle.id)
        waiting: Mapping[str, Any] = json.loads(entry.value) if entry else {}
        number = args[0] if args else ""
        return waiting if waiting and waiting["key"] == f"broadcast:{number}" else None

    async def _send(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        waiting = await self._previewed(ctx, args)
        if waiting is None:
            return screens.message(ctx.translator, ctx.translator.html("admin.preview_old"))
        broadcast = await self._store.begin_broadcast(
            waiting["text"],
            bot=self._bundle.id,
            author=ctx.profile.external_id,
            request_key=waiting["key"],
            content=waiting["content"],
            segment=Segment(**waiting.get("segment", {})),
        )
        await self._audit.write(ctx, "broadcast", broadcast.id, waiting["text"])
        return campaign.progress(broadcast, ctx.translator)

    async def show_progress_on(self, ctx: UpdateContext, message: int) -> None:
        """Keep this message of the operator up to date while the broadcast runs."""
        running = await self._store.running_broadcast(self._bundle.id)
        if running is not None:
            await self._broadcasts.show_progress_on(running.id, ctx.chat, message, ctx.translator.language)

    async def _discard(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        if await self._previewed(ctx, args) is not None:
            await self._store.kv_delete(_preview_key(ctx), self._bundle.id)
        return screens.message(ctx.translator, ctx.translator.html("admin.discarded"))

    async def _stop(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        stopped = await self._broadcasts.stop()
        if stopped is None:
            return screens.message(ctx.translator, ctx.translator.html("admin.broadcast_none"))
        await self._audit.write(ctx, "stop broadcast", stopped.id)
        now = await self._store.broadcast(stopped.id)
        return campaign.progress(now or stopped, ctx.translator)

    # maintenance

    async def _ask_maintenance(self, ctx: UpdateContext, args: Sequence[str]) -> Question | OutgoingMessage:
        """Ask before users are shut out; what else the command does needs no question."""
        if [arg.lower() for arg in args[:1]] != ["on"]:
            return await self._maintenance(ctx, args)
        return questions.maintenance(ctx.translator, " ".join(args[1:]))

    async def _maintenance(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        t, bot = ctx.translator, self._bundle.id
        match [arg.lower() for arg in args[:1]]:
            case ["off"]:
                await self._store.kv_delete(MAINTENANCE, bot)
                await self._audit.write(ctx, "maintenance", "off")
                return screens.message(t, t.html("admin.maintenance_off"))
            case ["on"]:
                text = " ".join(args[1:])
                await self._store.kv_put(MAINTENANCE, text, bot)
                await self._audit.write(ctx, "maintenance", "on", text)
            case [_]:
                raise NotUnderstood
        entry = await self._store.kv_get(MAINTENANCE, bot)
        return campaign.maintenance(t, entry.value if entry else None)


def _preview_key(ctx: UpdateContext) -> str:
    return f"chat:waiting:{ctx.profile.account_id}"


def _read_promo(args: Sequence[str]) -> tuple[Promo, int]:
    """Read `CODE CREDITS [uses=N] [each=N] [days=N]` or `CODE runs=N …`: the promo code and its days.

    Raises NotUnderstood.
    """
    code = argument(args).upper()
    numbers = {"uses": 0, "each": 1, "days": 0, "runs": 0}
    amount = 0
    for arg in args[1:]:
        if match := _OPTION.fullmatch(arg.lower()):
            numbers[match[1]] = int(match[2])
        elif not amount and (read := read_amount(arg)):
            amount = read
        else:
            raise NotUnderstood
    promo = Promo(
        code=code,
        amount=amount,
        runs=numbers["runs"],
        uses_max=numbers["uses"] or None,
        per_account=numbers["each"],
        until=None,
    )
    if promo_problems(promo, numbers["days"] or None):
        raise NotUnderstood
    return promo, numbers["days"]
