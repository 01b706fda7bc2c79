"""What people write and send: commands, texts, files. Nothing stays without an answer."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from telegram import Message
from telegram.constants import ChatType, MessageEntityType

from genlock.bot import wizard
from genlock.bot.admin import Admin
from genlock.bot.buttons import Row, button
from genlock.bot.desk import Desk
from genlock.bot.draft import At, Draft, Part
from genlock.bot.files import Files, attachment
from genlock.bot.gifts import Gifts
from genlock.bot.look import shorten, titled
from genlock.bot.orders import Orders
from genlock.bot.pages import Pages
from genlock.bot.screens.front import ALL, AS_USUAL, row
from genlock.bot.shop import code_of
from genlock.bot.tongue import Html, tongue
from genlock.bot.visit import Visit
from genlock.domain.catalog import Category, Model
from genlock.telegram.words import Button, Said

Command = Callable[[Visit, str], Awaitable[None]]
PROMO_PAYLOAD = "p_"
SENTENCE_WORDS = 3
#: clients cut a text that is too long for one message in the second half of what fits, and send the rest at once
PART_LENGTH = 2048
PART_SECONDS = 2
WHOLE_LENGTH = 40_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Heard:
    """What was said to us, without our name in it."""

    command: str = ""
    text: str = ""


def start_payload(message: Message) -> str:
    """The words behind /start."""
    command, _, rest = (message.text or "").partition(" ")
    return rest.strip() if command.partition("@")[0] == "/start" else ""


class Talk:
    def __init__(self, *, desk: Desk, orders: Orders, pages: Pages, files: Files, gifts: Gifts, admin: Admin) -> None:
        self._desk = desk
        self._orders = orders
        self._pages = pages
        self._files = files
        self._gifts = gifts
        self._admin = admin
        self._commands: Mapping[str, Command] = {
            "start": self._start,
            "menu": self._start,
            "models": self._models,
            "gen": self._gen,
            "balance": lambda visit, _: pages.balance(visit),
            "topup": lambda visit, _: pages.topup(visit),
            "history": lambda visit, _: pages.history(visit),
            "help": lambda visit, _: pages.help(visit),
            "language": lambda visit, _: pages.language(visit),
            "cancel": self._cancel,
            "terms": lambda visit, _: pages.terms(visit),
            "paysupport": lambda visit, _: pages.paysupport(visit),
            "promo": pages.promo,
            "invite": lambda visit, _: pages.invite(visit),
        }

    # listening

    def heard(self, message: Message) -> Heard | None:
        """What a message says to us; None if it is not for us, or nothing anybody said."""
        if not _from_a_person(message):
            return None
        text = message.text or message.caption or ""
        command, name, rest = _command(message)
        if name and name != self._desk.username:
            return None
        if message.chat.type == ChatType.PRIVATE:
            return Heard(command=command, text=rest if command else text)
        mention = f"@{self._desk.username}"
        named = mention in text.lower()
        answered = message.reply_to_message is not None and self._is_ours(message.reply_to_message)
        if not command and not named and not answered:
            return None
        said = rest if command else text
        place = said.lower().find(mention)
        if place >= 0:
            said = f"{said[:place].rstrip()} {said[place + len(mention) :].lstrip()}".strip()
        return Heard(command=command, text=said)

    def _is_ours(self, message: Message) -> bool:
        return message.from_user is not None and (message.from_user.username or "").lower() == self._desk.username

    async def hear(self, visit: Visit, message: Message, heard: Heard) -> None:
        if (line := _for_operators(message, heard)) is not None and self._admin.may(visit):
            await self._admin.command(visit, line, message)
        elif heard.command:
            await self._command(visit, heard, message.date)
        elif visit.repeated:
            await self._desk.show_draft(visit)
        elif (sent := attachment(message)) is not None:
            await self._files.take(visit, sent, heard.text)
        elif heard.text:
            await self._text(visit, _joined(visit, heard.text, message.date))
        elif visit.group and not message.text:
            await self._pages.help(visit)
        else:
            await self._desk.say(visit, visit.tongue.say("misc.not_understood"))

    async def _command(self, visit: Visit, heard: Heard, sent: datetime) -> None:
        command = self._commands.get(heard.command)
        if command is None:
            await self._pages.help(visit, note=visit.tongue.say("misc.unknown_command"))
            return
        if len(heard.text) >= PART_LENGTH:
            visit.part = Part(text=heard.text, sent=int(sent.timestamp()))
        await command(visit, heard.text)

    # texts

    async def _text(self, visit: Visit, text: str) -> None:
        """A text means what the draft stands at: an answer, a search, a new description, or a wish."""
        desk, draft = self._desk, visit.draft
        model = desk.shop.by_id(draft.model) if draft.model else None
        if draft.at is At.PROMO:
            await self._pages.promo(visit, text)
            return
        if draft.at is At.LIST:
            await self._search(visit, text)
            return
        if model is None or draft.at in (At.HOME, At.ORDERED):
            await self._wish(visit, text)
            return
        if draft.at in (At.CONFIRM, At.OPTIONS):
            main = wizard.main_text(model)
            if main is None:
                await self._wish(visit, text)
                return
            draft = replace(draft, at=At.EDIT, field=main.name)
            taken = wizard.answer(draft, model, text)
            await self._show(
                visit, wizard.advance(taken, model) if visit.draft.at is At.CONFIRM and not taken.problem else taken
            )
            return
        await self._show(visit, wizard.answer(draft, model, await self._files.meant(visit, model, text)))

    async def _search(self, visit: Visit, text: str) -> None:
        """A word before a shelf is a search; a sentence that finds nothing is what the person wants to see."""
        draft = visit.draft
        category = Category(draft.category) if draft.category in set(Category) else None
        if len(text.split()) < SENTENCE_WORDS or self._desk.shop.search(text, category):
            await self._show(visit, replace(draft, query=text, page=0))
            return
        await self._wish(visit, text, category)

    async def _wish(self, visit: Visit, text: str, category: Category | None = None) -> None:
        """A text out of the blue: offer to make it with what was used last, or with what is cheap and quick."""
        desk = self._desk
        model = desk.shop.quick(visit.profile.last_model, category)
        carried = replace(visit.draft.carrying(), text=text)
        if carried.sent:
            await self._show(visit, carried)
            return
        if model is None:
            await self._show(visit, replace(carried, at=At.LIST))
            return
        await self._offer(visit, model, carried)

    async def _offer(self, visit: Visit, model: Model, carried: Draft) -> None:
        draft = wizard.rest(wizard.open_model(carried, model, model.category.value), model)
        await self._desk.keep(visit, replace(draft, path=()))
        t = visit.tongue
        note = t.say("confirm.suggestion", title=titled(model, t)) if draft.at is At.CONFIRM else None
        await self._desk.show_draft(visit, note=note)

    async def _show(self, visit: Visit, draft: Draft) -> None:
        await self._desk.keep(visit, draft)
        await self._desk.show_draft(visit)

    # commands

    async def _start(self, visit: Visit, payload: str) -> None:
        desk, t = self._desk, visit.tongue
        await self._gifts.welcome(visit.person)
        if (page := self._pages.linked.get(payload)) is not None:
            await page(visit)
            return
        notes = [t.say("menu.hello", name=visit.profile.name, models=t.tag("unit.models", n=len(desk.shop.models())))]
        if visit.profile.fresh and desk.rules.welcome:
            notes.append(t.say("menu.welcome_gift", credits=t.credits(desk.rules.welcome)))
        if visit.draft.sent:
            notes.append(t.say("menu.let_go"))
        if payload.startswith(PROMO_PAYLOAD):
            told = await self._gifts.promo(visit, payload.removeprefix(PROMO_PAYLOAD))
            notes.append(told or t.say("promo.unknown"))
        if not visit.repeated:
            await desk.keep(visit, visit.draft.emptied())
        await desk.show_draft(visit, note=Html("\n".join(notes)))

    async def _models(self, visit: Visit, query: str) -> None:
        await self._show(visit, replace(visit.draft.carrying(), at=At.LIST, query=query))

    async def _cancel(self, visit: Visit, _: str) -> None:
        t = visit.tongue
        idle = visit.draft.at in (At.HOME, At.ORDERED) and not visit.draft.sent
        if idle and await self._pages.running(visit):
            return
        await self._desk.keep(visit, visit.draft.emptied())
        await self._desk.show_draft(visit, note=t.say("menu.nothing_to_cancel" if idle else "menu.cancelled"))

    async def _gen(self, visit: Visit, line: str) -> None:
        """Order at once with the model's defaults; what is missing is asked for."""
        desk, t = self._desk, visit.tongue
        if not line:
            await self._pages.read(visit, t.say("misc.gen_usage"), (button(t.tag("button.models"), "cat", ALL, 0),))
            return
        if visit.repeated and visit.draft.at is At.ORDERED:
            return
        found = desk.shop.named(line)
        if found is None:
            await self._meant(visit, line)
            return
        model, text = found
        draft = wizard.rest(
            wizard.open_model(replace(visit.draft.emptied(), text=text), model, model.category.value), model
        )
        draft = replace(draft, path=())  # what is asked first comes with the model's card
        if visit.part:  # the rest may be on its way
            visit.part = replace(visit.part, text=text, at=At.CONFIRM)
        if not visit.repeated:
            await desk.keep(visit, draft)
        if visit.draft.at is At.CONFIRM and text and not visit.part:
            await self._orders.at_once(visit, model)
            return
        await desk.show_draft(visit)

    async def _meant(self, visit: Visit, line: str) -> None:
        """A model that is not known is never guessed for money: the likely ones are offered, with the same text."""
        desk, t = self._desk, visit.tongue
        models, text = desk.shop.meant(line)
        name = shorten(line.split(maxsplit=1)[0])
        if not models:
            text = t.say("misc.gen_unknown", name=name)
            await self._pages.read(visit, text, (button(t.tag("button.models"), "cat", ALL, 0),))
            return
        if not visit.repeated:
            await desk.keep(visit, replace(visit.draft.emptied(), at=At.LIST, text=text))
        lines = [t.say("misc.gen_meant", name=name)]
        if text:
            lines.append(t.say("list.carried_text", text=shorten(text, 200)))
        look = await desk.look(visit)
        rows: list[Row] = [(button(row(look, model), "model", code_of(model.id), ALL, AS_USUAL),) for model in models]
        rows.append((button(t.tag("button.models"), "cat", ALL, 0), button(t.tag("button.menu"), "menu")))
        await desk.show(visit, Said(text="\n".join(lines), buttons=tuple(rows)))

    async def greet_group(self, chat: int, language: str) -> None:
        t = tongue(language)
        link = Button(text=t.tag("button.open_private"), url=self._desk.link)
        said = Said(text=t.say("misc.added_to_group", bot=self._desk.username), buttons=((link,),))
        await self._desk.tell(chat, said)


