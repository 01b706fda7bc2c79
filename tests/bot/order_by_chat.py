"""Orders a model with given values through the chat: by tapping, writing and sending files."""

import asyncio
import io
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from PIL import Image

from genlock.bot.buttons import base36
from genlock.bot.order import draft as drafts
from genlock.bot.order import questions
from genlock.bot.order.draft import Draft, Step
from genlock.bot.storefront.storefront import code_of
from genlock.domain.catalog import NOTHING, Model
from genlock.domain.field import FILES, Field, FieldType
from genlock.domain.job import Delivery, Job
from genlock.sandbox.kie.media import make_audio, make_video
from genlock.sandbox.telegram.chats import Message
from tests.bot.world import ChatUser

PATIENCE_SECONDS = 60.0
STEPS_MAX = 120
#: a longer text may go on in the next message, and this client is quick
TEXT_MAX = 2000


@cache
def sample(kind: FieldType) -> bytes:
    if kind is FieldType.VIDEO:
        return make_video("A film", {}, 1)
    if kind is FieldType.AUDIO:
        return make_audio(1)
    file = io.BytesIO()
    Image.new("RGB", (64, 64), "teal").save(file, "PNG")
    return file.getvalue()


class ChatOrder:
    def __init__(self, user: ChatUser, model: Model, wanted: Mapping[str, Any], *, by_link: bool) -> None:
        self.user = user
        self.model = model
        self.wanted = {name: value for name, value in wanted.items() if name not in model.fixed}
        self.by_link = by_link
        self._recorder = user.world.recorder
        self.taps = 0
        self.texts = 0

    async def draft(self) -> Draft:
        store = self.user.world.store
        saved = await store.draft(self.user.number, self.user.client.id)
        return drafts.load(saved.body, version=saved.version, message=saved.message) if saved else Draft()

    async def _after(self, before: Draft) -> Draft:
        """The draft after the bot has handled the action and shows the result."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                settled = self._recorder.settled
                now = await self.draft()
                if now.version > before.version and (now.message is not None or now.step is Step.ORDERED):
                    return now
                assert not self.user.world.intake.failures, self.user.world.intake.failures
                await self._recorder.more(lambda: self._recorder.settled, than=settled)

    async def press(self, verb: str, *args: object) -> Draft:
        """Tap a button of the draft, found by its callback data."""
        end = ":".join(("", verb, *map(str, args)))
        before, message = await self._screen(lambda data: data.endswith(end) or ":turn:" in data)
        while not (found := [button for button in message.buttons if button["callback_data"].endswith(end)]):
            turns = [button for button in message.buttons if ":turn:" in button["callback_data"]]
            await self._press(message, turns[-1]["callback_data"])
            await self._after(before)
            before, message = await self._screen(lambda data: data.endswith(end) or ":turn:" in data)
        await self._press(message, found[0]["callback_data"])
        return await self._after(before)

    async def _screen(self, wanted: Callable[[str], bool]) -> tuple[Draft, Message]:
        """The message that shows the current version of the draft and has a wanted button."""
        shown: list[str] = []
        for _ in range(1000):
            settled = self._recorder.settled
            now = await self.draft()
            mark = f"w:{base36(now.version)}:"
            for message in self.user.client.messages:
                shown = [button.get("callback_data", "") for button in message.buttons]
                if message.id == now.message and any(data.startswith(mark) for data in shown):
                    assert any(map(wanted, shown)), f"{self.model.id}: {shown}"
                    return now, message
            await self._recorder.more(lambda: self._recorder.settled, than=settled)
        raise AssertionError(f"{self.model.id}: no screen, but {shown}")

    async def _press(self, message: Any, data: str) -> None:
        self.taps += 1
        await self.user.client.press(message, data)

    async def write(self, text: str) -> Draft:
        before = await self.draft()
        self.texts += 1
        await self.user.client.say(text)
        return await self._after(before)

    async def send(self, kind: FieldType, count: int) -> Draft:
        client, now = self.user.client, await self.draft()
        if kind is FieldType.IMAGE and count > 1:
            before = now
            await client.send_album([sample(kind)] * count)
            for _ in range(count):
                now = before = await self._after(before)
            return now
        send = {
            FieldType.IMAGE: client.send_photo,
            FieldType.VIDEO: client.send_video,
            FieldType.AUDIO: client.send_audio,
        }[kind]
        for _ in range(count):
            before = now
            await send(sample(kind))
            now = await self._after(before)
        return now

    async def order(self) -> Job:
        now = await self.write(f"/models {self.model.title}")
        now, message = await self._screen(lambda data: data.startswith("model:"))
        wanted = f"model:{code_of(self.model.id)}:"
        exact = [button for button in message.buttons if button["callback_data"].startswith(wanted)]
        assert exact, [button["text"] for button in message.buttons]
        await self._press(message, exact[0]["callback_data"])
        now = await self._after(now)
        changed: set[str] = set()
        for _ in range(STEPS_MAX):
            if now.step in (Step.ASK, Step.EDIT):
                now = await self._answer(now)
            elif now.step is Step.CONFIRM and (left := self._left(now, changed)):
                now = await self.press("options")
            elif now.step is Step.OPTIONS and (left := self._left(now, changed)):
                changed.add(left[0].name)
                now = await self.press("edit", self.model.fields.index(left[0]))
            elif now.step is Step.OPTIONS:
                assert now.problem is None, (self.model.id, now.problem)
                now = await self.press("done")
            else:
                break
        assert now.step is Step.CONFIRM, (self.model.id, now)
        now = await self.press("go")
        assert now.job is not None
        return await self._ended(now.job)

    def _left(self, now: Draft, changed: set[str]) -> list[Field]:
        return [
            field
            for field in self.model.fields
            if field.name in self.wanted
            and field.name not in changed
            and field.name not in now.values
            and self.wanted[field.name] not in (field.default, *NOTHING)
        ]

    async def _answer(self, now: Draft) -> Draft:
        field = self.model.field(now.field)
        assert field is not None
        assert now.problem is None, (self.model.id, now.field, now.problem)
        value = self.wanted.get(field.name)
        if value in NOTHING:
            return await self.press("rest" if questions.choices_of(field) and now.step is Step.ASK else "skip")
        if field.type in FILES:
            return await self._give_files(field, value)
        if choices := questions.choices_of(field):
            return await self.press("pick", list(choices).index(value))
        return await self.write(_typed(field, value))

    async def _give_files(self, field: Field, value: Any) -> Draft:
        count = len(value) if isinstance(value, list) else 1
        if self.by_link:
            now = await self.write(" ".join(value) if isinstance(value, list) else str(value))
        else:
            now = await self.send(field.type, count)
        return await self.press("skip") if now.field == field.name else now

    async def _ended(self, job_id: int) -> Job:
        store = self.user.world.store
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                ended = self._recorder.deliveries_ended
                job = await store.job(job_id)
                assert job is not None
                if job.delivery in (Delivery.DELIVERED, Delivery.UNDELIVERABLE, Delivery.UNKNOWN):
                    return job
                await self._recorder.more(lambda: self._recorder.deliveries_ended, than=ended)


def _typed(field: Field, value: Any) -> str:
    if field.type is FieldType.OBJECTS:
        return json.dumps(value)
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return str(value)
