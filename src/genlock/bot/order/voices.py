"""A voice message as a prompt: a model on sale turns it into text, and the text goes on as if the user had typed it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from telegram import Message

from genlock.bot.attachment import Attachment, attachment, file_limits
from genlock.bot.bundle import BotBundle
from genlock.bot.buttons import ButtonData, Row, button
from genlock.bot.chat_view import ChatView
from genlock.bot.context import CHANNEL, Handler, UpdateContext
from genlock.bot.handlers.files import Files
from genlock.bot.order import wizard
from genlock.bot.order.draft import Problem, SentFile
from genlock.bot.order.input_errors import explain_file
from genlock.bot.order.orders import QUOTA_TEXTS
from genlock.bot.order.request_keys import VoiceKey
from genlock.bot.quotas import Quotas
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import Category, Model, Output
from genlock.domain.correlation_ids import update_correlation_id
from genlock.domain.errors import InvalidInput
from genlock.domain.field import Field, FieldType
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.engine.sell import NotSold, NotSoldReason, Order, Quote, Seller
from genlock.i18n.translator import Html
from genlock.ports import Database, OutgoingMessage

#: Telegram gives the length in whole seconds: the price that the user agrees to is for the longest it can be
ROUNDING_SECONDS = 1.0
#: A longer recording is hardly a prompt, and the operator pays for each second. A program can state any length to
#: Telegram, so the measured length decides.
FREE_SECONDS_MAX = 120.0
#: stands for the file while a price is made
_ANY_FILE = "https://voice.invalid/voice.ogg"


@dataclass(frozen=True, kw_only=True, slots=True)
class Transcriber:
    """A model that turns speech into text, and its field for the recording."""

    model: Model
    field: Field


def transcribers(storefront: Storefront) -> list[Transcriber]:
    """Return the models on sale that need only a recording and return text."""
    found = []
    for model in storefront.models(Category.SPEECH_TO_TEXT):
        required = [field for field in model.fields if field.required and field.default is None]
        if model.outputs == (Output.TEXT,) and [field.type for field in required] == [FieldType.AUDIO]:
            found.append(Transcriber(model=model, field=required[0]))
    return found


def cheapest(storefront: Storefront, sent: Attachment) -> Transcriber | None:
    """Return the cheapest model that takes such a recording; None if there is none."""
    prices: list[tuple[int, Transcriber]] = []
    for transcriber in transcribers(storefront):
        if file_limits(transcriber.field, sent) is not None:
            continue
        try:
            quote = storefront.quote(
                transcriber.model, _values(transcriber, _ANY_FILE), _lengths(_ANY_FILE, sent.seconds), free_left=0
            )
        except InvalidInput:
            continue
        prices.append((quote.price, transcriber))
    return min(prices, key=lambda priced: priced[0])[1] if prices else None


def transcript(job: Job) -> str:
    """Return the text of a finished transcription; empty if there is none."""
    return "\n".join(part.value for part in job.parts if part.kind is PartKind.TEXT).strip()


def _values(transcriber: Transcriber, url: str) -> dict[str, object]:
    field = transcriber.field
    return {field.name: [url] if field.many else url}


def _lengths(url: str, seconds: float | None) -> dict[str, float]:
    return {} if seconds is None else {url: seconds}


class Voices:
    """The offer answers the voice message, so a press finds the recording there; the draft stays as it is."""

    def __init__(
        self,
        *,
        view: ChatView,
        files: Files,
        store: Database,
        storefront: Storefront,
        seller: Seller,
        quotas: Quotas,
        bundle: BotBundle,
    ) -> None:
        self._view = view
        self._files = files
        self._store = store
        self._storefront = storefront
        self._seller = seller
        self._quotas = quotas
        self._bundle = bundle
        self.button_handlers: Mapping[str, Handler] = {
            "voice": self._press,
            "voice_file": self._use_recording,
            "voice_off": self._drop,
        }

    def is_prompt(self, ctx: UpdateContext, message: Message) -> bool:
        """Whether a voice message stands for a text: the order in progress has no room for a recording."""
        captioned = message.voice is None or message.caption
        if captioned or cheapest(self._storefront, _recording(message)) is None:
            return False
        model = self._storefront.by_id(ctx.draft.model) if ctx.draft.in_progress else None
        return model is None or wizard.field_for_file(ctx.draft, model, FieldType.AUDIO) is None

    async def receive(self, ctx: UpdateContext, message: Message) -> None:
        """Turn a voice message into text: at once where the operator pays, else after the user agreed to the price."""
        sent = _recording(message)
        transcriber = cheapest(self._storefront, sent)
        assert transcriber is not None, "is_prompt was asked"
        replied = message.reply_to_message.message_id if message.reply_to_message else 0
        key = VoiceKey(chat=ctx.chat, message=message.message_id, replied=replied)
        if await self._store.job_by_request_key(ctx.account_id, str(key)) is not None:
            return  # an earlier attempt at this update ordered it
        is_short = sent.seconds is None or sent.seconds <= FREE_SECONDS_MAX
        if is_short and await self._quotas.free_transcription(ctx, message.date):
            job = await self._order(ctx, key, transcriber, sent, sponsored=True)
            if not isinstance(job, Job):
                await self._view.send_text(ctx, self._explain(ctx, job))
            return
        longest = None if sent.seconds is None else sent.seconds + ROUNDING_SECONDS
        values, seconds = _values(transcriber, _ANY_FILE), _lengths(_ANY_FILE, longest)
        quote = await self._seller.quote(ctx.account_id, transcriber.model.id, values, seconds)
        if isinstance(quote, NotSold):
            await self._files.receive(ctx, sent, "")
            return
        await self._view.send(ctx, await self._offer(ctx, key, transcriber.model, quote), reply_to=key.message)

    async def _offer(self, ctx: UpdateContext, key: VoiceKey, model: Model, quote: Quote) -> OutgoingMessage:
        t = ctx.translator
        lines: list[str] = [t.html("voice.offer", time=t.duration(model.expected_seconds))]
        price = t.credits(quote.price)
        agree = t.plain("voice.agree", price=price) if quote.price else t.plain("voice.agree_free")
        rows: list[Row] = [(button(agree, "voice", quote.price, key.replied),)]
        if not ctx.group and (have := (await self._store.wallet(ctx.account_id)).available) < quote.price:
            missing = t.credits(quote.price - have)
            lines.append(t.html("confirm.short", balance=t.credits(have), missing=missing))
            rows.append((button(t.plain("button.topup"), "topup"),))
        rows.append((button(t.plain("voice.as_file"), "voice_file", key.replied),))
        rows.append((button(t.plain("button.cancel"), "voice_off", key.replied),))
        return OutgoingMessage(text="\n".join(lines), buttons=tuple(rows))

    # buttons of the offer

    async def _press(self, ctx: UpdateContext, data: ButtonData) -> None:
        """Order the text at the price of the button. The offer becomes the result."""
        if (message := await self._own_recording(ctx)) is None:
            return
        key = _key(ctx, message, data.number(1))
        if await self._store.job_by_request_key(ctx.account_id, str(key)) is not None:
            await self._view.toast(ctx, ctx.translator.plain("order.already"))
            return
        sent = _recording(message)
        if (transcriber := cheapest(self._storefront, sent)) is None:
            await self._view.toast(ctx, ctx.translator.plain("order.model_gone"), alert=True)
            return
        job = await self._order(ctx, key, transcriber, sent, agreed_price=max(data.number(), 0))
        if isinstance(job, NotSold) and job.reason is NotSoldReason.DEARER:
            offer = await self._offer(ctx, key, transcriber.model, Quote(price=job.price))
            await self._edit(ctx, replace(offer, text=f"{ctx.translator.html('confirm.dearer')}\n{offer.text}"))
        elif not isinstance(job, Job):
            await self._view.send_text(ctx, self._explain(ctx, job))
        await self._view.toast(ctx)

    async def _order(
        self,
        ctx: UpdateContext,
        key: VoiceKey,
        transcriber: Transcriber,
        sent: Attachment,
        *,
        sponsored: bool = False,
        agreed_price: int | None = None,
    ) -> Job | NotSold | Problem:
        file = await self._files.upload_checked(ctx, sent)
        if not isinstance(file, SentFile):
            return file
        if sponsored and (problem := _too_long_to_be_free(file.seconds)) is not None:
            return problem

        async def show_accepted() -> None:
            if ctx.first and ctx.button_message is not None:
                await self._edit(ctx, OutgoingMessage(text=ctx.translator.html("voice.listening")))

        order = Order(
            account_id=ctx.account_id,
            model=transcriber.model.id,
            values=_values(transcriber, file.url),
            seconds=_lengths(file.url, file.seconds),
            key=str(key),
            channel=CHANNEL,
            bot=self._bundle.id,
            address=str(ctx.address),
            sponsored=sponsored,
            agreed_price=agreed_price,
            placeholder=None if ctx.button_message is None else str(ctx.button_message),
            correlation_id=update_correlation_id(ctx.update),
        )
        return await self._seller.sell(order, before_accept=show_accepted)

    async def _use_recording(self, ctx: UpdateContext, data: ButtonData) -> None:
        """Use the recording itself as the file of an order."""
        message = await self._own_recording(ctx)
        if message is None or await self._is_ordered(ctx, message, data):
            return
        await self._view.toast(ctx)
        if not ctx.repeated:
            await self._files.begin_with(ctx, _recording(message), "")
        await self._remove_offer(ctx)

    async def _drop(self, ctx: UpdateContext, data: ButtonData) -> None:
        message = await self._own_recording(ctx)
        if message is not None and not await self._is_ordered(ctx, message, data):
            await self._view.toast(ctx)
            await self._remove_offer(ctx)

    async def _is_ordered(self, ctx: UpdateContext, message: Message, data: ButtonData) -> bool:
        """Whether the offer has become the text: a press before may have ordered it. If so, tell the user."""
        job = await self._store.job_by_request_key(ctx.account_id, str(_key(ctx, message, data.number())))
        offer = str(ctx.button_message)
        if job is None or offer not in (job.placeholder, *(part.message for part in job.parts)):
            return False
        await self._view.toast(ctx, ctx.translator.plain("order.already"))
        return True

    async def _own_recording(self, ctx: UpdateContext) -> Message | None:
        """Return the voice message that the offer answers; else tell the user why there is none and return None."""
        message = ctx.button_reply
        if message is None or message.voice is None:
            await self._view.toast(ctx, ctx.translator.plain("voice.gone"), alert=True)
            return None
        if message.from_user is None or str(message.from_user.id) != ctx.profile.external_id:
            await self._view.toast(ctx, ctx.translator.plain("order.not_your_menu"), alert=True)
            return None
        return message

    async def _edit(self, ctx: UpdateContext, message: OutgoingMessage) -> None:
        assert ctx.button_message is not None
        await self._view.edit(ctx.chat, ctx.button_message, message)

    async def _remove_offer(self, ctx: UpdateContext) -> None:
        if ctx.button_message is not None and ctx.button_message != ctx.draft.message:
            await self._view.remove(ctx.chat, ctx.button_message)

    def _explain(self, ctx: UpdateContext, refused: NotSold | Problem) -> Html:
        t = ctx.translator
        if isinstance(refused, Problem):
            return explain_file(refused, t) or t.html("refused.upload_failed")
        if refused.reason is NotSoldReason.INSUFFICIENT_BALANCE and not ctx.group:
            missing = t.credits(refused.price - refused.available)
            return t.html("confirm.short", balance=t.credits(refused.available), missing=missing)
        if refused.reason is NotSoldReason.INSUFFICIENT_BALANCE:
            return t.html("confirm.short_group")
        if refused.reason in QUOTA_TEXTS:
            return t.html(QUOTA_TEXTS[refused.reason], n=refused.count, time=t.duration(refused.wait_seconds))
        return t.html("order.model_gone")


def _too_long_to_be_free(seconds: float | None) -> Problem | None:
    if seconds is None:
        return Problem(name="upload_unreadable")
    if seconds > FREE_SECONDS_MAX + ROUNDING_SECONDS:
        return Problem(name="too_long", allowed={"given": seconds, "most": FREE_SECONDS_MAX})
    return None


def _key(ctx: UpdateContext, message: Message, replied: int) -> VoiceKey:
    return VoiceKey(chat=ctx.chat, message=message.message_id, replied=max(replied, 0))


def _recording(message: Message) -> Attachment:
    found = attachment(message)
    assert found is not None, "the message has a voice recording"
    return found
