"""For operators, in the chat: figures, people, orders, money. Everything is written down."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from telegram import Message

from genlock.bot.admin import campaign_screens as campaign
from genlock.bot.admin import screens as operator
from genlock.bot.admin.broadcasts import Content
from genlock.bot.admin.campaigns import MAINTENANCE, Campaigns, read_amount
from genlock.bot.buttons import ButtonData
from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.money.payments import REFUND, NoRefund, Payments
from genlock.bot.screen_context import code
from genlock.channels.telegram.messages import OutgoingMessage
from genlock.domain.errors import (
    AccountNotFound,
    ActionNotAllowed,
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    InsufficientBalance,
    Refusal,
)
from genlock.domain.job import Job
from genlock.domain.money import THOUSANDTHS, EntryKind, HoldState
from genlock.domain.payment import Payment
from genlock.domain.profile import Profile
from genlock.engine import operate
from genlock.engine.engine import Engine
from genlock.i18n.translator import DAY, Html, Translator, translator

LISTED = 10
PAYMENTS_READ = 100
MOVEMENTS_READ = 500

#: the person who does it, and the words of the command: the verb first, the whole line last
Command = Callable[[UpdateContext, Sequence[str]], Awaitable[OutgoingMessage]]
#: of an order: what is done about it, giving what is then told
Deed = Callable[[UpdateContext, Job], Awaitable[Html]]


class NotUnderstood(Exception):
    """The words behind /admin are none of ours."""


class Declined(Exception):
    """Not done; why, is the text of this name."""

    def __init__(self, name: str, **values: object) -> None:
        super().__init__(name)
        self.values = values


class Admin:
    def __init__(self, *, view: ChatView, engine: Engine, payments: Payments, campaigns: Campaigns) -> None:
        self._view = view
        self._store = view.store
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

    def may(self, ctx: UpdateContext) -> bool:
        return not ctx.group and int(ctx.profile.external_id) in self._view.rules.admin_ids

    async def command(self, ctx: UpdateContext, line: str, message: Message) -> None:
        """`/admin WORDS`, answered on a message of its own."""
        words = line.split() or ["today"]
        content = Content.of(message) if words[0].lower() == "broadcast" else None
        await self._view.send(ctx, await self._done(ctx, words, line, content))

    async def pressed(self, ctx: UpdateContext, press: ButtonData) -> None:
        """A button of ours, answered in its place."""
        if not self.may(ctx) or ctx.pressed is None:
            await self._view.toast(ctx, ctx.translator.plain("order.unknown"), alert=True)
            return
        said = await self._done(ctx, list(press.args), " ".join(press.args))
        await self._view.toast(ctx)
        await self._view.edit(ctx.chat, ctx.pressed, said)
        if press.word() == "send":
            await self._campaigns.watched_at(ctx, ctx.pressed)

    async def _done(
        self, ctx: UpdateContext, words: Sequence[str], line: str, content: Content | None = None
    ) -> OutgoingMessage:
        t = ctx.translator
        verb = words[0].lower() if words else ""
        handler = self._commands.get(verb)
        if handler is None:
            return campaign.commands(t, note=t.html("admin.usage_all"))
        try:
            if content is not None and (content.text or content.file):
                return await self._campaigns.preview(ctx, content)
            return await handler(ctx, (verb, *words[1:], line))
        except NotUnderstood:
            return campaign.usage(t, verb if verb in campaign.COMMANDS else "order")
        except (Declined, Refusal, ChannelError) as error:
            return operator.word(t, _why_not(error, t))

    async def _tell(self, profile: Profile, key: str, **values: object) -> None:
        """Tell somebody what was done with their money; at most once, and the balance shows it anyway."""
        try:
            await self._view.tell(int(profile.external_id), translator(profile.language).html(key, **values))
        except ChannelError:
            return  # counted by the caller

    # figures

    async def _figures(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        days = 7 if words[0] == "week" else 1
        return operator.figures(
            ctx.translator,
            words[0],
            await self._store.figures(str(self._view.caller.bot.id), days * DAY),
            await self._store.counts(),
            refunds=len(await self._store.kv_list(REFUND)),
            maintenance=await self._store.kv_get(MAINTENANCE) is not None,
            broadcast=await self._store.running_broadcast(str(self._view.caller.bot.id)),
        )

    async def _list_commands(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        return campaign.commands(ctx.translator)

    async def _attention(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        return operator.attention(ctx.translator, self._titled(await self._store.jobs_needing_attention(LISTED)))

    async def _log(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        lines = await self._store.audit(LISTED * 2, str(self._view.caller.bot.id))
        names = {actor: await self._named(actor) for actor in {line.actor for line in lines}}
        return operator.log(ctx.translator, lines, names)

    async def _named(self, outside: str) -> str:
        found = await self._store.find_profiles(outside, 2)
        return next((one.name for one in found if one.external_id == outside), outside)

    def _titled(self, jobs: Sequence[Job]) -> list[tuple[Job, str]]:
        models = self._view.storefront.catalog.models
        return [(job, models[job.model].title if job.model in models else job.model) for job in jobs]

    # people

    async def _find(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        text = " ".join(words[1:-1]).lstrip("@")
        if not text:
            return operator.people(ctx.translator, text, await self._store.newest_profiles(LISTED), more=False)
        found = await self._store.find_profiles(text, LISTED + 1)
        if len(found) == 1:
            return await self._card(ctx, found[0].account_id)
        return operator.people(ctx.translator, text, found[:LISTED], more=len(found) > LISTED)

    async def _whom(self, words: Sequence[str]) -> Profile:
        """The person whose number or Telegram id comes second."""
        if len(words) < 3:  # noqa: PLR2004 - the verb, the person, the whole line
            raise NotUnderstood
        word = words[1].lstrip("@").lower()
        found = await self._store.find_profiles(word, LISTED)
        exact = [one for one in found if word in (str(one.account_id), one.external_id, one.username)]
        if not exact:
            raise Declined("no_person", word=words[1])
        if len(exact) > 1:
            raise Declined("many_people", word=words[1])
        return exact[0]

    async def _card(self, ctx: UpdateContext, person: int, note: Html | None = None) -> OutgoingMessage:
        profile, wallet = await self._store.profile(person), await self._store.wallet(person)
        return operator.noted(note, operator.person(ctx.translator, profile, wallet))

    async def _person(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        return await self._card(ctx, (await self._whom(words)).account_id)

    async def _move(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        """Credit or debit, once per command, with a reason."""
        amount = read_amount(words[2]) if len(words) > 4 else 0  # noqa: PLR2004 - verb, person, amount, reason, line
        if not amount:
            raise NotUnderstood
        profile, reason, credit = await self._whom(words), " ".join(words[3:-1]), words[0] == "credit"
        kind = EntryKind.GRANT if credit else EntryKind.DEBIT
        fresh = await self._store.transfer(profile.account_id, kind, amount, f"admin:{ctx.update}", reason)
        await self._view.write(ctx, words[0], profile.account_id, f"{amount / THOUSANDTHS:g}: {reason}")
        t = ctx.translator
        if not fresh:
            return await self._card(ctx, profile.account_id, t.html("admin.moved_before"))
        theirs = translator(profile.language)
        wallet = await self._store.wallet(profile.account_id)
        told = {"credits": theirs.credits(amount), "balance": theirs.credits(wallet.available)}
        await self._tell(profile, "told.credited" if credit else "told.debited", **told)
        note = t.html("admin.credited" if credit else "admin.debited", credits=t.credits(amount))
        return await self._card(ctx, profile.account_id, note)

    async def _ban(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        profile = await self._whom(words)
        banned, reason = words[0] == "ban", " ".join(words[2:-1])
        await self._store.set_ban(profile.account_id, banned=banned, reason=reason)
        await self._view.write(ctx, words[0], profile.account_id, reason)
        note = ctx.translator.html("admin.ban_done" if banned else "admin.unban_done")
        return await self._card(ctx, profile.account_id, note)

    async def _orders(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        profile = await self._whom(words)
        jobs = await self._store.jobs(account_id=profile.account_id, limit=LISTED)
        return operator.orders(ctx.translator, self._titled(jobs), profile)

    # orders

    async def _job(self, words: Sequence[str]) -> Job:
        number = _number(words)
        job = await self._store.job(number)
        if job is None:
            raise Declined("no_order", code=code(number))
        return job

    async def _sheet(self, ctx: UpdateContext, job_id: int, note: Html | None = None) -> OutgoingMessage:
        [(job, title)] = self._titled([await operate.find(self._engine.ctx, job_id)])
        try:
            name = (await self._store.profile(job.account_id)).name
        except AccountNotFound:  # ordered by another door
            name = "—"
        said = operator.order(ctx.translator, job, title, name=name, refunded=await self._is_refunded(job))
        return operator.noted(note, said)

    async def _is_refunded(self, job: Job) -> bool:
        if job.hold_state is not HoldState.CAPTURED:
            return False
        ledger_entries = await self._store.ledger_entries(job.account_id, MOVEMENTS_READ)
        return any(line.key == _refund_key(job) for line in ledger_entries)

    async def _order(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        return await self._sheet(ctx, (await self._job(words)).id)

    def _do(self, deed: Deed) -> Command:
        """Something done about an order, told above where the order then stands."""

        async def do(ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
            job = await self._job(words)
            try:
                note = await deed(ctx, job)
            except ActionNotAllowed:
                note = ctx.translator.html("admin.order_now")
            return await self._sheet(ctx, job.id, note)

        return do

    async def _resend(self, ctx: UpdateContext, job: Job) -> Html:
        if ctx.first:
            await operate.resend(self._engine.ctx, job.id, ctx.profile.external_id)
        await self._view.write(ctx, "resend", code(job.id))
        return ctx.translator.html("admin.resent")

    async def _retry(self, ctx: UpdateContext, job: Job) -> Html:
        await operate.retry(self._engine.ctx, job.id, ctx.profile.external_id)
        await self._view.write(ctx, "retry", code(job.id))
        return ctx.translator.html("admin.retried")

    async def _cancel(self, ctx: UpdateContext, job: Job) -> Html:
        await self._engine.cancel(job.id, ctx.profile.external_id)
        await self._view.write(ctx, "cancel", code(job.id))
        return ctx.translator.html("admin.cancelled")

    async def _refund(self, ctx: UpdateContext, job: Job) -> Html:
        """Give the credits of a delivered order back, once, and tell the person."""
        t = ctx.translator
        if job.hold_state is not HoldState.CAPTURED:
            return t.html("admin.not_captured")
        fresh = await self._store.transfer(
            job.account_id, EntryKind.REFUND, job.price, _refund_key(job), f"order {job.id} refunded"
        )
        await self._view.write(ctx, "refund", code(job.id), f"{job.price / THOUSANDTHS:g}")
        if not fresh:
            return t.html("admin.refunded_before")
        try:
            profile = await self._store.profile(job.account_id)
            theirs = translator(profile.language)
            await self._tell(profile, "told.refunded", code=code(job.id), credits=theirs.credits(job.price))
        except AccountNotFound:  # ordered by another door: nobody to tell in the chat
            return t.html("admin.refunded", credits=t.credits(job.price))
        return t.html("admin.refunded", credits=t.credits(job.price))

    # stars

    async def _list_payments(
        self, ctx: UpdateContext, words: Sequence[str], note: Html | None = None
    ) -> OutgoingMessage:
        profile = await self._whom(words)
        found = await self._store.payments(profile.account_id, LISTED)
        return operator.noted(note, operator.payments(ctx.translator, found, profile))

    async def _payment(self, words: Sequence[str]) -> tuple[Profile, Payment]:
        """The payment that a button means: its person, and the beginning of its receipt's mark."""
        profile = await self._whom(words)
        mark = words[2] if len(words) > 3 else ""  # noqa: PLR2004 - the verb, the person, the mark, the line
        for payment in await self._store.payments(profile.account_id, PAYMENTS_READ):
            if operator.short_receipt(payment.charge) == mark:
                return profile, payment
        raise Declined("no_payment")

    async def _ask_stars(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        profile, payment = await self._payment(words)
        return operator.refund_asked(ctx.translator, payment, profile, await self._store.wallet(profile.account_id))

    async def _give_stars(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        profile, payment = await self._payment(words)
        note = await self._refund_stars(ctx, payment.charge)
        return await self._list_payments(ctx, ("payments", str(profile.account_id), ""), note)

    async def _stars(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        if len(words) < 3:  # noqa: PLR2004 - the verb, the receipt, the whole line
            raise NotUnderstood
        return operator.word(ctx.translator, await self._refund_stars(ctx, words[1]))

    async def _refund_stars(self, ctx: UpdateContext, charge: str) -> Html:
        """Give stars back to whoever paid them, if the credits are still there."""
        t = ctx.translator
        try:
            payment = await self._payments.refund(charge, ctx.profile.external_id)
        except (ChannelBusy, ChannelOutcomeUnknown):
            return t.html("admin.stars_open")
        await self._view.write(ctx, "refund of stars", charge, f"{payment.stars} ⭐")
        await self._payments.tell_refunded(payment)
        return t.html("admin.stars_refunded", stars=payment.stars, credits=t.credits(payment.amount))

    async def _refunds(self, ctx: UpdateContext, words: Sequence[str]) -> OutgoingMessage:
        """Refunds that Telegram has not confirmed; with `now`, it is asked first."""
        if len(words) > 2:  # noqa: PLR2004 - the verb, now, the whole line
            await self._payments.go_on_refunding(0.0)
        found = [
            (payment, (await self._store.profile(payment.account_id)).name, fact.age)
            for fact in await self._store.kv_list(REFUND)
            if (payment := await self._store.payment(fact.key.removeprefix(REFUND))) is not None
        ]
        return operator.refunds(ctx.translator, sorted(found, key=lambda one: -one[2])[:LISTED])


def _why_not(error: Exception, t: Translator) -> Html:
    """Why nothing was done, in the operator's language as far as we know the reason."""
    match error:
        case Declined():
            return t.html(f"admin.{error}", **error.values)
        case NoRefund():
            facts = {name: t.credits(one) if isinstance(one, int) else one for name, one in error.facts.items()}
            return t.html(f"admin.{error.name}", **facts)
        case InsufficientBalance():
            return t.html("admin.too_little", balance=t.credits(error.available))
        case ChannelBusy() | ChannelOutcomeUnknown():
            return t.html("admin.later")
        case ChannelError():
            return t.html("admin.unread", reason=str(error))
        case _:
            return t.html("admin.impossible", reason=str(error))


def _refund_key(job: Job) -> str:
    return f"refund:{job.id}"


def _number(words: Sequence[str]) -> int:
    """The number of an order, which comes second."""
    word = words[1].lstrip("#") if len(words) > 2 else ""  # noqa: PLR2004 - the verb, the order, the whole line
    if not word.isdecimal() or len(word) > 15:  # noqa: PLR2004 - no order has a longer one
        raise NotUnderstood
    return int(word)
