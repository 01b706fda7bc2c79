"""The Bot API methods that every order uses, called with plain values.

python-telegram-bot makes an object with dozens of fields for each message, button and entity of an answer; for these
calls that was about a tenth of the processor time of an order. Files are uploaded by its own methods.
"""

from dataclasses import dataclass
from typing import Any, cast

from telegram import Bot
from telegram.request import RequestData

from genlock.channels.telegram.file_kinds import FileKind
from genlock.channels.telegram.http import CallParameters
from genlock.ports import OutgoingMessage

HTML = "HTML"
NO_PREVIEW = {"is_disabled": True}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SentMessage:
    """What we need of a message that was sent or edited."""

    message_id: int
    #: reference to its file, with which it can be shown again without an upload
    file: str | None = None


class DirectCalls:
    """Calls the Bot API through a bot's HTTP client, which raises the same errors."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot

    async def send_message(self, **parameters: Any) -> SentMessage:
        return _message(await self._post("sendMessage", parameters), {})

    async def edit_message_text(self, **parameters: Any) -> SentMessage:
        return _message(await self._post("editMessageText", parameters), parameters)

    async def edit_message_caption(self, **parameters: Any) -> SentMessage:
        return _message(await self._post("editMessageCaption", parameters), parameters)

    async def edit_message_media(self, **parameters: Any) -> SentMessage:
        return _message(await self._post("editMessageMedia", parameters), parameters)

    async def delete_message(self, **parameters: Any) -> None:
        await self._post("deleteMessage", parameters)

    async def answer_callback_query(self, **parameters: Any) -> None:
        await self._post("answerCallbackQuery", parameters)

    async def _post(self, method: str, parameters: Json) -> Any:
        given = {name: value for name, value in parameters.items() if value is not None}
        data = cast("RequestData", CallParameters(given))
        return await self._bot.request.post(f"{self._bot.base_url}/{method}", data)


def keyboard_json(message: OutgoingMessage) -> Json | None:
    """Return the buttons of a message. None in an edit removes the buttons that were there."""
    rows = [[_button(button.text, button.data, button.url) for button in row] for row in message.buttons]
    return {"inline_keyboard": rows} if rows else None


def _button(text: str, data: str | None, url: str | None) -> Json:
    button = {"text": text}
    if data is not None:
        button["callback_data"] = data
    if url is not None:
        button["url"] = url
    return button


def _message(answer: Any, edited: Json) -> SentMessage:
    """Read a message. An edit may be answered with True only: then it is the message that was to be edited."""
    if answer is True:
        return SentMessage(int(edited["message_id"]))
    return SentMessage(int(answer["message_id"]), _file(answer))


def _file(message: Json) -> str | None:
    if sizes := message.get("photo"):
        return f"{FileKind.PHOTO}:{sizes[-1]['file_id']}"
    # A message with an animation also has a document, so the animation comes first.
    for kind in (FileKind.ANIMATION, FileKind.VIDEO, FileKind.AUDIO, FileKind.DOCUMENT):
        if file := message.get(kind.value):
            return f"{kind}:{file['file_id']}"
    return None
