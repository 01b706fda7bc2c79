"""What people write and send: commands, texts, files. Nothing stays without an answer."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from telegram import Message
from telegram.constants import ChatType, MessageEntityType

from genlock.bot.admin.commands import Admin
from genlock.bot.bundle import BotBundle
from genlock.bot.buttons import Row, button
from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.handlers.files import Files, attachment
from genlock.bot.handlers.pages import Pages
from genlock.bot.money.gifts import Gifts
from genlock.bot.order import wizard
from genlock.bot.order.draft import At, Draft, Part
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.orders import Orders
from genlock.bot.rules import BotRules
from genlock.bot.screen_context import shorten, titled
from genlock.bot.storefront.screens import ALL, AS_USUAL, row
from genlock.bot.storefront.storefront import Storefront, code_of
from genlock.channels.telegram.messages import Button, OutgoingMessage
from genlock.domain.catalog import Category, Model
from genlock.i18n.translator import Html, Texts

Command = Callable[[UpdateContext, str], Awaitable[None]]
PROMO_PAYLOAD = "p_"
SENTENCE_WORDS = 3
#: clients cut a text that is too long for one message in the second half of what fits, and send the rest at once
PART_LENGTH = 2048
PART_SECONDS = 2
WHOLE_LENGTH = 40_000


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingText:
    """What was said to us, without our name in it."""

    command: str = ""
    text: str = ""


def start_payload(message: Message) -> str:
    """The words behind /start."""
    command, _, rest = (message.text or "").partition(" ")
    return rest.strip() if command.partition("@")[0] == "/start" else ""


class MessageHandler:
    def __init__(  # noqa: PLR0913 - one argument per part it works with
        self,
        *,
        view: ChatView,
        drafts: DraftView,
        storefront: Storefront,
        orders: Orders,
        pages: Pages,
        files: Files,
        gifts: Gifts,
        admin: Admin,
        identity: BotBundle,
        rules: BotRules,
        texts: Texts,
    ) -> None:
        self._view = view
        self._drafts = drafts
        self._storefront = storefront
        self._orders = orders
        self._pages = pages
        self._files = files
        self._gifts = gifts
        self._admin = admin
        self._identity = identity
        self._rules = rules
        self._texts = texts
        self._commands: Mapping[str, Command] = {
            "start": self._start,
            "menu": self._start,
            "models": self._models,
            "gen": self._gen,
            "balance": lambda ctx, _: pages.balance(ctx),
            "topup": lambda ctx, _: pages.topup(ctx),
            "history": lambda ctx, _: pages.history(ctx),
            "help": lambda ctx, _: pages.help(ctx),
            "language": lambda ctx, _: pages.language(ctx),
            "cancel": self._cancel,
            "terms": lambda ctx, _: pages.terms(ctx),
            "paysupport": lambda ctx, _: pages.paysupport(ctx),
            "promo": pages.promo,
            "invite": lambda ctx, _: pages.invite(ctx),
        }

    # listening

    def heard(self, message: Message) -> IncomingText | None:
        """What a message says to us; None if it is not for us, or nothing anybody said."""
        if not _from_a_person(message):
            return None
        text = message.text or message.caption or ""
        command, name, rest = _command(message)
        if name and name != self._identity.username:
            return None
        if message.chat.type == ChatType.PRIVATE:
            return IncomingText(command=command, text=rest if command else text)
        mention = f"@{self._identity.username}"
        named = mention in text.lower()
        answered = message.reply_to_message is not None and self._is_ours(message.reply_to_message)
        if not command and not named and not answered:
            return None
        said = rest if command else text
        place = said.lower().find(mention)
        if place >= 0:
            said = f"{said[:place].rstrip()} {said[place + len(mention) :].lstrip()}".strip()
        return IncomingText(command=command, text=said)

    def _is_ours(self, message: Message) -> bool:
        return message.from_user is not None and (message.from_user.username or "").lower() == self._identity.username

    async def hear(self, ctx: UpdateContext, message: Message, heard: IncomingText) -> None:
        if (line := _for_operators(message, heard)) is not None and self._admin.may(ctx):
            await self._admin.command(ctx, line, message)
        elif heard.command:
            await self._command(ctx, heard, message.date)
        elif ctx.repeated:
            await self._drafts.show(ctx)
        elif (sent := attachment(message)) is not None:
            await self._files.take(ctx, sent, heard.text)
        elif heard.text:
            await self._text(ctx, _joined(ctx, heard.text, message.date))
        elif ctx.group and not message.text:
            await self._pages.help(ctx)
        else:
            await self._view.send_text(ctx, ctx.translator.html("misc.not_understood"))

    async def _command(self, ctx: UpdateContext, heard: IncomingText, sent: datetime) -> None:
        command = self._commands.get(heard.command)
        if command is None:
            await self._pages.help(ctx, note=ctx.translator.html("misc.unknown_command"))
            return
        if len(heard.text) >= PART_LENGTH:
            ctx.part = Part(text=heard.text, sent=int(sent.timestamp()))
        await command(ctx, heard.text)

    # texts

    async def _text(self, ctx: UpdateContext, text: str) -> None:
        """A text means what the draft stands at: an answer, a search, a new description, or a wish."""
        draft = ctx.draft
        model = self._storefront.by_id(draft.model) if draft.model else None
        if draft.at is At.PROMO:
            await self._pages.promo(ctx, text)
            return
        if draft.at is At.LIST:
            await self._search(ctx, text)
            return
        if model is None or draft.at in (At.HOME, At.ORDERED):
            await self._wish(ctx, text)
            return
        if draft.at in (At.CONFIRM, At.OPTIONS):
            main = wizard.main_text(model)
            if main is None:
                await self._wish(ctx, text)
                return
            draft = replace(draft, at=At.EDIT, field=main.name)
            taken = wizard.answer(draft, model, text)
            await self._show(
                ctx, wizard.advance(taken, model) if ctx.draft.at is At.CONFIRM and not taken.problem else taken
            )
            return
        await self._show(ctx, wizard.answer(draft, model, await self._files.meant(ctx, model, text)))

    async def _search(self, ctx: UpdateContext, text: str) -> None:
        """A word before a shelf is a search; a sentence that finds nothing is what the person wants to see."""
        draft = ctx.draft
        category = Category(draft.category) if draft.category in set(Category) else None
        if len(text.split()) < SENTENCE_WORDS or self._storefront.search(text, category):
            await self._show(ctx, replace(draft, query=text, page=0))
            return
        await self._wish(ctx, text, category)

    async def _wish(self, ctx: UpdateContext, text: str, category: Category | None = None) -> None:
        """A text out of the blue: offer to make it with what was used last, or with what is cheap and quick."""
        model = self._storefront.quick(ctx.profile.last_model, category)
        carried = replace(ctx.draft.carrying(), text=text)
        if carried.sent:
            await self._show(ctx, carried)
            return
        if model is None:
            await self._show(ctx, replace(carried, at=At.LIST))
            return
        await self._offer(ctx, model, carried)

    async def _offer(self, ctx: UpdateContext, model: Model, carried: Draft) -> None:
        draft = wizard.rest(wizard.open_model(carried, model, model.category.value), model)
        await self._drafts.save(ctx, replace(draft, path=()))
        t = ctx.translator
        note = t.html("confirm.suggestion", title=titled(model, t)) if draft.at is At.CONFIRM else None
        await self._drafts.show(ctx, note=note)

    async def _show(self, ctx: UpdateContext, draft: Draft) -> None:
        await self._drafts.save(ctx, draft)
        await self._drafts.show(ctx)

    # commands

    async def _start(self, ctx: UpdateContext, payload: str) -> None:
        t = ctx.translator
        await self._gifts.welcome(ctx.person)
        if (page := self._pages.linked.get(payload)) is not None:
            await page(ctx)
            return
        notes = [
            t.html("menu.hello", name=ctx.profile.name, models=t.plain("unit.models", n=len(self._storefront.models())))
        ]
        if ctx.profile.fresh and self._rules.welcome:
            notes.append(t.html("menu.welcome_gift", credits=t.credits(self._rules.welcome)))
        if ctx.draft.sent:
            notes.append(t.html("menu.let_go"))
        if payload.startswith(PROMO_PAYLOAD):
            told = await self._gifts.promo(ctx, payload.removeprefix(PROMO_PAYLOAD))
            notes.append(told or t.html("promo.unknown"))
        if not ctx.repeated:
            await self._drafts.save(ctx, ctx.draft.emptied())
        await self._drafts.show(ctx, note=Html("\n".join(notes)))

    async def _models(self, ctx: UpdateContext, query: str) -> None:
        await self._show(ctx, replace(ctx.draft.carrying(), at=At.LIST, query=query))

    async def _cancel(self, ctx: UpdateContext, _: str) -> None:
        t = ctx.translator
        idle = ctx.draft.at in (At.HOME, At.ORDERED) and not ctx.draft.sent
        if idle and await self._pages.running(ctx):
            return
        await self._drafts.save(ctx, ctx.draft.emptied())
        await self._drafts.show(ctx, note=t.html("menu.nothing_to_cancel" if idle else "menu.cancelled"))

    async def _gen(self, ctx: UpdateContext, line: str) -> None:
        """Order at once with the model's defaults; what is missing is asked for."""
        t = ctx.translator
        if not line:
            await self._pages.read(ctx, t.html("misc.gen_usage"), (button(t.plain("button.models"), "cat", ALL, 0),))
            return
        if ctx.repeated and ctx.draft.at is At.ORDERED:
            return
        found = self._storefront.named(line)
        if found is None:
            await self._meant(ctx, line)
            return
        model, text = found
        draft = wizard.rest(
            wizard.open_model(replace(ctx.draft.emptied(), text=text), model, model.category.value), model
        )
        draft = replace(draft, path=())  # what is asked first comes with the model's card
        if ctx.part:  # the rest may be on its way
            ctx.part = replace(ctx.part, text=text, at=At.CONFIRM)
        if not ctx.repeated:
            await self._drafts.save(ctx, draft)
        if ctx.draft.at is At.CONFIRM and text and not ctx.part:
            await self._orders.order_at_once(ctx, model)
            return
        await self._drafts.show(ctx)

    async def _meant(self, ctx: UpdateContext, line: str) -> None:
        """A model that is not known is never guessed for money: the likely ones are offered, with the same text."""
        view, t = self._view, ctx.translator
        models, text = self._storefront.meant(line)
        name = shorten(line.split(maxsplit=1)[0])
        if not models:
            text = t.html("misc.gen_unknown", name=name)
            await self._pages.read(ctx, text, (button(t.plain("button.models"), "cat", ALL, 0),))
            return
        if not ctx.repeated:
            await self._drafts.save(ctx, replace(ctx.draft.emptied(), at=At.LIST, text=text))
        lines = [t.html("misc.gen_meant", name=name)]
        if text:
            lines.append(t.html("list.carried_text", text=shorten(text, 200)))
        screen = await self._drafts.screen_context(ctx)
        rows: list[Row] = [(button(row(screen, model), "model", code_of(model.id), ALL, AS_USUAL),) for model in models]
        rows.append((button(t.plain("button.models"), "cat", ALL, 0), button(t.plain("button.menu"), "menu")))
        await view.show(ctx, OutgoingMessage(text="\n".join(lines), buttons=tuple(rows)))

    async def greet_group(self, chat: int, language: str) -> None:
        t = self._texts.translator(language)
        link = Button(text=t.plain("button.open_private"), url=self._identity.link)
        said = OutgoingMessage(text=t.html("misc.added_to_group", bot=self._identity.username), buttons=((link,),))
        await self._view.send_to(chat, said)


def _for_operators(message: Message, heard: IncomingText) -> str | None:
    """What stands behind /admin, also below a picture; None if nothing of the kind was said."""
    if heard.command == "admin":
        return heard.text
    first, _, rest = (message.caption or "").partition(" ")
    return rest if first == "/admin" else None


def _joined(ctx: UpdateContext, text: str, date: datetime) -> str:
    """The text, or all of it that has come so far; then the person stands where they began to say it."""
    draft, sent = ctx.draft, int(date.timestamp())
    part, goes_on = draft.part, len(text) >= PART_LENGTH
    if part is not None and sent - part.sent <= PART_SECONDS:
        text = f"{part.text}\n{text}"[:WHOLE_LENGTH]
        draft = replace(
            draft, at=part.at, category=part.category, field=part.field, path=part.path, settled=part.settled
        )
        ctx.draft = draft
    if goes_on:
        ctx.part = Part(
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
