"""Send a user a message that belongs to no job, through the channel of the user's account.

A message that reports a change is queued in the commit of the change, and sent at once by the instance that made it. A
message that a crash left in the queue is sent by the leader. It leaves the queue before it is sent: at most one
instance sends it, and at most once.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from secrets import token_hex

from genlock.domain.account import Account
from genlock.domain.errors import AccountNotFound, ChannelBusy, ChannelError
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.domain.queued_message import QUEUED, QueuedMessage
from genlock.engine.cancellation import uninterrupted
from genlock.engine.context import EngineContext
from genlock.i18n.loader import DEFAULT
from genlock.i18n.translator import Texts
from genlock.ports import ProfileStore

#: sends a text to the user of an account; False if the user cannot be reached
Tell = Callable[[int, str], Awaitable[bool]]
#: sends a message that is in the queue; False if the user cannot be reached
SendQueued = Callable[[QueuedMessage], Awaitable[bool]]
#: a message that could not be sent for this long is given up
WAITING_SECONDS_MAX = 86_400.0
PERIOD_SECONDS = 5.0
#: the instance that queued a message has sent it by then, unless it crashed
AFTER_SECONDS = 10.0


async def tell(ctx: EngineContext, account_id: int, text: str) -> bool:
    """Send `text`, in the channel's markup, to the user of an account, at most once. False if that is not possible.

    If the channel asks to wait, the message is queued.
    """
    account = await _reachable_account(ctx, account_id)
    return account is not None and await _send(ctx, account, make_message(account_id, text))


def make_message(account_id: int, text: str, kind: str = "") -> QueuedMessage:
    """Return a message for the queue. The store queues it together with what it reports."""
    key = f"{QUEUED}{account_id}:{kind}{token_hex(8)}"
    return QueuedMessage(key=key, account_id=account_id, text=text, after=AFTER_SECONDS)


async def send_queued(ctx: EngineContext, message: QueuedMessage) -> bool:
    """Send a message from the queue. False if the user cannot be reached; True if another instance sends it.

    A message to the user of another bot stays in the queue, for an instance that has this bot.
    """
    account = await _find_account(ctx, message.account_id)
    if account is not None and _has_other_bot(ctx, account):
        return False
    return await uninterrupted(_send_once(ctx, account, message))


async def _find_account(ctx: EngineContext, account_id: int) -> Account | None:
    """Return an account that messages can be sent to; None if it has no address, or an unknown channel."""
    try:
        account = await ctx.store.account(account_id)
    except AccountNotFound:
        return None
    return account if account.channel in ctx.channels and account.address else None


def _has_other_bot(ctx: EngineContext, account: Account) -> bool:
    """Whether only other instances can send to an account."""
    return ctx.bots is not None and bool(account.bot) and account.bot not in ctx.bots


async def _reachable_account(ctx: EngineContext, account_id: int) -> Account | None:
    """Return an account that this instance can send to."""
    account = await _find_account(ctx, account_id)
    return None if account is None or _has_other_bot(ctx, account) else account


async def _send(ctx: EngineContext, account: Account, message: QueuedMessage) -> bool:
    """Send a message that is not in the queue. If the channel asks to wait, the message is queued."""
    try:
        await ctx.channels[account.channel].tell(account.address, message.text)
    except ChannelError as error:
        ctx.observer.event(Event.DELIVER_FAIL, step="tell", account=account.id, reason=type(error).__name__)
        if not isinstance(error, ChannelBusy) or message.waited > WAITING_SECONDS_MAX:
            return False
        await ctx.store.kv_put(message.key, replace(message, after=error.after).dump())
    return True


async def send_waiting(ctx: EngineContext) -> None:
    """Send the messages in the queue whose time has come. A periodic task of the leader."""
    for entry in await ctx.store.kv_list(QUEUED):
        message = QueuedMessage.load(entry.key, entry.value)
        if entry.age >= message.after:
            await _send_waiting(ctx, replace(message, waited=message.waited + entry.age))


async def _send_waiting(ctx: EngineContext, message: QueuedMessage) -> None:
    account = await _reachable_account(ctx, message.account_id)
    if account is None and message.waited <= WAITING_SECONDS_MAX:
        return  # an instance that has the user's bot may become the leader
    await uninterrupted(_send_once(ctx, account, message))


async def _send_once(ctx: EngineContext, account: Account | None, message: QueuedMessage) -> bool:
    if not await ctx.store.kv_delete(message.key):
        return True  # another instance sends it
    return account is not None and await _send(ctx, account, message)


async def refund_message(profiles: ProfileStore, texts: Texts, job: Job) -> QueuedMessage:
    """Return the message that informs the user that the credits of an order were returned."""
    try:
        language = (await profiles.profile(job.account_id)).language
    except AccountNotFound:  # it was not ordered in a chat
        language = DEFAULT
    t = texts.translator(language)
    code = f"#{t.numbers.order(job.id)}"
    return make_message(job.account_id, t.html("account.refunded", code=code, credits=t.credits(job.price)))
