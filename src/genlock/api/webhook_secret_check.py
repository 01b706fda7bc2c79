"""Seals the secrets of webhooks with the first key of the settings, and reports those that no key opens.

A secret becomes unreadable when its key is gone from the settings, such as the bot's token after it was replaced. The
endpoint then gets nothing, because its receiver could not verify it; its events wait. The log and the operators' pages
name it, and its owner is told once. The old key in the settings, or a new secret by the owner, ends that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from genlock.api.webhook_owners import WebhookOwners
from genlock.api.webhook_secrets import SecretUnreadable, WebhookSecrets
from genlock.domain.events import Event
from genlock.domain.webhook import FAILING_SECONDS_MAX, LOST, Webhook
from genlock.ports import Database, Observer

PERIOD_SECONDS = 60.0
PAGE = 500
REASON = "its secret cannot be read any more; make a new one with rotate-secret, then enable the endpoint"


@dataclass(kw_only=True)
class WebhookSecretCheck:
    store: Database
    secrets: WebhookSecrets
    observer: Observer
    owners: WebhookOwners

    async def round(self) -> None:
        """Look at every endpoint. Each step may be repeated."""
        told = {entry.key: entry.age for entry in await self.store.kv_list(LOST)}
        lost = await self._seal_all()
        for webhook in lost:
            await self._report(webhook, told.pop(f"{LOST}{webhook.id}", None))
        for key in told:  # readable again, or deleted
            await self.store.kv_delete(key)
        if lost:
            self.observer.event(Event.WEBHOOK_SECRETS_LOST, endpoints=len(lost), accounts=_accounts(lost))

    async def _seal_all(self) -> list[Webhook]:
        """Seal what another key has sealed. Returns the endpoints whose secret no key opens."""
        lost, after = [], 0
        while page := await self.store.webhooks_after(after, PAGE):
            after = page[-1].id
            for webhook in page:
                try:
                    sealed = self.secrets.sealed_anew(webhook)
                except SecretUnreadable:
                    lost.append(webhook)
                    continue
                if sealed is not None:
                    await self.store.seal_webhook_secrets(webhook, *sealed)
        return lost

    async def _report(self, webhook: Webhook, told_seconds_ago: float | None) -> None:
        if told_seconds_ago is None:
            await self.owners.tell_lost_secret(webhook)
            await self.store.kv_put(f"{LOST}{webhook.id}", str(webhook.account_id))
        elif told_seconds_ago > FAILING_SECONDS_MAX:
            await self.owners.disable(webhook, REASON)


def is_lost(secrets: WebhookSecrets, webhook: Webhook) -> bool:
    try:
        secrets.current(webhook)
    except SecretUnreadable:
        return True
    return False


def _accounts(webhooks: Sequence[Webhook]) -> str:
    found = sorted({webhook.account_id for webhook in webhooks})
    return ", ".join(map(str, found[:20])) + ("…" if len(found) > 20 else "")  # noqa: PLR2004