def _for_operators(message: Message, heard: Heard) -> str | None:
    """What stands behind /admin, also below a picture; None if nothing of the kind was said."""
    if heard.command == "admin":
        return heard.text
    first, _, rest = (message.caption or "").partition(" ")
    return rest if first == "/admin" else None


def _joined(visit: Visit, text: str, date: datetime) -> str:
    """The text, or all of it that has come so far; then the person stands where they began to say it."""
    draft, sent = visit.draft, int(date.timestamp())
    part, goes_on = draft.part, len(text) >= PART_LENGTH
    if part is not None and sent - part.sent <= PART_SECONDS:
        text = f"{part.text}\n{text}"[:WHOLE_LENGTH]
        draft = replace(
            draft, at=part.at, category=part.category, field=part.field, path=part.path, settled=part.settled
        )
        visit.draft = draft
    if goes_on:
        visit.part = Part(
            text=text,
            sent=sent,
            at=draft.at,
            category=draft.category,
            field=draft.field,
            path=draft.path,
            settled=draft.settled,
        )
    return text


def _from_a_person(message: Message) -> bool:
    """Whether somebody said something; joins, pins and the like are nobody's words."""
    said = (
        message.text, message.caption, message.photo, message.video, message.animation, message.audio, message.voice,
        message.document, message.video_note, message.sticker, message.contact, message.location, message.poll,
        message.dice, message.venue, message.game, message.story, message.paid_media, message.successful_payment,
    )  # fmt: skip
    return any(said)


def _command(message: Message) -> tuple[str, str, str]:
    """The command, whose it is (empty: anybody's), and the rest of the line."""
    text = message.text or ""
    entities = message.entities or ()
    if not any(one.type == MessageEntityType.BOT_COMMAND and one.offset == 0 for one in entities):
        return "", "", text
    first, _, rest = text.partition(" ")
    if "\n" in first:
        first, _, more = first.partition("\n")
        rest = f"{more} {rest}".strip()
    command, _, name = first.removeprefix("/").partition("@")
    return command.lower(), name.lower(), rest.strip()
