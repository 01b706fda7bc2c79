"""aiogram, a client library of the Bot API, behind the interface that the tests of the simulator call."""

from typing import Any

import aiogram
import aiogram.methods
import aiogram.types
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramAPIError,
    TelegramConflictError,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from pydantic import BaseModel

from tests.sandbox.client_libraries import ApiFailure, Bytes


class PlainSession(AiohttpSession):
    """Closes at once: aiogram's own session waits a quarter of a second for TLS connections, and ours are plain."""

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


class Aiogram:
    def __init__(self, url: str, token: str) -> None:
        self._bot = aiogram.Bot(token, session=PlainSession(api=TelegramAPIServer.from_base(url)))

    async def call(self, method: str, **arguments: Any) -> Any:
        made = getattr(aiogram.methods, method[0].upper() + method[1:])
        try:
            result = await self._bot(made(**{key: _aiogram(key, value) for key, value in arguments.items()}))
        except (TelegramAPIError, ClientDecodeError) as error:
            raise _aiogram_error(error) from error
        return _aiogram_plain(result)

    async def download(self, file_id: str) -> bytes:
        found = await self._bot.download(file_id)
        assert found is not None
        return found.read()

    def read_update(self, update: dict[str, Any]) -> Any:
        return _aiogram_plain(aiogram.types.Update.model_validate(update))

    async def close(self) -> None:
        await self._bot.session.close()


def _aiogram(key: str, value: Any) -> Any:
    if isinstance(value, Bytes):
        return aiogram.types.BufferedInputFile(value.content, filename=value.name)
    if key == "media" and isinstance(value, list):
        return [_aiogram("media", item) for item in value]
    if key == "media" and isinstance(value, dict):
        made = getattr(aiogram.types, f"InputMedia{value['type'].capitalize()}")
        return made(**{name: _aiogram(name, item) for name, item in value.items()})
    if key == "reply_markup":
        kinds = {
            "inline_keyboard": aiogram.types.InlineKeyboardMarkup,
            "keyboard": aiogram.types.ReplyKeyboardMarkup,
            "remove_keyboard": aiogram.types.ReplyKeyboardRemove,
            "force_reply": aiogram.types.ForceReply,
        }
        return next(made(**value) for name, made in kinds.items() if name in value)
    return value


def _aiogram_plain(result: Any) -> Any:
    if isinstance(result, list | tuple):
        return [_aiogram_plain(item) for item in result]
    if isinstance(result, BaseModel):
        _check_no_extra(result)
        return result.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
    return result


def _check_no_extra(found: Any) -> None:
    if isinstance(found, list | tuple):
        for item in found:
            _check_no_extra(item)
    if isinstance(found, BaseModel):
        assert not found.model_extra, (type(found), found.model_extra)
        for name in type(found).model_fields:
            _check_no_extra(getattr(found, name, None))


def _aiogram_error(error: Exception) -> ApiFailure:
    if isinstance(error, TelegramRetryAfter):
        return ApiFailure("retry", error.message, error.retry_after)
    if isinstance(error, TelegramMigrateToChat):
        return ApiFailure("migrated", error.message, error.migrate_to_chat_id)
    kinds: list[tuple[type[Exception], str]] = [
        (TelegramForbiddenError, "forbidden"),
        (TelegramConflictError, "conflict"),
        (TelegramNotFound, "not found"),
        (TelegramUnauthorizedError, "unauthorized"),
        (TelegramNetworkError, "network"),
        (TelegramServerError, "network"),
        (ClientDecodeError, "network"),
        (TelegramAPIError, "bad request"),
    ]
    kind = next(kind for made, kind in kinds if isinstance(error, made))
    return ApiFailure(kind, getattr(error, "message", str(error)))
