"""A channel that edits by address only, until the real one is here."""

from contextlib import suppress

import aiohttp
from telegram import InputMediaAudio, InputMediaPhoto, InputMediaVideo
from telegram.constants import ParseMode

from genlock.bot.desk import keyboard
from genlock.bot.words import ChatWords
from genlock.domain.delivery import Part
from genlock.domain.errors import LevelRefused
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.ports import Channel, Placed
from genlock.telegram.address import Address
from genlock.telegram.calls import Caller, Priority
from genlock.telegram.errors import Unchanged
from genlock.telegram.words import Said

ENDINGS = {"mp4": InputMediaVideo, "mp3": InputMediaAudio, "wav": InputMediaAudio}


class PlainChannel(Channel):
    name = "telegram"

    def __init__(self, caller: Caller, words: ChatWords) -> None:
        self._caller = caller
        self._words = words

    async def place(self, job: Job, index: int) -> str:
        address = Address.parse(job.address)
        return str(await self._send(address, self._words.place(job, address, index)))

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        address = Address.parse(job.address)
        assert part.message is not None
        if part.kind is not PartKind.FILE:
            said = Said(text=part.value) if part.kind is PartKind.TEXT else self._words.failed(job, address)
            await self._edit(address, int(part.message), said)
            return Placed(message=part.message)
        said = self._words.caption(job, address, index, part)
        ending = part.value.rpartition(".")[2]
        kind = ENDINGS.get(ending, InputMediaPhoto)
        async with (
            aiohttp.ClientSession() as session,
            session.get(part.value, headers={"User-Agent": "Mozilla/5.0"}) as answer,
        ):
            content = await answer.read()
        media = kind(content, caption=said.text, parse_mode=ParseMode.HTML)
        with suppress(Unchanged):
            await self._caller.call(
                self._caller.bot.edit_message_media, chat=address.chat, priority=Priority.RESULT,
                message_id=int(part.message), media=media, reply_markup=keyboard(said),
            )  # fmt: skip
        return Placed(message=part.message, file="file")

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        raise LevelRefused

    async def notify(self, job: Job) -> None:
        address = Address.parse(job.address)
        await self._send(address, self._words.notice(job, address))

    async def progress(self, job: Job, fraction: float | None, until: float = 0.0) -> None:
        address = Address.parse(job.address)
        if job.placeholder:
            await self._edit(address, int(job.placeholder), self._words.waiting(job, address, fraction))

    async def _send(self, address: Address, said: Said) -> int:
        sent = await self._caller.call(
            self._caller.bot.send_message, chat=address.chat, priority=Priority.RESULT, text=said.text,
            parse_mode=ParseMode.HTML, reply_markup=keyboard(said),
        )  # fmt: skip
        return sent.message_id

    async def _edit(self, address: Address, message: int, said: Said) -> None:
        with suppress(Unchanged):
            await self._caller.call(
                self._caller.bot.edit_message_text, chat=address.chat, priority=Priority.RESULT, message_id=message,
                text=said.text, parse_mode=ParseMode.HTML, reply_markup=keyboard(said),
            )  # fmt: skip
