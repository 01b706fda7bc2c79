"""Send a user a message that belongs to no job, through the channel of the user's account."""

from collections.abc import Awaitable, Callable

from genlock.domain.errors import AccountNotFound, ChannelError
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.engine.context import EngineContext
from genlock.i18n.loader import DEFAULT
from genlock.i18n.translator import Texts
from genlock.ports import ProfileStore

#: sends a text to the user of an account; False if the user was not reached
Tell = Callable[[int, str], Awaitable[bool]]


async def tell(ctx: EngineContext, account_id: int, text: str) -> bool:
    """Send `text`, in the channel's markup, to the user of an account. Returns whether the user was reached."""
    try:
        account = await ctx.store.account(account_id)
    except AccountNotFound:
        return False
    channel = ctx.channels.get(account.channel)
    is_other_bot = ctx.bots is not None and bool(account.bot) and account.bot not in ctx.bots
    if channel is None or not account.address or is_other_bot:
        return False
    try:
        await channel.tell(account.address, text)
    except ChannelError as error:
        ctx.observer.event(Event.DELIVER_FAIL, step="tell", account=account_id, reason=type(error).__name__)
        return False
    return True


async def tell_refund(ctx: EngineContext, profiles: ProfileStore, texts: Texts, job: Job) -> bool:
    """Inform the user that the credits of an order were returned. Returns whether the user was reached."""
    try:
        language = (await profiles.profile(job.account_id)).language
    except AccountNotFound:  # it was not ordered in a chat
        language = DEFAULT
    t = texts.translator(language)
    code = f"#{t.numbers.order(job.id)}"
    return await tell(ctx, job.account_id, t.html("account.refunded", code=code, credits=t.credits(job.price)))
