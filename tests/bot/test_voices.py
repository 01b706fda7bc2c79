"""A voice message is a prompt: its text goes on as if the user had typed it, once."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genlock.bot.order import voices
from genlock.bot.order.request_keys import GroupKey, VoiceKey
from genlock.bot.rules import BotRules
from genlock.bot.storefront.storefront import code_of
from genlock.domain.field import FieldType
from genlock.domain.job import Job
from genlock.domain.money import HoldState
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.telegram.chats import Message
from tests.bot.groups import NAME, friends, seen
from tests.bot.order_by_chat import sample
from tests.bot.pages import label, page
from tests.bot.world import BotWorld, ChatUser, die_once, running_bot, sqlite_url
from tests.noon_clock import NoonClock
from tests.packaged import CATALOG

VOICE = sample(FieldType.AUDIO)
SPEECH_TO_TEXT = "elevenlabs/speech-to-text"
FREE = BotRules(free_transcriptions_per_day=2)


async def speak(ann: ChatUser, **more: Any) -> Message:
    return await ann.send("voice", VOICE, **more)


async def agree(ann: ChatUser) -> Job:
    """Have the newest voice message written down, and wait until the bot went on with its text."""
    async with ann.world.done(2):  # the press, and the update about the end
        await ann.tap(label("voice.agree", "voice.agree_free"))
    return await spoken(ann)


async def spoken(ann: ChatUser) -> Job:
    return next(job for job in await ann.world.jobs(ann) if job.request_key.startswith("voice:"))


def first_word(job: Job) -> str:
    return job.parts[0].value.split()[0]


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_a_voice_message_becomes_the_prompt_of_a_suggested_order(world: BotWorld, language: str) -> None:
    ann = await world.add_user(language=language)
    await ann.write("/start")
    await speak(ann)
    offer = await ann.sees(page("voice.offer", language=language))
    async with world.done(2):
        await ann.tap(label("voice.agree", language=language), on=offer)
    shown = await ann.sees(page("confirm.suggestion", language=language))
    job = await spoken(ann)
    assert job.hold_state is HoldState.CAPTURED
    assert job.price > 0
    assert first_word(job) in shown.text
    assert str(offer.id) == job.parts[0].message, "the offer has become the text"
    assert not any(page("order.done", language=language)(message) for message in ann.from_bot), (
        "the next order is the notice"
    )
    await ann.tap(label("button.generate", language=language), on=shown)
    await ann.sees(lambda message: message.kind == "photo")
    await world.quiet()
    assert await world.store.violations(settled=True) == []


async def test_pressing_twice_or_on_two_offers_writes_it_down_once(world: BotWorld) -> None:
    ann = await world.add_user()
    die_once(world.bot._messages._voices._view, "send", after=True)
    await speak(ann)  # handled again after a crash, it is offered twice
    first, second = [message for message in ann.from_bot if page("voice.offer")(message)]
    data = first.buttons[0]["callback_data"]
    async with world.done(2):
        await ann.press(first, data)
    await ann.press(second, data)
    await ann.press(first, data)
    assert len(await world.jobs(ann)) == 1
    assert sum(page("confirm.suggestion")(message) for message in ann.from_bot) == 1


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["sell", "_save"])
async def test_a_crash_orders_and_continues_once(world: BotWorld, step: str, *, after: bool) -> None:
    ann = await world.add_user()
    await speak(ann)
    if step == "sell":
        die_once(world.bot._messages._voices._seller, "sell", after=after)
    else:
        die_once(world.drafts, "save", after=after)
    job = await agree(ann)
    assert [listed_job.id for listed_job in await world.jobs(ann)] == [job.id]
    shown = [message for message in ann.from_bot if page("confirm.price")(message)]
    assert len(shown) == 1
    assert first_word(job) in shown[0].text


async def test_an_end_that_is_reported_again_continues_nothing_twice(world: BotWorld) -> None:
    ann = await world.add_user()
    await speak(ann)
    job = await agree(ann)
    before = world.recorder.settled
    for _ in range(2):
        await world.engine.ctx.end_handlers[world.bot_id](job)
    await ann.write("/balance")
    assert world.recorder.settled == before + 1, "only the command was handled"


async def test_a_spoken_answer_fills_the_question_of_an_order_in_progress(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await ann.press(ann.screen, f"model:{code_of('z-image')}:text-to-image")
    await speak(ann)
    job = await agree(ann)
    await ann.tap("1:1")
    shown = await ann.sees(page("confirm.price"))
    assert "Z-Image" in shown.text
    assert first_word(job) in shown.text


async def test_a_model_that_takes_sound_gets_the_recording(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await ann.press(ann.screen, f"model:{code_of(SPEECH_TO_TEXT)}:speech-to-text")
    await speak(ann)
    await ann.sees(page("confirm.price"))
    assert not any(page("voice.offer")(message) for message in ann.from_bot)


async def test_the_recording_itself_can_be_used(world: BotWorld) -> None:
    ann = await world.add_user()
    await speak(ann)
    offer = ann.screen
    await ann.tap(label("voice.as_file"))
    await ann.sees(page("misc.what_with_file"))
    assert offer.id not in [message.id for message in ann.from_bot], "the offer is gone"
    await speak(ann)
    offer = ann.screen
    await ann.tap(label("button.cancel"))
    assert offer.id not in [message.id for message in ann.from_bot]
    assert await world.jobs(ann) == []


async def test_a_failed_transcription_is_told_with_the_money(world: BotWorld) -> None:
    ann = await world.add_user()
    await speak(ann)
    world.kie.faults.order(Fault.TASK_MODERATED)
    await ann.tap(label("voice.agree"))
    await ann.sees(page("failed.notice"))
    assert await ann.available() == 1_000_000
    assert not any(page("confirm.price")(message) for message in ann.from_bot)


async def test_a_spoken_reply_edits_the_picture_that_it_answers(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/gen z-image a red fox")
    picture = await ann.sees(lambda message: message.kind == "photo")
    await world.quiet()
    await speak(ann, reply_to=picture)
    await agree(ann)
    shown = await ann.sees(page("confirm.price"))
    assert label("button.next_image_edit").search(shown.text)
    await ann.tap(label("button.generate"), on=shown)
    await world.quiet()
    drawn = next(job for job in await world.jobs(ann) if job.model == "z-image")
    assert drawn.parts[0].value in (await world.jobs(ann))[0].input


async def test_the_operator_pays_for_a_limited_number_a_day(tmp_path: Path) -> None:
    clock = NoonClock()
    async with running_bot(sqlite_url(tmp_path), rules=FREE, clock=clock) as world:
        world.telegram.state.clock = lambda: clock.now().timestamp()  # a recording counts for the day it was sent
        ann = await world.add_user(having=0)
        for _ in range(2):
            async with world.done(2):
                await ann.client.send("voice", VOICE)
            await ann.sees(page("confirm.price"))
        assert [job.price for job in await world.jobs(ann)] == [0, 0]
        await speak(ann)
        offer = await ann.sees(page("voice.offer"))
        assert page("confirm.short")(offer), "the third is paid for"
        assert len(await world.jobs(ann)) == 2

        bob = await world.add_user("Bob", having=0)
        die_once(world.bot._messages._voices._seller, "sell", after=True)
        async with world.done(2):
            await bob.client.send("voice", VOICE)
        assert len(await world.jobs(bob)) == 1, "handled again after a crash, it is ordered once"


async def test_the_operator_does_not_pay_for_long_recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voices, "FREE_SECONDS_MAX", 0.5)
    real = voices._recording
    async with running_bot(sqlite_url(tmp_path), rules=FREE) as world:
        ann = await world.add_user(having=0)
        await speak(ann)
        assert page("voice.offer")(await ann.sees(page("voice.offer"))), "it has a price"

        monkeypatch.setattr(voices, "_recording", lambda message: replace(real(message), seconds=0.4))
        await speak(ann)
        await ann.sees(page("refused.too_long"))
        assert await world.jobs(ann) == [], "the stated length does not count"


async def test_in_a_group_only_the_speaker_may_have_it_written_down(world: BotWorld) -> None:
    ann, bob, group = await friends(world)
    await ann.client.send("voice", VOICE, chat=group.id)  # not addressed to the bot
    await ann.write(f"/start{NAME}", chat=group.id)
    [menu] = seen(world, group)
    await speak(ann, chat=group.id, reply_to=menu)
    offer = seen(world, group)[-1]
    press = await bob.press(offer, offer.buttons[0]["callback_data"])
    assert page("order.not_your_menu")(press)
    async with world.done(2):
        await ann.press(offer, offer.buttons[0]["callback_data"])
    await ann.sees(page("confirm.suggestion"), chat=group.id)
    assert await world.jobs(bob) == []
    assert len(await world.jobs(ann)) == 1


async def test_a_deleted_recording_is_asked_for_again(world: BotWorld) -> None:
    ann = await world.add_user()
    sent = await speak(ann)
    await ann.client.delete(sent)
    press = await ann.tap(label("voice.agree"))
    assert page("voice.gone")(press)
    assert await world.jobs(ann) == []


async def test_without_a_model_for_speech_a_voice_message_is_a_file(tmp_path: Path) -> None:
    models = {name: model for name, model in CATALOG.models.items() if model.category.value != "speech-to-text"}
    steps = tuple(
        replace(step, models={k: v for k, v in step.models.items() if k in models}) for step in CATALOG.next_steps
    )
    async with running_bot(sqlite_url(tmp_path), catalog=replace(CATALOG, models=models, next_steps=steps)) as world:
        ann = await world.add_user()
        await speak(ann)
        assert page("misc.what_with_file")(ann.screen)


def test_the_request_keys_of_a_chat_are_read_back() -> None:
    voice = VoiceKey(chat=-100, message=7, replied=3)
    group = GroupKey(chat=5, version=9, count=4, index=2)
    assert VoiceKey.read(str(voice)) == voice
    assert GroupKey.read(str(group)) == group
    assert str(group) in group.all()
    for other in ("draft:1:2", "voice:1:2", "group:1:2:3", "voice:1:2:3:4", "group:x:1:2:3", "update:5"):
        assert VoiceKey.read(other) is None, other
        assert GroupKey.read(other) is None, other
