"""Every method of the Bot API that is simulated, by its name."""

from dataclasses import dataclass
from typing import Any

from genlock.sandbox.telegram import (
    chat_settings,
    edits,
    forwards,
    inline,
    invite_links,
    messages,
    moderation,
    payments,
    polls,
    profile,
    small_messages,
    sticker_sets,
    topics,
)
from genlock.sandbox.telegram.api_call import CallArguments
from genlock.sandbox.telegram.messages import Method
from genlock.sandbox.telegram.state import TelegramState


@dataclass(frozen=True)
class DescribedResult:
    """The result `true` with a description."""

    description: str


async def get_updates(state: TelegramState, arguments: CallArguments) -> Any:
    return await state.updates.get(arguments)


async def get_webhook_info(state: TelegramState, _: CallArguments) -> Any:
    return state.updates.webhook_info()


async def set_webhook(state: TelegramState, arguments: CallArguments) -> Any:
    return DescribedResult(await state.updates.set_webhook(arguments))


async def delete_webhook(state: TelegramState, arguments: CallArguments) -> Any:
    return DescribedResult(await state.updates.delete_webhook(arguments))


#: by the name as Telegram writes it
NAMES: dict[str, Method] = {
    "getUpdates": get_updates,
    "setWebhook": set_webhook,
    "deleteWebhook": delete_webhook,
    "getWebhookInfo": get_webhook_info,
    **messages.METHODS,
    **edits.METHODS,
    **forwards.METHODS,
    **profile.METHODS,
    **payments.METHODS,
    **inline.METHODS,
    **small_messages.METHODS,
    **polls.METHODS,
    **chat_settings.METHODS,
    **invite_links.METHODS,
    **moderation.METHODS,
    **topics.METHODS,
    **sticker_sets.METHODS,
}
#: by the name in small letters, because Telegram takes names in any case
METHODS = {name.lower(): (name, method) for name, method in NAMES.items()}
