"""Inline mode: a user's own results are shared in any chat, and a text typed there becomes an order."""

import json
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from genlock.bot.handlers import inline
from genlock.bot.handlers.inline import PAYLOAD_BYTES, read_payload, text_payload
from genlock.bot.rules import BotRules
from genlock.channels.telegram.update_sources import ALLOWED_UPDATES, allowed_updates
from genlock.domain.job import Job
from genlock.sandbox.telegram.simulated_user import NotInChat
from tests.bot.groups import friends, seen
from tests.bot.pages import label, page
from tests.bot.world import BotWorld, running_bot, sqlite_url


async def test_the_newest_results_are_offered_and_shared_in_any_chat(world: BotWorld) -> None:
    ann, bob, group = await friends(world)
    for prompt in ("a red fox", "a blue whale"):
        await ann.write(f"/gen z-image {prompt}")
        await world.quiet()
    found = await ann.client.inline("", chat=group.id)
    photos = {message.file_id for message in ann.from_bot if message.kind == "photo"}
    assert {result["photo_file_id"] for result in found.results} == photos
    assert found.button == {"text": found.button["text"], "start_parameter": "inline"}  # type: ignore[index]
    foxes = await ann.client.inline("red fo", chat=group.id)
    assert [result["title"] for result in foxes.results] == ["a red fox", "a blue whale"], "what fits comes first"

    shared = await ann.client.share(foxes, foxes.results[0]["id"], chat=group.id)
    assert shared.kind == "photo"
    assert f"@{world.bot._bundle.username}" in shared.text
    await ann.write("/balance")
    assert seen(world, group) == [], "the bot does not answer what was shared"

    async with world.done():
        await ann.client.share(foxes, foxes.results[0]["id"])
    assert page("misc.what_with_file")(await ann.sees(page("misc.what_with_file"))), "our caption is no prompt"

    others = await bob.client.inline("red fox", chat=group.id)
    assert others.results == [], "users see only their own"


async def test_a_text_typed_in_another_chat_becomes_a_suggested_order(world: BotWorld) -> None:
    ann = await world.add_user()
    for language, text in (("en", "a cat in space"), ("ru", "кот в космосе, акварель")):
        ann = await world.add_user(language, language=language)
        found = await ann.client.inline(text)
        assert found.button is not None
        assert text in found.button["text"]
        await ann.write(f"/start {found.button['start_parameter']}")
        shown = await ann.sees(page("confirm.suggestion", language=language))
        assert text in shown.text
        await ann.tap(label("button.generate", language=language), on=shown)
        await ann.sees(lambda message: message.kind == "photo")
    long = "a very long description of a picture that does not fit into a start parameter"
    found = await ann.client.inline(long)
    assert found.button is not None
    await ann.write(f"/start {found.button['start_parameter']}")
    await ann.sees(page("inline.cut", language="ru"))
    assert "a very long description of a picture" in (await ann.sees(page("confirm.price", language="ru"))).text


async def test_keystrokes_cost_one_answer_and_one_read_and_store_nothing(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/gen z-image a red fox")
    await world.quiet()
    reads = 0
    real = world.store.jobs

    async def counted(**query: object) -> object:
        nonlocal reads
        reads += 1
        return await real(**query)  # type: ignore[arg-type]

    world.bot._inline._store.jobs = counted  # type: ignore[method-assign,assignment]
    settled = world.recorder.settled
    word = "a cat in space"
    asked = [ann.client.type_inline(word[:count]) for count in range(1, len(word) + 1)]
    last = await ann.client.inline(word)
    assert last.answered
    assert reads == 1
    assert sum(query.answered for query in asked) < len(asked), "what is typed meanwhile is answered once"
    assert world.recorder.settled == settled, "nothing went through the queue"


async def test_an_instance_keeps_little_of_users_who_type_and_for_seconds(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = await world.add_user(), await world.add_user("Bob")
    for user in (ann, bob):
        await user.write("/gen z-image a red fox")
    await world.quiet()
    real = world.store.jobs

    async def with_long_inputs(**query: Any) -> list[Job]:
        long = json.dumps({"prompt": "fox " * 50_000})
        [job] = await real(**query)
        return [replace(job, id=number, input=long) for number in range(1, 31)]

    monkeypatch.setattr(world.bot._inline._store, "jobs", with_long_inputs)
    inline_queries = world.bot._inline
    assert len((await ann.client.inline("fox")).results) > 0
    assert len(repr([shared.files for shared in inline_queries._shared.values()])) < 100_000

    seconds = monotonic()
    monkeypatch.setattr(inline, "monotonic", lambda: seconds + 2 * inline.CACHE_SECONDS)
    await bob.client.inline("fox")
    assert list(inline_queries._shared) == [bob.client.id]


async def test_who_has_never_written_to_the_bot_gets_only_the_button_and_no_account(world: BotWorld) -> None:
    newcomer = world.telegram.add_user("Newcomer", started=False)
    found = await newcomer.inline("a cat")
    assert found.results == []
    assert found.button is not None
    assert await world.store.known_profile("telegram", world.bot_id, str(newcomer.id)) is None

    ann = await world.add_user()
    await ann.write("/gen z-image a fox")
    await world.quiet()
    await world.store.set_ban(ann.number, banned=True, reason="")
    assert (await ann.client.inline("a fox")).results == []


async def test_inline_mode_can_be_switched_off(tmp_path: Path) -> None:
    assert "inline_query" not in ALLOWED_UPDATES
    assert "inline_query" not in allowed_updates(inline=False)
    async with running_bot(sqlite_url(tmp_path), rules=BotRules(inline_mode=False)) as world:
        ann = await world.add_user()
        with pytest.raises(NotInChat):
            await ann.client.inline("a cat", seconds=0.5)


def test_texts_survive_the_start_parameter() -> None:
    for text in (
        "a cat",
        "кот в космосе",
        "x" * PAYLOAD_BYTES,
        "猫と宇宙",
        "naïve café",
        "🦊 лиса",
        " spaces   inside ",
    ):
        payload = text_payload(text)
        assert len(payload) <= 64, text
        assert payload.replace("-", "").replace("_", "").isalnum(), text
        assert read_payload(payload) == (" ".join(text.split()), False), text
    for text in ("слово " * 30, "y" * 300, "🦊" * 40):
        payload = text_payload(text)
        assert len(payload) <= 64, text
        words, cut = read_payload(payload) or ("", False)
        assert cut, text
        assert words, text
        assert text.startswith(words), text
    for wrong in ("", "t_", "t_1", "t_9AAAA", "t_8%%%", "t_8_w", "p_CODE", "topup", "t_8AAAA"):
        assert read_payload(wrong) is None, wrong
