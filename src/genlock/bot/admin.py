"""For operators, in the chat: figures, people, orders, money. Everything is written down."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from telegram import Message

from genlock.bot.broadcasts import Content
from genlock.bot.buttons import Pressed
from genlock.bot.campaigns import MAINTENANCE, Campaigns, read_amount
from genlock.bot.desk import Desk
from genlock.bot.look import code
from genlock.bot.payments import REFUND, NoRefund, Payments
from genlock.bot.screens import campaign, operator
from genlock.bot.tongue import DAY, Html, Tongue, tongue
from genlock.bot.visit import Visit
from genlock.domain.chat import Payment, Profile
from genlock.domain.errors import (
    ChannelBusy,
    ChannelError,
    ChannelUnknown,
    NoSuchPerson,
    NotEnoughMoney,
    NotPossible,
    Refusal,
)
from genlock.domain.job import Job
from genlock.domain.money import THOUSANDTHS, Kind, Purse
from genlock.engine import operate
from genlock.engine.engine import Engine
from genlock.telegram.words import Said

LISTED = 10
PAYMENTS_READ = 100
MOVEMENTS_READ = 500

#: the person who does it, and the words of the command: the verb first, the whole line last
Command = Callable[[Visit, Sequence[str]], Awaitable[Said]]
#: of an order: what is done about it, giving what is then told
Deed = Callable[[Visit, Job], Awaitable[Html]]


class NotUnderstood(Exception):
    """The words behind /admin are none of ours."""


class Declined(Exception):
    """Not done; why, is the text of this name."""

    def __init__(self, name: str, **values: object) -> None:
        super().__init__(name)
        self.values = values


class Admin:
    def __init__(self, *, desk: Desk, engine: Engine, payments: Payments, campaigns: Campaigns) -> None:
        self._desk = desk
        self._store = desk.store
        self._engine = engine
        self._payments = payments
        self._campaigns = campaigns
        self._commands: Mapping[str, Command] = {
            "today": self._figures,
            "week": self._figures,
            "commands": self._list_commands,
            "find": self._find,
            "person": self._person,
            "credit": self._move,
            "debit": self._move,
            "ban": self._ban,
            "unban": self._ban,
            "orders": self._orders,
            "payments": self._list_payments,
            "order": self._order,
            "resend": self._do(self._resend),
            "retry": self._do(self._retry),
            "cancel": self._do(self._cancel),
            "refund": self._do(self._refund),
            "stars": self._stars,
            "askstars": self._ask_stars,
            "givestars": self._give_stars,
            "refunds": self._refunds,
            "attention": self._attention,
            "log": self._log,
            **campaigns.commands,
        }

    def may(self, visit: Visit) -> bool:
        return not visit.group and int(visit.profile.outside_id) in self._desk.rules.admin_ids

    async def command(self, visit: Visit, line: str, message: Message) -> None:
        """`/admin WORDS`, answered on a message of its own."""
        words = line.split() or ["today"]
        content = Content.of(message) if words[0].lower() == "broadcast" else None
        await self._desk.send(visit, await self._done(visit, words, line, content))

    async def pressed(self, visit: Visit, press: Pressed) -> None:
        """A button of ours, answered in its place."""
        if not self.may(visit) or visit.pressed is None:
            await self._desk.toast(visit, visit.tongue.tag("order.unknown"), alert=True)
            return
        said = await self._done(visit, list(press.args), " ".join(press.args))
        await self._desk.toast(visit)
        await self._desk.edit(visit.chat, visit.pressed, said)
        if press.word() == "send":
            await self._campaigns.watched_at(visit, visit.pressed)

    async def _done(self, visit: Visit, words: Sequence[str], line: str, content: Content | None = None) -> Said:
        t = visit.tongue
        verb = words[0].lower() if words else ""
        handler = self._commands.get(verb)
        if handler is None:
            return campaign.commands(t, note=t.say("admin.usage_all"))
        try:
            if content is not None and (content.text or content.file):
                return await self._campaigns.preview(visit, content)
            return await handler(visit, (verb, *words[1:], line))
        except NotUnderstood:
            return campaign.usage(t, verb if verb in campaign.COMMANDS else "order")
        except (Declined, Refusal, ChannelError) as error:
            return operator.word(t, _why_not(error, t))

    async def _tell(self, profile: Profile, key: str, **values: object) -> None:
        """Tell somebody what was done with their money; at most once, and the balance shows it anyway."""
        try:
            await self._desk.tell(int(profile.outside_id), tongue(profile.language).say(key, **values))
        except ChannelError:
            return  # counted by the caller

    # figures

    async def _figures(self, visit: Visit, words: Sequence[str]) -> Said:
        days = 7 if words[0] == "week" else 1
        return operator.figures(
            visit.tongue,
            words[0],
            await self._store.figures(days * DAY),
            await self._store.counts(),
            refunds=len(await self._store.facts(REFUND)),
            maintenance=await self._store.fact(MAINTENANCE) is not None,
            broadcast=await self._store.running_broadcast(),
        )

    async def _list_commands(self, visit: Visit, _: Sequence[str]) -> Said:
        return campaign.commands(visit.tongue)

    async def _attention(self, visit: Visit, _: Sequence[str]) -> Said:
        return operator.attention(visit.tongue, self._titled(await self._store.attention(LISTED)))

    async def _log(self, visit: Visit, _: Sequence[str]) -> Said:
        lines = await self._store.audit(LISTED * 2)
        names = {actor: await self._named(actor) for actor in {line.actor for line in lines}}
        return operator.log(visit.tongue, lines, names)

    async def _named(self, outside: str) -> str:
        found = await self._store.find_profiles(outside, 2)
        return next((one.name for one in found if one.outside_id == outside), outside)

    def _titled(self, jobs: Sequence[Job]) -> list[tuple[Job, str]]:
        models = self._desk.shop.catalog.models
        return [(job, models[job.model].title if job.model in models else job.model) for job in jobs]

    # people

    async def _find(self, visit: Visit, words: Sequence[str]) -> Said:
        text = " ".join(words[1:-1]).lstrip("@")
        if not text:
            return operator.people(visit.tongue, text, await self._store.newest_profiles(LISTED), more=False)
        found = await self._store.find_profiles(text, LISTED + 1)
        if len(found) == 1:
            return await self._card(visit, found[0].person_id)
        return operator.people(visit.tongue, text, found[:LISTED], more=len(found) > LISTED)

    async def _whom(self, words: Sequence[str]) -> Profile:
        """The person whose number or Telegram id comes second."""
        if len(words) < 3:  # noqa: PLR2004 - the verb, the person, the whole line
            raise NotUnderstood
        word = words[1].lstrip("@").lower()
        found = await self._store.find_profiles(word, LISTED)
        exact = [one for one in found if word in (str(one.person_id), one.outside_id, one.username)]
        if not exact:
            raise Declined("no_person", word=words[1])
        if len(exact) > 1:
            raise Declined("many_people", word=words[1])
        return exact[0]

    async def _card(self, visit: Visit, person: int, note: Html | None = None) -> Said:
        profile, wallet = await self._store.profile(person), await self._store.wallet(person)
        return operator.noted(note, operator.person(visit.tongue, profile, wallet))

    async def _person(self, visit: Visit, words: Sequence[str]) -> Said:
        return await self._card(visit, (await self._whom(words)).person_id)

    async def _move(self, visit: Visit, words: Sequence[str]) -> Said:
        """Credit or debit, once per command, with a reason."""
        amount = read_amount(words[2]) if len(words) > 4 else 0  # noqa: PLR2004 - verb, person, amount, reason, line
        if not amount:
            raise NotUnderstood
        profile, reason, credit = await self._whom(words), " ".join(words[3:-1]), words[0] == "credit"
        kind = Kind.GRANT if credit else Kind.DEBIT
        fresh = await self._store.transfer(profile.person_id, kind, amount, f"admin:{visit.update}", reason)
        await self._desk.write(visit, words[0], profile.person_id, f"{amount / THOUSANDTHS:g}: {reason}")
        t = visit.tongue
        if not fresh:
            return await self._card(visit, profile.person_id, t.say("admin.moved_before"))
        theirs = tongue(profile.language)
        wallet = await self._store.wallet(profile.person_id)
        told = {"credits": theirs.credits(amount), "balance": theirs.credits(wallet.available)}
        await self._tell(profile, "told.credited" if credit else "told.debited", **told)
        note = t.say("admin.credited" if credit else "admin.debited", credits=t.credits(amount))
        return await self._card(visit, profile.person_id, note)

    async def _ban(self, visit: Visit, words: Sequence[str]) -> Said:
        profile = await self._whom(words)
        banned, reason = words[0] == "ban", " ".join(words[2:-1])
        await self._store.set_ban(profile.person_id, banned=banned, reason=reason)
        await self._desk.write(visit, words[0], profile.person_id, reason)
        note = visit.tongue.say("admin.ban_done" if banned else "admin.unban_done")
        return await self._card(visit, profile.person_id, note)

    async def _orders(self, visit: Visit, words: Sequence[str]) -> Said:
        profile = await self._whom(words)
        jobs = await self._store.jobs(person_id=profile.person_id, limit=LISTED)
        return operator.orders(visit.tongue, self._titled(jobs), profile)

    # orders

    async def _job(self, words: Sequence[str]) -> Job:
        number = _number(words)
        job = await self._store.job(number)
        if job is None:
            raise Declined("no_order", code=code(number))
        return job

    async def _sheet(self, visit: Visit, job_id: int, note: Html | None = None) -> Said:
        [(job, title)] = self._titled([await operate.find(self._engine.kit, job_id)])
        try:
            name = (await self._store.profile(job.person_id)).name
        except NoSuchPerson:  # ordered by another door
            name = "—"
        said = operator.order(visit.tongue, job, title, name=name, refunded=await self._is_refunded(job))
        return operator.noted(note, said)

    async def _is_refunded(self, job: Job) -> bool:
        if job.purse is not Purse.CAPTURED:
            return False
        movements = await self._store.movements(job.person_id, MOVEMENTS_READ)
        return any(line.key == _refund_key(job) for line in movements)

    async def _order(self, visit: Visit, words: Sequence[str]) -> Said:
        return await self._sheet(visit, (await self._job(words)).id)

    def _do(self, deed: Deed) -> Command:
        """Something done about an order, told above where the order then stands."""

        async def do(visit: Visit, words: Sequence[str]) -> Said:
            job = await self._job(words)
            try:
                note = await deed(visit, job)
            except NotPossible:
                note = visit.tongue.say("admin.order_now")
            return await self._sheet(visit, job.id, note)

        return do

    async def _resend(self, visit: Visit, job: Job) -> Html:
        if visit.first:
            await operate.resend(self._engine.kit, job.id, visit.profile.outside_id)
        await self._desk.write(visit, "resend", code(job.id))
        return visit.tongue.say("admin.resent")

    async def _retry(self, visit: Visit, job: Job) -> Html:
        await operate.retry(self._engine.kit, job.id, visit.profile.outside_id)
        await self._desk.write(visit, "retry", code(job.id))
        return visit.tongue.say("admin.retried")

    async def _cancel(self, visit: Visit, job: Job) -> Html:
        await self._engine.cancel(job.id, visit.profile.outside_id)
        await self._desk.write(visit, "cancel", code(job.id))
        return visit.tongue.say("admin.cancelled")

    async def _refund(self, visit: Visit, job: Job) -> Html:
        """Give the credits of a delivered order back, once, and tell the person."""
        t = visit.tongue
        if job.purse is not Purse.CAPTURED:
            return t.say("admin.not_captured")
        fresh = await self._store.transfer(
            job.person_id, Kind.REFUND, job.price, _refund_key(job), f"order {job.id} refunded"
        )
        await self._desk.write(visit, "refund", code(job.id), f"{job.price / THOUSANDTHS:g}")
        if not fresh:
            return t.say("admin.refunded_before")
        try:
            profile = await self._store.profile(job.person_id)
            theirs = tongue(profile.language)
            await self._tell(profile, "told.refunded", code=code(job.id), credits=theirs.credits(job.price))
        except NoSuchPerson:  # ordered by another door: nobody to tell in the chat
            return t.say("admin.refunded", credits=t.credits(job.price))
        return t.say("admin.refunded", credits=t.credits(job.price))

    # stars

    async def _list_payments(self, visit: Visit, words: Sequence[str], note: Html | None = None) -> Said:
        profile = await self._whom(words)
        found = await self._store.payments(profile.person_id, LISTED)
        return operator.noted(note, operator.payments(visit.tongue, found, profile))

    async def _payment(self, words: Sequence[str]) -> tuple[Profile, Payment]:
        """The payment that a button means: its person, and the beginning of its receipt's mark."""
        profile = await self._whom(words)
        mark = words[2] if len(words) > 3 else ""  # noqa: PLR2004 - the verb, the person, the mark, the line
        for payment in await self._store.payments(profile.person_id, PAYMENTS_READ):
            if operator.short_receipt(payment.charge) == mark:
                return profile, payment
        raise Declined("no_payment")

    async def _ask_stars(self, visit: Visit, words: Sequence[str]) -> Said:
        profile, payment = await self._payment(words)
        return operator.refund_asked(visit.tongue, payment, profile, await self._store.wallet(profile.person_id))

    async def _give_stars(self, visit: Visit, words: Sequence[str]) -> Said:
        profile, payment = await self._payment(words)
        note = await self._refund_stars(visit, payment.charge)
        return await self._list_payments(visit, ("payments", str(profile.person_id), ""), note)

    async def _stars(self, visit: Visit, words: Sequence[str]) -> Said:
        if len(words) < 3:  # noqa: PLR2004 - the verb, the receipt, the whole line
            raise NotUnderstood
        return operator.word(visit.tongue, await self._refund_stars(visit, words[1]))

    async def _refund_stars(self, visit: Visit, charge: str) -> Html:
        """Give stars back to whoever paid them, if the credits are still there."""
        t = visit.tongue
        try:
            payment = await self._payments.refund(charge, visit.profile.outside_id)
        except (ChannelBusy, ChannelUnknown):
            return t.say("admin.stars_open")
        await self._desk.write(visit, "refund of stars", charge, f"{payment.stars} ⭐")
        await self._payments.tell_refunded(payment)
        return t.say("admin.stars_refunded", stars=payment.stars, credits=t.credits(payment.amount))

    async def _refunds(self, visit: Visit, words: Sequence[str]) -> Said:
        """Refunds that Telegram has not confirmed; with `now`, it is asked first."""
        if len(words) > 2:  # noqa: PLR2004 - the verb, now, the whole line
            await self._payments.go_on_refunding(0.0)
        found = [
            (payment, (await self._store.profile(payment.person_id)).name, fact.age)
            for fact in await self._store.facts(REFUND)
            if (payment := await self._store.payment(fact.key.removeprefix(REFUND))) is not None
        ]
        return operator.refunds(visit.tongue, sorted(found, key=lambda one: -one[2])[:LISTED])


def _why_not(error: Exception, t: Tongue) -> Html:
    """Why nothing was done, in the operator's language as far as we know the reason."""
    match error:
        case Declined():
            return t.say(f"admin.{error}", **error.values)
        case NoRefund():
            facts = {name: t.credits(one) if isinstance(one, int) else one for name, one in error.facts.items()}
            return t.say(f"admin.{error.name}", **facts)
        case NotEnoughMoney():
            return t.say("admin.too_little", balance=t.credits(error.available))
        case ChannelBusy() | ChannelUnknown():
            return t.say("admin.later")
        case ChannelError():
            return t.say("admin.unread", reason=str(error))
        case _:
            return t.say("admin.impossible", reason=str(error))


def _refund_key(job: Job) -> str:
    return f"refund:{job.id}"


def _number(words: Sequence[str]) -> int:
    """The number of an order, which comes second."""
    word = words[1].lstrip("#") if len(words) > 2 else ""  # noqa: PLR2004 - the verb, the order, the whole line
    if not word.isdecimal() or len(word) > 15:  # noqa: PLR2004 - no order has a longer one
        raise NotUnderstood
    return int(word)
