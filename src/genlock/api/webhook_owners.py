"""Tells the owners of endpoints, in the chat, what became of them. Owners without a chat are not told."""

from dataclasses import dataclass

from genlock.domain.errors import AccountNotFound
from genlock.domain.events import Event
from genlock.domain.queued_message import QueuedMessage
from genlock.domain.webhook import Webhook
from genlock.engine.tell import SendQueued, Tell, make_message
from genlock.i18n.translator import Texts
from genlock.ports import Database, Observer

REASON_LENGTH_MAX = 300
URL_LENGTH_MAX = 100


@dataclass(frozen=True, kw_only=True)
class WebhookOwners:
    store: Database
    texts: Texts
    observer: Observer
    tell: Tell
    send_queued: SendQueued

    async def disable(self, webhook: Webhook, reason: str) -> None:
        """Disable an endpoint and tell its owner why, unless it was disabled before."""
        message = await self._message(webhook, "account.webhook_disabled", reason)
        if not await self.store.disable_webhook(webhook.id, reason[:REASON_LENGTH_MAX], message):
            return
        self.observer.event(Event.API_WEBHOOK_DISABLED, account=webhook.account_id, reason=reason)
        if message is not None:
            await self.send_queued(message)

    async def tell_lost_secret(self, webhook: Webhook) -> None:
        message = await self._message(webhook, "webhook_secret.lost", "")
        if message is not None:
            await self.tell(message.account_id, message.text)

    async def _message(self, webhook: Webhook, text: str, reason: str) -> QueuedMessage | None:
        try:
            language = (await self.store.profile(webhook.account_id)).language
        except AccountNotFound:  # it has no chat; the operators see the event
            return None
        url = webhook.url[:URL_LENGTH_MAX]
        return make_message(webhook.account_id, self.texts.translator(language).html(text, url=url, reason=reason))
