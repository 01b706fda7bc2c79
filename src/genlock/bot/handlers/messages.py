"""Handles messages of users: commands, texts and files. Every message gets an answer."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime

from telegram import Message

from genlock.bot.admin.commands import Admin
from genlock.bot.attachment import attachment
from genlock.bot.bundle import BotBundle
from genlock.bot.buttons import Row, button
from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.gallery.gallery import Gallery
from genlock.bot.handlers.api_keys import ApiKeyPages
from genlock.bot.handlers.command_words import WISH, CommandWords, guess
from genlock.bot.handlers.files import Files
from genlock.bot.handlers.incoming import IncomingText, admin_line
from genlock.bot.handlers.inline import read_payload
from genlock.bot.handlers.pages import Pages
from genlock.bot.handlers.privacy import Privacy
from genlock.bot.handlers.welcome import Welcome
from genlock.bot.handlers.wishes import Wishes
from genlock.bot.money.gifts import Gifts
from genlock.bot.order import questions, wizard
from genlock.bot.order.draft import Draft, PartialText, Step
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.next_steps import NextSteps
from genlock.bot.order.orders import Orders
from genlock.bot.order.request_keys import VoiceKey
from genlock.bot.order.voices import Voices, transcript
from genlock.bot.screen_context import shorten
from genlock.bot.storefront.favourites import Favourites
from genlock.bot.storefront.screens import ALL, AS_USUAL, row
from genlock.bot.storefront.storefront import Storefront, code_of
from genlock.domain.job import Job
from genlock.i18n.translator import Html
from genlock.ports import Button, OutgoingMessage

Command = Callable[[UpdateContext, str], Awaitable[None]]
PROMO_PAYLOAD = "p_"
#: Telegram clients split a long text in the second half of the length that fits, and send the rest at once
PART_LENGTH = 2048
PART_SECONDS = 2
WHOLE_LENGTH = 40_000


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
        wishes: Wishes,
        welcome: Welcome,
        next_steps: NextSteps,
        gallery: Gallery,
        favourites: Favourites,
        voices: Voices,
        gifts: Gifts,
        admin: Admin,
        privacy: Privacy,
        api_keys: ApiKeyPages,
        bundle: BotBundle,
    ) -> None:
        self._view = view
        self._drafts = drafts
        self._storefront = storefront
        self._orders = orders
        self._pages = pages
        self._files = files
        self._wishes = wishes
        self._welcome = welcome
        self._next_steps = next_steps
        self._gallery = gallery
        self._favourites = favourites
        self._voices = voices
        self._gifts = gifts
        self._admin = admin
        self._privacy = privacy
        self._api_keys = api_keys
        self._bundle = bundle
        self._commands = self._make_commands()
        self._words = CommandWords(bundle.texts, self._commands)

    def _make_commands(self) -> Mapping[str, Command]:
        pages = self._pages
        return {
            "start": self._start,
            "menu": self._start,
            "models": self._models,
            "gen": self._gen,
            "balance": lambda ctx, _: pages.balance(ctx),
            "topup": lambda ctx, _: pages.topup(ctx),
            "results": lambda ctx, _: self._gallery.show(ctx),
            "favourites": lambda ctx, _: self._favourites.show(ctx),
            "history": lambda ctx, _: pages.history(ctx),
            "help": lambda ctx, _: pages.help(ctx),
            "language": lambda ctx, _: pages.language(ctx),
            "cancel": self._cancel,
            "terms": lambda ctx, _: pages.terms(ctx),
            "privacy": lambda ctx, _: self._privacy.show(ctx),
            "api": lambda ctx, _: self._api_keys.show(ctx),
            "paysupport": lambda ctx, _: pages.paysupport(ctx),
            "promo": pages.promo,
            "invite": lambda ctx, _: pages.invite(ctx),
            WISH: self._wish,
        }

    async def handle(self, ctx: UpdateContext, message: Message, incoming: IncomingText) -> None:
        if message.text:
            incoming = self._words.read(incoming)
        if incoming.borrowed_command:
            await self._view.send_text(ctx, ctx.translator.html("misc.forwarded_command"))
        elif (line := admin_line(message, incoming)) is not None and self._admin.may(ctx):
            await self._admin.command(ctx, line, message)
        elif line is not None and await self._admin.may_open_dashboard(ctx):
            await self._admin.send_dashboard_link(ctx)
        elif incoming.command:
            await self._command(ctx, incoming, message.date)
        elif ctx.repeated:
            await self._drafts.show(ctx)
        else:
            await self._content(ctx, message, incoming)

    async def _content(self, ctx: UpdateContext, message: Message, incoming: IncomingText) -> None:
        """Handle what the user sent to work with: an answer to a result, a recording, a file or a text."""
        if await self._reply(ctx, message, incoming.text):
            return
        if self._voices.is_prompt(ctx, message):
            await self._voices.receive(ctx, message)
        elif (sent := attachment(message)) is not None:
            await self._files.receive(ctx, sent, incoming.text)
        elif incoming.text:
            await self._text(ctx, _join_parts(ctx, incoming.text, message.date))
        elif ctx.group and not message.text:
            await self._pages.help(ctx)
        else:
            await self._view.send_text(ctx, ctx.translator.html("misc.not_understood"))

    async def _reply(self, ctx: UpdateContext, message: Message, text: str) -> bool:
        """Take a text that answers a result or a file as what to do with it; return whether it was one."""
        if message.reply_to_message is None:
            return False
        if len(text) >= PART_LENGTH:  # the rest of the prompt may follow in the next message
            ctx.partial_text = PartialText(text=text, sent=int(message.date.timestamp()), step=Step.CONFIRM)
        if await self._next_steps.reply(ctx, message, text):
            return True
        ctx.partial_text = None
        return False

    async def continue_after(self, ctx: UpdateContext, job: Job) -> None:
        """Go on with what a user began when its job has ended: the text of a voice message is like a typed one."""
        key, text = VoiceKey.read(job.request_key), transcript(job)
        if key is None or not text:
            return
        if ctx.repeated:
            await self._drafts.show(ctx)
        elif not key.replied or not await self._next_steps.reply_to(ctx, key.replied, text):
            await self._text(ctx, text)

    async def _command(self, ctx: UpdateContext, incoming: IncomingText, sent: datetime) -> None:
        command = self._commands.get(self._words.meaning(incoming.command) or "")
        if command is None:
            await self._unknown_command(ctx, incoming.command)
            return
        if len(incoming.text) >= PART_LENGTH:
            ctx.partial_text = PartialText(text=incoming.text, sent=int(sent.timestamp()))
        await command(ctx, incoming.text)

    async def _unknown_command(self, ctx: UpdateContext, typed: str) -> None:
        """Suggest the command that was probably meant; without one, show what the bot can do."""
        t, command = ctx.translator, self._words.nearest(typed)
        if command is None:
            await self._pages.help(ctx, note=t.html("misc.unknown_command"))
            return
        await self._pages.send_text(ctx, guess(t, typed, command))

    # texts

    async def _text(self, ctx: UpdateContext, text: str) -> None:
        """Handle a text by the draft's step: an answer, a search, a new prompt, or a new order."""
        draft = ctx.draft
        model = self._storefront.by_id(draft.model) if draft.model else None
        if draft.step is Step.PROMO:
            await self._pages.promo(ctx, text)
            return
        if draft.step is Step.LIST:
            await self._wishes.search(ctx, text)
            return
        if model is None or draft.step in (Step.HOME, Step.ORDERED):
            await self._wishes.offer(ctx, text)
            return
        if draft.step in (Step.CONFIRM, Step.OPTIONS, Step.STYLE, Step.IMPROVE):
            main = questions.main_text(model)
            if main is None:
                await self._wishes.offer(ctx, text)
                return
            draft = replace(draft, step=Step.EDIT, field=main.name)
            taken = wizard.answer(draft, model, text)
            await self._save_and_show(
                ctx, taken if ctx.draft.step is Step.OPTIONS or taken.problem else wizard.advance(taken, model)
            )
            return
        text = await self._files.resolve_task(ctx, model, text)
        await self._save_and_show(ctx, wizard.answer_text(draft, model, text))

    async def _save_and_show(self, ctx: UpdateContext, draft: Draft) -> None:
        await self._drafts.save(ctx, draft)
        await self._drafts.show(ctx)

    # commands

    async def _start(self, ctx: UpdateContext, payload: str) -> None:
        t = ctx.translator
        await self._gifts.welcome(ctx.account_id)
        if payload == "privacy":
            await self._privacy.show(ctx)
            return
        if payload == "api":
            await self._api_keys.show(ctx)
            return
        if payload == "results":
            await self._gallery.show(ctx)
            return
        if (page := self._pages.start_pages.get(payload)) is not None:
            await page(ctx)
            return
        if (typed := read_payload(payload)) is not None:
            await self._start_with(ctx, *typed)
            return
        notes = [
            t.html(
                "menu.hello", name=ctx.profile.name, models=t.plain("unit.networks", n=len(self._storefront.models()))
            )
        ]
        if ctx.profile.created and self._bundle.rules.welcome:
            notes.append(t.html("menu.welcome_gift", credits=t.credits(self._bundle.rules.welcome)))
        if ctx.draft.sent:
            notes.append(t.html("menu.files_dropped"))
        if payload.startswith(PROMO_PAYLOAD):
            answer = await self._gifts.promo(ctx, payload.removeprefix(PROMO_PAYLOAD))
            notes.append(answer or t.html("promo.unknown"))
        if not ctx.repeated:
            await self._drafts.save(ctx, ctx.draft.cleared())
        await self._welcome.show_picture(ctx)
        await self._drafts.show(ctx, note=Html("\n".join(notes)))

    async def _start_with(self, ctx: UpdateContext, text: str, cut: bool) -> None:  # noqa: FBT001 - as it was read
        """Suggest an order for a text that the user typed in another chat; an order in progress is left."""
        if ctx.repeated:
            await self._drafts.show(ctx)
            return
        if cut:
            await self._view.send_text(ctx, ctx.translator.html("inline.cut"))
        ctx.draft = ctx.draft.cleared()
        await self._text(ctx, text)

    async def _wish(self, ctx: UpdateContext, text: str) -> None:
        """`/imagine TEXT`, as other bots have it: the text is a wish like any other."""
        if not text:
            await self._start(ctx, "")
        elif ctx.repeated:
            await self._drafts.show(ctx)
        else:
            ctx.draft = ctx.draft.cleared()
            await self._text(ctx, text)

    async def _models(self, ctx: UpdateContext, query: str) -> None:
        await self._save_and_show(ctx, replace(ctx.draft.keeping_input(), step=Step.LIST, query=query))

    async def _cancel(self, ctx: UpdateContext, _: str) -> None:
        t = ctx.translator
        idle = ctx.draft.step in (Step.HOME, Step.ORDERED) and not ctx.draft.sent
        if idle and await self._pages.running(ctx):
            return
        await self._drafts.save(ctx, ctx.draft.cleared())
        await self._drafts.show(ctx, note=t.html("menu.nothing_to_cancel" if idle else "menu.cancelled"))

    async def _gen(self, ctx: UpdateContext, line: str) -> None:
        """`/gen MODEL TEXT`: order with the model's defaults; ask for what is missing."""
        t = ctx.translator
        if not line:
            await self._pages.show_text(
                ctx, t.html("misc.gen_usage"), (button(t.plain("button.models"), "cat", ALL, 0),)
            )
            return
        if ctx.repeated and ctx.draft.step is Step.ORDERED:
            return
        found = self._storefront.match_name(line)
        if found is None:
            await self._suggest_models(ctx, line)
            return
        model, text = found
        draft = wizard.start_with_defaults(replace(ctx.draft.cleared(), text=text), model, model.category.value)
        draft = replace(draft, path=())  # without a path, the first question shows the model's card
        if ctx.partial_text:  # the rest of the text may follow in the next message
            ctx.partial_text = replace(ctx.partial_text, text=text, step=Step.CONFIRM)
        if draft.step is Step.CONFIRM and text and not ctx.partial_text:
            await self._orders.order_at_once(ctx, model, draft)
            return
        if not ctx.repeated:
            await self._drafts.save(ctx, draft)
        await self._drafts.show(ctx)

    async def _suggest_models(self, ctx: UpdateContext, line: str) -> None:
        """Offer models with similar names, with the same text; an unknown name never orders anything."""
        view, t = self._view, ctx.translator
        models, text = self._storefront.similar(line)
        name = shorten(line.split(maxsplit=1)[0])
        if not models:
            text = t.html("misc.gen_unknown", name=name)
            await self._pages.show_text(ctx, text, (button(t.plain("button.models"), "cat", ALL, 0),))
            return
        if not ctx.repeated:
            await self._drafts.save(ctx, replace(ctx.draft.cleared(), step=Step.LIST, text=text))
        lines = [t.html("misc.gen_meant", name=name)]
        if text:
            lines.append(t.html("list.carried_text", text=shorten(text, 200)))
        screen = await self._drafts.screen_context(ctx)
        rows: list[Row] = [(button(row(screen, model), "model", code_of(model.id), ALL, AS_USUAL),) for model in models]
        rows.append((button(t.plain("button.models"), "cat", ALL, 0), button(t.plain("button.menu"), "menu")))
        await view.show(ctx, OutgoingMessage(text="\n".join(lines), buttons=tuple(rows)))

    async def greet_group(self, chat: int, language: str) -> None:
        t = self._bundle.texts.translator(language)
        link = Button(text=t.plain("button.open_private"), url=self._bundle.link)
        message = OutgoingMessage(text=t.html("misc.added_to_group", bot=self._bundle.username), buttons=((link,),))
        await self._view.send_to(chat, message)


def _join_parts(ctx: UpdateContext, text: str, date: datetime) -> str:
    """Join the text with the part before it, and return the draft to the step that the first part answered."""
    draft, sent = ctx.draft, int(date.timestamp())
    part, goes_on = draft.partial_text, len(text) >= PART_LENGTH
    if part is not None and sent - part.sent <= PART_SECONDS:
        text = f"{part.text}\n{text}"[:WHOLE_LENGTH]
        draft = replace(
            draft, step=part.step, category=part.category, field=part.field, path=part.path, settled=part.settled
        )
        ctx.draft = draft
    if goes_on:
        ctx.partial_text = PartialText(
            text=text,
            sent=sent,
            step=draft.step,
            category=draft.category,
            field=draft.field,
            path=draft.path,
            settled=draft.settled,
        )
    return text
