"""What operators do for everybody at once: promo codes, broadcasts, the word about maintenance."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal

from genlock.bot.broadcasts import Broadcasts, Content
from genlock.bot.desk import Desk
from genlock.bot.screens import campaign, operator
from genlock.bot.tongue import DAY, Html
from genlock.bot.visit import Visit
from genlock.domain.chat import Promo
from genlock.domain.money import THOUSANDTHS
from genlock.telegram.words import Said

LISTED = 15
#: no calendar of a database ends before
DAYS_MAX = 36_500
MAINTENANCE = "chat:maintenance"
_CODE = re.compile(r"[A-Z0-9_-]{6,40}")
_OPTION = re.compile(r"(uses|each|days|runs)=(\d{1,9})")
_AMOUNT = re.compile(r"\d{1,9}(?:[.,]\d{1,3})?")

Command = Callable[[Visit, Sequence[str]], Awaitable[Said]]


class Campaigns:
    def __init__(self, desk: Desk, broadcasts: Broadcasts) -> None:
        self._desk = desk
        self._store = desk.store
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

    async def _promo(self, visit: Visit, words: Sequence[str]) -> Said:
        t = visit.tongue
        wanted = _read_promo(words[1:-1])
        if wanted is None:
            return campaign.usage(t, "promo")
        promo, days = wanted
        if promo.runs and not any(model.free for model in self._desk.shop.models()):
            return operator.word(t, t.say("admin.promo_useless"))
        lasting = days * DAY if days else None
        made = await self._store.make_promo(promo, lasting=lasting, author=visit.profile.outside_id)
        if not made and visit.first:
            return await self._listed(visit, t.say("admin.promo_exists"))
        await self._desk.write(visit, "promo", promo.code, " ".join(words[2:-1]))
        link = f"{self._desk.link}?start=p_{promo.code}"
        note = t.say("admin.promo_made", code=promo.code, gift=campaign.gift(t, promo), link=link)
        return operator.word(t, note, (operator.key(t, "promos", "promos"),))

    async def _promos(self, visit: Visit, _: Sequence[str]) -> Said:
        return await self._listed(visit)

    async def _listed(self, visit: Visit, note: Html | None = None) -> Said:
        found, now = await self._store.promos(LISTED), await self._store.clock()
        return operator.noted(note, campaign.promos(visit.tongue, found, now))

    async def _close(self, visit: Visit, words: Sequence[str]) -> Said:
        name, t = words[1].upper() if len(words) > 2 else "", visit.tongue  # noqa: PLR2004 - verb, code, line
        if not name:
            return campaign.usage(t, "close")
        if not await self._store.close_promo(name) and visit.first:
            return await self._listed(visit, t.say("admin.no_promo", code=name))
        await self._desk.write(visit, "close promo", name)
        return await self._listed(visit, t.say("admin.promo_shut", code=name))

    # broadcasts

    async def _broadcast(self, visit: Visit, _: Sequence[str]) -> Said:
        """How it is done; with one under way, how far that is."""
        running = await self._store.running_broadcast()
        if running is not None:
            return campaign.progress(running, visit.tongue)
        return campaign.broadcast(visit.tongue, await self._store.reachable())

    async def preview(self, visit: Visit, content: Content) -> Said:
        """Show the operator how it looks; nothing is sent to others yet."""
        await self._broadcasts.show(visit.chat, content)
        waiting = json.dumps(
            {
                "key": f"broadcast:{visit.update}",
                "text": content.text,
                "content": content.dump(),
            }
        )
        await self._store.set_fact(f"chat:waiting:{visit.person}", waiting)
        return campaign.preview(visit.tongue, visit.update, await self._store.reachable())

    async def _previewed(self, visit: Visit, words: Sequence[str]) -> Mapping[str, str] | None:
        """The broadcast that waits; a button of an earlier preview is none of its."""
        waiting = await self._store.fact(f"chat:waiting:{visit.person}")
        said: Mapping[str, str] = json.loads(waiting.value) if waiting else {}
        mark = words[1] if len(words) > 2 else ""  # noqa: PLR2004 - the verb, the preview, the line
        return said if said and said["key"] == f"broadcast:{mark}" else None

    async def _send(self, visit: Visit, words: Sequence[str]) -> Said:
        said = await self._previewed(visit, words)
        if said is None:
            return operator.word(visit.tongue, visit.tongue.say("admin.preview_old"))
        author = visit.profile.outside_id
        broadcast = await self._store.begin_broadcast(
            said["text"], author=author, request_key=said["key"], content=said.get("content", "")
        )
        await self._desk.write(visit, "broadcast", broadcast.id, said["text"])
        return campaign.progress(broadcast, visit.tongue)

    async def watched_at(self, visit: Visit, message: int) -> None:
        """The operator's message tells how far the broadcast is."""
        running = await self._store.running_broadcast()
        if running is not None:
            await self._broadcasts.watched_at(running.id, visit.chat, message, visit.tongue.language)

    async def _discard(self, visit: Visit, words: Sequence[str]) -> Said:
        if await self._previewed(visit, words) is not None:
            await self._store.drop_fact(f"chat:waiting:{visit.person}")
        return operator.word(visit.tongue, visit.tongue.say("admin.discarded"))

    async def _stop(self, visit: Visit, _: Sequence[str]) -> Said:
        stopped = await self._broadcasts.stop()
        if stopped is None:
            return operator.word(visit.tongue, visit.tongue.say("admin.broadcast_none"))
        await self._desk.write(visit, "stop broadcast", stopped.id)
        now = await self._store.broadcast(stopped.id)
        return campaign.progress(now or stopped, visit.tongue)

    # maintenance

    async def _maintenance(self, visit: Visit, words: Sequence[str]) -> Said:
        t = visit.tongue
        switch = words[1].lower() if len(words) > 2 else ""  # noqa: PLR2004 - the verb, the switch, the whole line
        if switch == "off":
            await self._store.drop_fact(MAINTENANCE)
            await self._desk.write(visit, "maintenance", "off")
            return operator.word(t, t.say("admin.maintenance_off"))
        if switch == "on":
            text = " ".join(words[2:-1])
            await self._store.set_fact(MAINTENANCE, text)
            await self._desk.write(visit, "maintenance", "on", text)
        elif switch:
            return campaign.usage(t, "maintenance")
        fact = await self._store.fact(MAINTENANCE)
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
        per_person=numbers["each"],
        until=None,
    )
    return promo, numbers["days"]
