"""HTTP control of what simulated users write beyond texts and files: recordings, stickers, edits and forwards."""

import asyncio
from typing import TYPE_CHECKING, Any

from aiohttp import web

from genlock.sandbox.telegram.control import read_body
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.stickers import STICKERS, sticker_file

if TYPE_CHECKING:
    from genlock.sandbox.telegram.simulator import TelegramSimulator

FORWARDS_MAX = 100


def add_composing(app: web.Application, telegram: "TelegramSimulator") -> None:
    composing = Composing(telegram)
    app.router.add_get("/sim/stickers", composing.stickers)
    app.router.add_get("/sim/stickers/{emoji}", composing.sticker_picture)
    for name in ("voice", "sticker", "edit", "forward"):
        app.router.add_post(f"/sim/people/{{person:[0-9]+}}/{name}", getattr(composing, name))


class Composing:
    def __init__(self, telegram: "TelegramSimulator") -> None:
        self._state = telegram.state

    async def stickers(self, _: web.Request) -> web.Response:
        return web.json_response(list(STICKERS))

    async def sticker_picture(self, request: web.Request) -> web.Response:
        content = await asyncio.to_thread(sticker_file, request.match_info["emoji"])
        return web.Response(body=content, content_type="image/webp", headers={"Cache-Control": "max-age=86400"})

    async def voice(self, request: web.Request) -> web.Response:
        form, user = await request.post(), self._user_of(request)
        file = form.get("file")
        recording = await asyncio.to_thread(file.file.read) if isinstance(file, web.FileField) else None
        message = await user.send_recording(recording, chat=_number(form, "chat"), reply_to=_number(form, "reply_to"))
        return web.json_response(self._state.view(message))

    async def sticker(self, request: web.Request) -> web.Response:
        body, user = await read_body(request), self._user_of(request)
        message = await user.send_sticker(str(body["sticker"]), chat=body.get("chat"), reply_to=body.get("reply_to"))
        return web.json_response(self._state.view(message))

    async def edit(self, request: web.Request) -> web.Response:
        body, user = await read_body(request), self._user_of(request)
        message = await user.edit(int(body["message"]), str(body["text"]), chat=body.get("chat"))
        return web.json_response(self._state.view(message))

    async def forward(self, request: web.Request) -> web.Response:
        body, user = await read_body(request), self._user_of(request)
        numbers = [int(number) for number in body["messages"]][:FORWARDS_MAX]
        sent = await user.forward(numbers, chat=body.get("chat"), to=body.get("to"))
        return web.json_response([self._state.view(message) for message in sent])

    def _user_of(self, request: web.Request) -> SimulatedUser:
        return SimulatedUser(self._state, self._state.users[int(request.match_info["person"])])


def _number(form: Any, name: str) -> int | None:
    value = str(form.get(name, ""))
    return int(value) if value else None
