"""Send a user a message that belongs to no job, through the channel of the user's account."""

import json
from collections.abc import Awaitable, Callable
from secrets import token_hex

from genlock.domain.account import Account
from genlock.domain.errors import AccountNotFound, ChannelBusy, ChannelError
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.engine.cancellation import uninterrupted
from genlock.engine.context import EngineContext
from genlock.i18n.loader import DEFAULT
from genlock.i18n.translator import Texts
from genlock.ports import ProfileStore

#: sends a text to the user of an account; False if the user cannot be reached
Tell = Callable[[int, str], Awaitable[bool]]
#: beginning of the keys of messages that the channel asked to wait with
WAITING = "tell:"
#: a message that could not be sent for this long is given up
WAITING_SECONDS_MAX = 86_400.0
PERIOD_SECONDS = 5.0


async def tell(ctx: EngineContext, account_id: int, text: str) -> bool:
    """Send `text`, in the channel's markup, to the user of an account, at most once. False if that is not possible.

    A message that the channel asks to wait with is stored, and sent by the leader.
    """
    account = await _reachable_account(ctx, account_id)
    return account is not None and await _tell(ctx, account, text, waited=0.0)


async def _reachable_account(ctx: EngineContext, account_id: int) -> Account | None:
    """Return an account that this instance can send to; None if it has no address, or another bot or channel."""
    try:
        account = await ctx.store.account(account_id)
    except AccountNotFound:
        return None
    is_other_bot = ctx.bots is not None and bool(account.bot) and account.bot not in ctx.bots
    return None if account.channel not in ctx.channels or not account.address or is_other_bot else account


async def _tell(ctx: EngineContext, account: Account, text: str, *, waited: float) -> bool:
    try:
        await ctx.channels[account.channel].tell(account.address, text)
    except ChannelError as error:
        ctx.observer.event(Event.DELIVER_FAIL, step="tell", account=account.id, reason=type(error).__name__)
        if not isinstance(error, ChannelBusy) or waited > WAITING_SECONDS_MAX:
            return False
        entry = {"text": text, "after": error.after, "waited": waited}
        await ctx.store.kv_put(f"{WAITING}{account.id}:{token_hex(8)}", json.dumps(entry))
    return True


async def send_waiting(ctx: EngineContext) -> None:
    """Send the messages that the channel asked to wait with, as soon as their time has come."""
    for entry in await ctx.store.kv_list(WAITING):
        waiting = json.loads(entry.value)
        if entry.age >= waiting["after"]:
            await _send_waiting(ctx, entry.key, waiting["text"], waited=waiting["waited"] + entry.age)


async def _send_waiting(ctx: EngineContext, key: str, text: str, *, waited: float) -> None:
    account = await _reachable_account(ctx, int(key.removeprefix(WAITING).partition(":")[0]))
    if account is None and waited <= WAITING_SECONDS_MAX:
        return  # an instance that has the user's bot may become the leader
    await uninterrupted(_send_once(ctx, account, key, text, waited=waited))


async def _send_once(ctx: EngineContext, account: Account | None, key: str, text: str, *, waited: float) -> None:
    # It is deleted before it is sent: at most one instance sends it, and at most once.
    if await ctx.store.kv_delete(key) and account is not None:
        await _tell(ctx, account, text, waited=waited)


async def tell_refund(ctx: EngineContext, profiles: ProfileStore, texts: Texts, job: Job) -> bool:
    """Inform the user that the credits of an order were returned. False if that is not possible."""
    try:
        language = (await profiles.profile(job.account_id)).language
    except AccountNotFound:  # it was not ordered in a chat
        language = DEFAULT
    t = texts.translator(language)
    code = f"#{t.numbers.order(job.id)}"
    return await tell(ctx, job.account_id, t.html("account.refunded", code=code, credits=t.credits(job.price)))
