"""Telegram Stars as a payment service: refunds and the bot's balance, which belong to no chat."""

from genlock.channels.telegram.caller import Caller, Priority
from genlock.channels.telegram.errors import AlreadyRefunded
from genlock.domain.payment import Payment


class TelegramStars:
    name = "Telegram"
    currency = "stars"
    symbol = "⭐"

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def refund(self, payment: Payment, external_id: str) -> None:
        """Refund the stars of a payment to its user. A payment that was refunded before counts as refunded."""
        try:
            await self._caller.call(
                self._caller.bot.refund_star_payment,
                chat=None,
                priority=Priority.RESULT,
                user_id=int(external_id),
                telegram_payment_charge_id=payment.charge,
            )
        except AlreadyRefunded:
            return

    async def balance(self) -> int:
        """Return how many stars the bot has now. Raises ChannelErrors."""
        found = await self._caller.call(self._caller.bot.get_my_star_balance, chat=None, priority=Priority.SCREEN)
        return int(found.amount)
