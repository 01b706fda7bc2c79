"""Messages that a bot sends through a client library: one of each kind, with a sample file."""

from typing import Any

from tests.sandbox.client_libraries import Bytes, Client
from tests.sandbox.sample_media import sample

KEYBOARD = {"inline_keyboard": [[{"text": "Menu", "callback_data": "menu"}]]}


OTHER_KEYBOARD = {"inline_keyboard": [[{"text": "Back", "callback_data": "back"}]]}


KINDS = ("photo", "video", "animation", "audio", "voice", "document")


async def send(client: Client, chat: int, kind: str, **more: Any) -> dict[str, Any]:
    if kind == "text":
        sent = await client.call("sendMessage", chat_id=chat, text="words", **more)
    else:
        content, name = sample(kind)
        given = {kind: Bytes(content, name)}
        sent = await client.call(f"send{kind.capitalize()}", chat_id=chat, **given, **more)
    assert isinstance(sent, dict)
    return sent


def media(kind: str, **more: Any) -> dict[str, Any]:
    content, name = sample(kind)
    return {"type": kind, "media": Bytes(content, name), **more}
