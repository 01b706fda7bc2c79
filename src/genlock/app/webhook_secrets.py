"""Makes the sealing of webhook secrets, and its check."""

from functools import partial

from genlock.api.webhook_owners import WebhookOwners
from genlock.api.webhook_secret_check import WebhookSecretCheck
from genlock.api.webhook_secrets import WebhookSecrets
from genlock.app.telegram import bot_texts
from genlock.engine.engine import Engine
from genlock.engine.tell import send_queued, tell
from genlock.ports import Database
from genlock.settings import ServiceSettings, Settings


def make_webhook_secrets(settings: Settings) -> WebhookSecrets:
    """Return the secrets as the settings seal them. All instances must have the same keys."""
    token = settings.telegram_token.get_secret_value() if settings.telegram_token else ""
    return WebhookSecrets.of_installation(settings.sealing_key_list(), token)


def make_webhook_owners(settings: ServiceSettings, store: Database, engine: Engine) -> WebhookOwners:
    return WebhookOwners(
        store=store,
        texts=bot_texts(settings.telegram_token.get_secret_value()),
        observer=engine.ctx.observer,
        tell=partial(tell, engine.ctx),
        send_queued=partial(send_queued, engine.ctx),
    )


def make_webhook_secret_check(settings: ServiceSettings, store: Database, engine: Engine) -> WebhookSecretCheck:
    return WebhookSecretCheck(
        store=store,
        secrets=make_webhook_secrets(settings),
        observer=engine.ctx.observer,
        owners=make_webhook_owners(settings, store, engine),
    )
