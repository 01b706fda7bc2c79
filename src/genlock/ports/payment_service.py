"""The PaymentService port: the service that took a payment, such as Telegram Stars."""

from typing import Protocol

from genlock.domain.payment import Payment


class PaymentService(Protocol):
    #: in the operators' records, such as `Telegram`
    name: str
    #: what it is paid in, in the plural
    currency: str
    symbol: str

    async def refund(self, payment: Payment, external_id: str) -> None:
        """Refund a payment to the user with this id. Returns also if it was refunded before. Raises ChannelErrors."""

    async def balance(self) -> int:
        """Return what the bot has there, in the smallest unit of the currency. Raises ChannelErrors."""
