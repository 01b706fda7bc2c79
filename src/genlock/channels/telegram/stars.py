"""Calls about Telegram Stars that belong to no chat: refunds and the bot's balance."""

from genlock.channels.telegram.caller import Caller, Priority
from genlock.channels.telegram.errors import AlreadyRefunded
from genlock.domain.payment import Payment


async def refund_stars(caller: Caller, payment: Payment, user: int) -> None:
    """Refund the stars of a payment to its user. A payment that was refunded before counts as refunded."""
    try:
        await caller.call(
            caller.bot.refund_star_payment,
            chat=None,
            priority=Priority.RESULT,
            user_id=user,
            telegram_payment_charge_id=payment.charge,
        )
    except AlreadyRefunded:
        return


async def star_balance(caller: Caller) -> int:
    """Return how many stars the bot has now. Raises ChannelErrors."""
    found = await caller.call(caller.bot.get_my_star_balance, chat=None, priority=Priority.SCREEN)
    return int(found.amount)
