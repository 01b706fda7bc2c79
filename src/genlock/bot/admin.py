"""For operators, in the chat: figures, people, money, orders, promo codes, broadcasts. Everything is written down."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from genlock.bot.broadcasts import Broadcasts, progress
from genlock.bot.buttons import Pressed
from genlock.bot.desk import Desk
from genlock.bot.look import code
from genlock.bot.payments import Payments
from genlock.bot.screens import operator
from genlock.bot.tongue import DAY, Html
from genlock.bot.visit import Visit
from genlock.domain.chat import Profile, Promo
from genlock.domain.errors import ChannelError, NoSuchPerson, NotEnoughMoney, NotPossible, Refusal
from genlock.domain.money import THOUSANDTHS, Kind, Purse
from genlock.engine import operate
from genlock.engine.engine import Engine
from genlock.telegram.words import Said

LISTED = 10
MAINTENANCE = "chat:maintenance"
_CODE = re.compile(r"[A-Z0-9_-]{6,40}")
_OPTION = re.compile(r"(uses|each|days|runs)=(\d{1,9})")

Command = Callable[[Visit, Sequence[str]], Awaitable[Said]]


class NotUnderstood(Exception):
    """The words behind /admin are none of ours."""


class Admin:
    def __init__(self, *, desk: Desk, engine: Engine, payments: Payments, broadcasts: Broadcasts) -> None:
        self._desk = desk
        self._store = desk.store
        self._engine = engine
        self._payments = payments
        self._broadcasts = broadcasts
        self._commands: Mapping[str, Command] = {
            "today": self._figures,
            "week": self._figures,
            "find": self._find,
            "person": self._person,
            "credit": self._move,
            "debit": self._move,
            "ban": self._ban,
            "unban": self._ban,
            "orders": self._orders,
            "payments": self._list_payments,
            "order": self._order,
            "resend": self._resend,
            "retry": self._retry,
            "cancel": self._cancel,
            "refund": self._refund,
            "stars": self._stars,
            "promo": self._promo,
            "promos": self._promos,
            "close": self._close,
            "broadcast": self._broadcast,
            "send": self._send,
            "discard": self._discard,
            "stop": self._stop,
            "maintenance": self._maintenance,
            "attention": self._attention,
            "log": self._log,
        }

    def may(self, visit: Visit) -> bool:
        return not visit.group and int(visit.profile.outside_id) in self._desk.rules.admin_ids

    async def command(self, visit: Visit, line: str) -> None:
        """`/admin WORDS`, answered on a message of its own."""
        said = await self._done(visit, line.split() or ["today"], line)
        await self._desk.send(visit, said)

    async def pressed(self, visit: Visit, press: Pressed) -> None:
        """A button of ours, answered in its place."""
        if not self.may(visit) or visit.pressed is None:
            await self._desk.toast(visit, visit.tongue.tag("order.unknown"), alert=True)
            return
        said = await self._done(visit, list(press.args), " ".join(press.args))
        await self._desk.toast(visit)
        await self._desk.edit(visit.chat, visit.pressed, said)
        running = await self._store.running_broadcast()
        if press.word() == "send" and running is not None:
            await self._broadcasts.watched_at(running.id, visit.chat, visit.pressed, visit.tongue.language)

    async def _done(self, visit: Visit, words: Sequence[str], line: str) -> Said:
        t = visit.tongue
        handler = self._commands.get(words[0].lower() if words else "", self._unknown)
        try:
            return await handler(visit, (words[0].lower(), *words[1:], line))
        except NotUnderstood:
            return Said(text=f"{t.say('admin.usage')}\n\n{t.say('admin.commands')}")
        except NotEnoughMoney as error:
            return Said(text=t.say("admin.too_little", balance=t.credits(error.available)))
        except (Refusal, ChannelError) as error:
            return Said(text=t.say("admin.impossible", reason=str(error)))

    async def _unknown(self, visit: Visit, words: Sequence[str]) -> Said:
        raise NotUnderstood

    async def _write(self, visit: Visit, action: str, subject: object, detail: str = "") -> None:
        await self._store.add_audit(
            key=f"update:{visit.update}",
            actor=visit.profile.outside_id,
            action=action,
            subject=str(subject),
            detail=detail[:500],
        )

    # figures

    async def _figures(self, visit: Visit, words: Sequence[str]) -> Said:
        days = 7 if words[0] == "week" else 1
        figures = await self._store.figures(days * DAY)
        return operator.figures(visit.tongue, words[0], figures, await self._store.counts())

    async def _attention(self, visit: Visit, _: Sequence[str]) -> Said:
        return operator.attention(visit.tongue, await self._store.attention(LISTED))

    async def _log(self, visit: Visit, _: Sequence[str]) -> Said:
        return operator.log(visit.tongue, await self._store.audit(LISTED * 2))

    # people

    async def _find(self, visit: Visit, words: Sequence[str]) -> Said:
        text = " ".join(words[1:-1]).lstrip("@")
        if not text:
            raise NotUnderstood
        return operator.people(visit.tongue, text, await self._store.find_profiles(text, LISTED))

    async def _whom(self, words: Sequence[str]) -> Profile:
        """The person whose number or Telegram id comes second."""
        if len(words) < 3:  # noqa: PLR2004 - the verb, the person, the whole line
            raise NotUnderstood
        found = await self._store.find_profiles(words[1].lstrip("@"), 2)
        exact = [
            one for one in found if words[1].lstrip("@").lower() in (str(one.person_id), one.outside_id, one.username)
        ]
        if not exact:
            raise NoSuchPerson(f"nobody has the number {words[1]}")
        if len(exact) > 1:
            raise NotPossible(f"several people match {words[1]}; use the Telegram id")
        return exact[0]

    async def _person(self, visit: Visit, words: Sequence[str]) -> Said:
        profile = await self._whom(words)
        return operator.person(visit.tongue, profile, await self._store.wallet(profile.person_id))

    async def _move(self, visit: Visit, words: Sequence[str]) -> Said:
        """Credit or debit, once per command, with a reason."""
        profile = await self._whom(words)
        amount = _amount(words[2]) if len(words) > 4 else None  # noqa: PLR2004 - verb, person, amount, reason, line
        if not amount:
            raise NotUnderstood
        reason = " ".join(words[3:-1])
        kind = Kind.GRANT if words[0] == "credit" else Kind.DEBIT
        key = f"admin:{visit.update}"
        fresh = await self._store.transfer(profile.person_id, kind, amount, key, reason)
        await self._write(visit, words[0], profile.person_id, f"{amount / THOUSANDTHS:g}: {reason}")
        wallet = await self._store.wallet(profile.person_id)
        t = visit.tongue
        key = "admin.moved" if fresh else "admin.moved_before"
        return Said(text=t.say(key, name=profile.name, balance=t.credits(wallet.available)))

    async def _ban(self, visit: Visit, words: Sequence[str]) -> Said:
        profile = await self._whom(words)
        banned, reason = words[0] == "ban", " ".join(words[2:-1])
        await self._store.set_ban(profile.person_id, banned=banned, reason=reason)
        await self._write(visit, words[0], profile.person_id, reason)
        return Said(text=visit.tongue.say("admin.ban_done" if banned else "admin.unban_done", name=profile.name))

    async def _orders(self, visit: Visit, words: Sequence[str]) -> Said:
        profile = await self._whom(words)
        jobs = await self._store.jobs(person_id=profile.person_id, limit=LISTED)
        return operator.orders(visit.tongue, jobs, profile.person_id)

    async def _list_payments(self, visit: Visit, words: Sequence[str]) -> Said:
        profile = await self._whom(words)
        return operator.payments(visit.tongue, await self._store.payments(profile.person_id, LISTED))

    # orders

    async def _order(self, visit: Visit, words: Sequence[str]) -> Said:
        job = await operate.find(self._engine.kit, _number(words))
        model = self._desk.shop.catalog.models.get(job.model)
        return operator.order(visit.tongue, job, model.title if model else job.model)

    async def _resend(self, visit: Visit, words: Sequence[str]) -> Said:
        job = await operate.find(self._engine.kit, _number(words))
        if visit.first:
            await operate.resend(self._engine.kit, job.id, visit.profile.outside_id)
        await self._write(visit, "resend", code(job.id))
        return Said(text=visit.tongue.say("admin.resent"))

    async def _retry(self, visit: Visit, words: Sequence[str]) -> Said:
        job = await operate.retry(self._engine.kit, _number(words), visit.profile.outside_id)
        await self._write(visit, "retry", code(job.id))
        return Said(text=visit.tongue.say("admin.retried"))

    async def _cancel(self, visit: Visit, words: Sequence[str]) -> Said:
        job = await self._engine.cancel(_number(words), visit.profile.outside_id)
        await self._write(visit, "cancel", code(job.id))
        return Said(text=visit.tongue.say("admin.cancelled"))

    async def _refund(self, visit: Visit, words: Sequence[str]) -> Said:
        """Give the credits of a delivered order back, once."""
        t = visit.tongue
        job = await operate.find(self._engine.kit, _number(words))
        if job.purse is not Purse.CAPTURED:
            return Said(text=t.say("admin.not_captured"))
        fresh = await self._store.transfer(
            job.person_id, Kind.REFUND, job.price, f"refund:{job.id}", f"order {job.id} refunded"
        )
        await self._write(visit, "refund", code(job.id), f"{job.price / THOUSANDTHS:g}")
        if not fresh:
            return Said(text=t.say("admin.refunded_before"))
        return Said(text=t.say("admin.refunded", credits=t.credits(job.price)))

    async def _stars(self, visit: Visit, words: Sequence[str]) -> Said:
        """Give stars back to whoever paid them, if the credits are still there."""
        if len(words) < 3:  # noqa: PLR2004 - the verb, the receipt, the whole line
            raise NotUnderstood
        payment = await self._payments.refund(words[1], visit.profile.outside_id)
        await self._write(visit, "refund of stars", words[1], f"{payment.stars} stars")
        t = visit.tongue
        await self._payments.tell_refunded(payment)
        return Said(text=t.say("admin.stars_refunded", stars=payment.stars, credits=t.credits(payment.amount)))

    # promo codes

    async def _promo(self, visit: Visit, words: Sequence[str]) -> Said:
        t = visit.tongue
        wanted = _read_promo(words[1:-1])
        if wanted is None:
            raise NotUnderstood
        promo, days = wanted
        lasting = days * DAY if days else None
        made = await self._store.make_promo(promo, lasting=lasting, author=visit.profile.outside_id)
        if not made and visit.first:
            return Said(text=t.say("admin.promo_exists"))
        await self._write(visit, "promo", promo.code, " ".join(words[2:-1]))
        link = f"{self._desk.link}?start=p_{promo.code}"
        return Said(text=t.say("admin.promo_made", code=promo.code, link=link))

    async def _promos(self, visit: Visit, _: Sequence[str]) -> Said:
        return operator.promos(visit.tongue, await self._store.promos(LISTED * 2))

    async def _close(self, visit: Visit, words: Sequence[str]) -> Said:
        name = words[1].upper() if len(words) > 2 else ""  # noqa: PLR2004 - the verb, the code, the whole line
        if not await self._store.close_promo(name):
            raise NotPossible(f"no open promo code {name}")
        await self._write(visit, "close promo", name)
        return Said(text=visit.tongue.say("admin.promo_shut"))

    # everybody

    async def _broadcast(self, visit: Visit, words: Sequence[str]) -> Said:
        """Show the operator how it looks; nothing is sent to others yet."""
        text = words[-1].partition(" ")[2].strip()
        if not text:
            raise NotUnderstood
        await self._desk.tell(visit.chat, text)  # refused here, it would be refused everywhere
        waiting = json.dumps({"key": f"broadcast:{visit.update}", "text": text})
        await self._store.set_fact(f"chat:waiting:{visit.person}", waiting)
        return operator.preview(visit.tongue, visit.update, await self._store.reachable())

    async def _previewed(self, visit: Visit, words: Sequence[str]) -> Mapping[str, str]:
        """The broadcast that waits; a button of an earlier preview is none of its."""
        waiting = await self._store.fact(f"chat:waiting:{visit.person}")
        if waiting is None:
            raise NotUnderstood
        said: Mapping[str, str] = json.loads(waiting.value)
        if len(words) > 2 and said["key"] != f"broadcast:{words[1]}":  # noqa: PLR2004 - the verb, the preview, the line
            raise NotPossible("this preview is out of date; there is a newer one")
        return said

    async def _send(self, visit: Visit, words: Sequence[str]) -> Said:
        said = await self._previewed(visit, words)
        broadcast = await self._broadcasts.begin(said["text"], author=visit.profile.outside_id, key=said["key"])
        await self._write(visit, "broadcast", broadcast.id, said["text"])
        return progress(broadcast, visit.tongue)

    async def _discard(self, visit: Visit, words: Sequence[str]) -> Said:
        await self._previewed(visit, words)
        await self._store.drop_fact(f"chat:waiting:{visit.person}")
        return Said(text=visit.tongue.say("menu.cancelled"))

    async def _stop(self, visit: Visit, _: Sequence[str]) -> Said:
        stopped = await self._broadcasts.stop()
        if stopped is None:
            return Said(text=visit.tongue.say("admin.broadcast_none"))
        await self._write(visit, "stop broadcast", stopped.id)
        now = await self._store.broadcast(stopped.id)
        return progress(now or stopped, visit.tongue)

    async def _maintenance(self, visit: Visit, words: Sequence[str]) -> Said:
        t = visit.tongue
        switch = words[1].lower() if len(words) > 2 else ""  # noqa: PLR2004 - the verb, the switch, the whole line
        if switch == "off":
            await self._store.drop_fact(MAINTENANCE)
            await self._write(visit, "maintenance", "off")
            return Said(text=t.say("admin.maintenance_off"))
        if switch != "on":
            raise NotUnderstood
        text = " ".join(words[2:-1])
        await self._store.set_fact(MAINTENANCE, text)
        await self._write(visit, "maintenance", "on", text)
        shown: str | Html = text or t.tag("misc.maintenance_default")
        return Said(text=t.say("admin.maintenance_on", text=shown))


def _number(words: Sequence[str]) -> int:
    """The number of an order, which comes second."""
    word = words[1].lstrip("#") if len(words) > 2 else ""  # noqa: PLR2004 - the verb, the order, the whole line
    if not word.isdecimal() or len(word) > 15:  # noqa: PLR2004 - no order has a longer one
        raise NotUnderstood
    return int(word)


def _amount(word: str) -> int | None:
    try:
        amount = Decimal(word.replace(",", ".")) * THOUSANDTHS
    except InvalidOperation:
        return None
    return int(amount) if 0 < amount < 10**12 and amount == int(amount) else None


def _read_promo(words: Sequence[str]) -> tuple[Promo, int] | None:
    """`CODE CREDITS [uses=N] [each=N] [days=N]`, or `CODE runs=N …`."""
    if not words or not _CODE.fullmatch(words[0].upper()):
        return None
    numbers = {"uses": 0, "each": 1, "days": 0, "runs": 0}
    amount = 0
    for word in words[1:]:
        if match := _OPTION.fullmatch(word.lower()):
            numbers[match[1]] = int(match[2])
        elif not amount and (given := _amount(word)):
            amount = given
        else:
            return None
    if (amount > 0) == (numbers["runs"] > 0) or numbers["each"] < 1:
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
