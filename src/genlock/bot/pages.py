"""Pages beside the way of an order: money, past orders, help. Each is opened by a command or a button."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from genlock.bot.buttons import Pressed, Row, base36, button
from genlock.bot.desk import Desk
from genlock.bot.draft import At
from genlock.bot.gifts import Gifts
from genlock.bot.look import quote
from genlock.bot.orders import CHANNEL, Orders
from genlock.bot.payments import Payments
from genlock.bot.screens import front, purse
from genlock.bot.tongue import LANGUAGES, Html, tongue
from genlock.bot.visit import Visit
from genlock.domain.catalog import Model
from genlock.domain.errors import InputRefused
from genlock.domain.job import Job
from genlock.telegram.address import Address
from genlock.telegram.words import Button, Said

Handler = Callable[[Visit, Pressed], Awaitable[None]]
MOVEMENTS_READ = 60
RUNNING_LOOKED_AT = 20


def elsewhere(job: Job, chat: int) -> bool:
    """Whether the order was made in another chat."""
    return job.channel == CHANNEL and Address.parse(job.address).chat != chat


class Pages:
    def __init__(self, *, desk: Desk, orders: Orders, payments: Payments, gifts: Gifts) -> None:
        self._desk = desk
        self._store = desk.store
        self._orders = orders
        self._payments = payments
        self._gifts = gifts
        #: by the words behind /start, as links to a page have them
        self.linked: Mapping[str, Callable[[Visit], Awaitable[None]]] = {
            "balance": self.balance,
            "topup": self.topup,
            "history": self.history,
            "promo": lambda visit: self.promo(visit, ""),
            "invite": self.invite,
        }
        self.presses: Mapping[str, Handler] = {
            "balance": lambda visit, _: self.balance(visit),
            "topup": lambda visit, _: self.topup(visit),
            "buy": lambda visit, press: self._payments.bill(visit, press.number()),
            "history": lambda visit, press: self.history(visit, press.number()),
            "order": self._order,
            "help": lambda visit, _: self.help(visit),
            "speak": lambda visit, press: self.speak(visit, press.word()),
            "promo": lambda visit, _: self.promo(visit, ""),
            "invite": lambda visit, _: self.invite(visit),
            "here": lambda visit, _: self._here(visit),
        }

    async def _page(self, visit: Visit, said: Said) -> None:
        """Show a page; a begun order waits behind it where one has been begun."""
        await self._desk.toast(visit)
        if visit.draft.at in (At.LIST, At.PROMO):
            await self._desk.keep(visit, visit.draft.carrying())
        await self._desk.show(visit, said)

    async def _private(self, visit: Visit, page: str) -> bool:
        """Money and past orders are nobody else's business: the way leads to the same page in the private chat."""
        if not visit.group:
            return False
        t, url = visit.tongue, f"{self._desk.link}?start={page}"
        if visit.pressed is None:
            link = Button(text=t.tag("button.open_private"), url=url)
            await self._desk.send(visit, Said(text=t.say("misc.group_private"), buttons=((link,),)))
        await self._desk.toast(visit, url=url)
        return True

    async def balance(self, visit: Visit) -> None:
        if await self._private(visit, "balance"):
            return
        movements = await self._store.movements(visit.person, MOVEMENTS_READ)
        await self._page(visit, purse.balance(await self._desk.look(visit), movements))

    async def topup(self, visit: Visit) -> None:
        if await self._private(visit, "topup"):
            return
        rules = self._desk.rules
        await self._page(visit, purse.topup(await self._desk.look(visit), rules.packages, support=rules.support))

    async def topup_for(self, visit: Visit, model: Model) -> None:
        """Packages, while an order waits for its money."""
        if await self._private(visit, "topup"):
            return
        await self._desk.toast(visit)
        look, rules = await self._desk.look(visit), self._desk.rules
        try:
            missing = quote(visit.draft, model, look).price - look.wallet.available
        except InputRefused:
            missing = 0
        await self._desk.show(visit, purse.topup(look, rules.packages, support=rules.support, missing=missing))

    async def _here(self, visit: Visit) -> None:
        """Back to what was begun."""
        await self._desk.toast(visit)
        await self._desk.show_draft(visit)

    async def history(self, visit: Visit, before: int = -1) -> None:
        if await self._private(visit, "history"):
            return
        newest = before < 0
        jobs = await self._store.jobs(
            person_id=visit.person, before=None if newest else before, limit=purse.HISTORY_A_PAGE + 1
        )
        shown, more = jobs[: purse.HISTORY_A_PAGE], len(jobs) > purse.HISTORY_A_PAGE
        await self._page(visit, purse.history(await self._desk.look(visit), shown, newest=newest, more=more))

    async def running(self, visit: Visit) -> bool:
        """Offer to cancel what is in the works; False if nothing is. In a group, only what was ordered there."""
        jobs = await self._store.jobs(person_id=visit.person, limit=RUNNING_LOOKED_AT)
        running = [job for job in jobs if not job.ended and not (visit.group and elsewhere(job, visit.chat))]
        if running:
            await self._page(visit, purse.cancellable(await self._desk.look(visit), running))
        return bool(running)

    async def _order(self, visit: Visit, press: Pressed) -> None:
        job = await self._orders.mine(visit, press.number())
        if job is not None:
            await self._page(visit, purse.order(await self._desk.look(visit), job))

    async def help(self, visit: Visit, *, note: Html | None = None) -> None:
        t = visit.tongue
        text = t.say("help.group", bot=self._desk.username) if visit.group else t.say("help.text")
        lines = [*([note, ""] if note else []), text]
        await self.read(visit, Html("\n".join(lines)))

    async def read(self, visit: Visit, text: Html, *rows: Row) -> None:
        """Something to read."""
        look = await self._desk.look(visit)
        await self._page(visit, front.page(look, text, begun=visit.draft.begun, rows=rows))

    async def terms(self, visit: Visit) -> None:
        await self.read(visit, visit.tongue.say("terms.text"))

    async def paysupport(self, visit: Visit) -> None:
        t = visit.tongue
        support = self._desk.rules.support or t.tag("paysupport.support_default")
        await self.read(visit, t.say("paysupport.text", support=support, person=str(visit.person)))

    async def language(self, visit: Visit) -> None:
        names, now = {"en": "English", "ru": "Русский"}, visit.tongue.language
        row = tuple(button(f"✓ {names[one]}" if one == now else names[one], "speak", one) for one in LANGUAGES)
        await self.read(visit, visit.tongue.say("language.choose"), row)

    async def speak(self, visit: Visit, language: str) -> None:
        """Another language, from now on."""
        if language in LANGUAGES:
            await self._store.set_language(visit.person, language)
            visit.profile = replace(visit.profile, language=language)
        await self._desk.toast(visit, tongue(visit.profile.language).tag("language.chosen"))
        await self._desk.show_draft(visit, note=visit.tongue.say("language.chosen"))

    async def promo(self, visit: Visit, code: str) -> None:
        if await self._private(visit, "promo"):
            return
        await self._desk.toast(visit)
        if code and (told := await self._gifts.promo(visit, code)) is not None:
            await self._desk.keep(visit, visit.draft.emptied())
            await self._desk.show_draft(visit, note=told)
            return
        note = visit.tongue.say("promo.unknown") if code else None
        await self._desk.keep(visit, replace(visit.draft.emptied(), at=At.PROMO))
        await self._desk.show_draft(visit, note=note)

    async def invite(self, visit: Visit) -> None:
        if await self._private(visit, "invite"):
            return
        rules, link = self._desk.rules, f"{self._desk.link}?start=r{base36(visit.person)}"
        said = purse.invite(visit.tongue, link, inviter=rules.reward_inviter, invited=rules.reward_invited)
        await self._page(visit, said)
