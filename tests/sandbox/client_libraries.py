"""Two independent Bot API client libraries behind one interface."""

import re
from dataclasses import dataclass
from typing import Any, Protocol

import telegram
from telegram.request import HTTPXRequest

from genlock.sandbox.telegram.simulator import TelegramSimulator


@dataclass(frozen=True)
class Bytes:
    """A file to upload."""

    content: bytes
    name: str


class ApiFailure(Exception):
    """What the library made of an error: its kind, and the server's text without its prefix, in lower case."""

    def __init__(self, kind: str, text: str, number: int = 0) -> None:
        self.kind = kind
        self.text = re.sub(r"^(bad request|forbidden|conflict|unauthorized|not found): ", "", text.lower())
        super().__init__(f"{kind}: {self.text}")
        self.number = number


class Client(Protocol):
    def __init__(self, url: str, token: str) -> None: ...

    async def call(self, method: str, **arguments: Any) -> Any:
        """Call by the Bot API's name; the result as plain data, with nothing in it that the library does not know."""
        ...

    async def download(self, file_id: str) -> bytes: ...

    def read_update(self, update: dict[str, Any]) -> Any:
        """The library's own object, for an update that came by webhook, as plain data again."""
        ...

    async def close(self) -> None: ...


#: of a Bot API that is newer than the library
NEWER = {"can_send_welcome_messages"}


#: the simulator serves plain HTTP, and loading the certificates takes longer than most tests
PLAIN_HTTP = {"verify": False}


class PythonTelegramBot:
    def __init__(self, url: str, token: str) -> None:
        request = HTTPXRequest(8, read_timeout=30, media_write_timeout=60, httpx_kwargs=PLAIN_HTTP)
        self._bot = telegram.Bot(
            token,
            base_url=f"{url}/bot",
            base_file_url=f"{url}/file/bot",
            request=request,
            get_updates_request=HTTPXRequest(8, httpx_kwargs=PLAIN_HTTP),
        )

    async def call(self, method: str, **arguments: Any) -> Any:
        name = re.sub(r"(?<!^)([A-Z])", r"_\1", method).lower()
        try:
            result = await getattr(self._bot, name)(**{key: _ptb(key, value) for key, value in arguments.items()})
        except telegram.error.TelegramError as error:
            raise _ptb_error(error) from error
        return _ptb_plain(result)

    async def download(self, file_id: str) -> bytes:
        return bytes(await (await self._bot.get_file(file_id)).download_as_bytearray())

    def read_update(self, update: dict[str, Any]) -> Any:
        return _ptb_plain(telegram.Update.de_json(update, self._bot))

    async def close(self) -> None:
        for request in self._bot._request:
            await request.shutdown()


def _ptb(key: str, value: Any) -> Any:
    if isinstance(value, Bytes):
        return telegram.InputFile(value.content, filename=value.name)
    if key == "media" and isinstance(value, list):
        return [_ptb("media", item) for item in value]
    if key == "media" and isinstance(value, dict):
        cls = getattr(telegram, f"InputMedia{value['type'].capitalize()}")
        rest = {name: item for name, item in value.items() if name not in {"type", "media"}}
        media = value["media"]
        file = (
            telegram.InputFile(media.content, filename=media.name, attach=True) if isinstance(media, Bytes) else media
        )
        return cls(media=file, **rest)
    if key == "reply_markup":
        kinds: dict[str, Any] = {
            "inline_keyboard": telegram.InlineKeyboardMarkup,
            "keyboard": telegram.ReplyKeyboardMarkup,
            "remove_keyboard": telegram.ReplyKeyboardRemove,
            "force_reply": telegram.ForceReply,
        }
        return next(cls.de_json(value, None) for name, cls in kinds.items() if name in value)
    lists: dict[str, Any] = {
        "prices": telegram.LabeledPrice,
        "commands": telegram.BotCommand,
        "reaction": telegram.ReactionType,
    }
    if key in lists:
        return [lists[key].de_json(item, None) for item in value]
    return telegram.ReplyParameters(**value) if key == "reply_parameters" else value


def _ptb_plain(result: Any) -> Any:
    if isinstance(result, list | tuple):
        return [_ptb_plain(item) for item in result]
    if isinstance(result, telegram.TelegramObject):
        _check_known(result)
        return result.to_dict()
    return result


def _check_known(found: Any) -> None:
    if isinstance(found, list | tuple):
        for item in found:
            _check_known(item)
    if isinstance(found, telegram.TelegramObject):
        assert not set(found.api_kwargs) - NEWER, (type(found), dict(found.api_kwargs))
        for name in found.__slots__:
            _check_known(getattr(found, name, None))


def _ptb_error(error: telegram.error.TelegramError) -> ApiFailure:
    if isinstance(error, telegram.error.RetryAfter):
        return ApiFailure("retry", error.message, int(error._retry_after.total_seconds()))
    if isinstance(error, telegram.error.ChatMigrated):
        return ApiFailure("migrated", error.message, error.new_chat_id)
    kinds: list[tuple[type[Exception], str]] = [
        (telegram.error.BadRequest, "bad request"),
        (telegram.error.Forbidden, "forbidden"),
        (telegram.error.Conflict, "conflict"),
        (telegram.error.EndPointNotFound, "not found"),
        (telegram.error.InvalidToken, "unauthorized"),
        (telegram.error.TelegramError, "network"),
    ]
    return ApiFailure(next(kind for cls, kind in kinds if isinstance(error, cls)), error.message)


#: the names that `connect` takes
LIBRARIES = ("python-telegram-bot", "aiogram")


def connect(library: str, telegram_: TelegramSimulator, token: str | None = None) -> Client:
    cls: type[Client] = PythonTelegramBot
    if library == "aiogram":
        # Importing aiogram takes seconds, and most of the test processes never need it.
        from tests.sandbox.aiogram_client import Aiogram  # noqa: PLC0415

        cls = Aiogram
    return cls(telegram_.url, token or telegram_.token)
