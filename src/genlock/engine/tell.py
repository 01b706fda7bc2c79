"""Send a user a message that no job depends on."""

from genlock.domain.errors import AccountNotFound, ChannelError
from genlock.engine.context import EngineContext


async def tell(ctx: EngineContext, account_id: int, text: str) -> bool:
    """Send `text` to the user of an account through their channel; False if the user was not reached."""
    try:
        account = await ctx.store.account(account_id)
    except AccountNotFound:
        return False
    channel = ctx.channels.get(account.channel)
    if channel is None or not account.address:
        return False
    try:
        await channel.tell(account.address, text)
    except ChannelError:
        return False
    return True
