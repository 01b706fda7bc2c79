"""Makes the sealing of webhook secrets, and its check."""

from genlock.api.webhook_secret_check import WebhookSecretCheck
from genlock.api.webhook_secrets import WebhookSecrets
from genlock.app.telegram import bot_texts
from genlock.domain.errors import AccountNotFound
from genlock.domain.webhook import Webhook
from genlock.engine.engine import Engine
from genlock.engine.tell import tell
from genlock.ports import Database
from genlock.settings import ServiceSettings, Settings


def make_webhook_secrets(settings: Settings) -> WebhookSecrets:
    """Return the secrets as the settings seal them. All instances must have the same keys."""
    token = settings.telegram_token.get_secret_value() if settings.telegram_token else ""
    return WebhookSecrets.of_installation(settings.sealing_key_list(), token)


def make_webhook_secret_check(settings: ServiceSettings, store: Database, engine: Engine) -> WebhookSecretCheck:
    texts = bot_texts(settings.telegram_token.get_secret_value())

    async def tell_owner(webhook: Webhook, reason: str) -> None:
        try:
            language = (await store.profile(webhook.account_id)).language
        except AccountNotFound:  # it has no chat; the operators see the event
            return
        key = "account.webhook_disabled" if reason else "webhook_secret.lost"
        text = texts.translator(language).html(key, url=webhook.url[:100], reason=reason)
        await tell(engine.ctx, webhook.account_id, text)

    return WebhookSecretCheck(
        store=store,
        secrets=make_webhook_secrets(settings),
        observer=engine.ctx.observer,
        tell_owner=tell_owner,
    )
