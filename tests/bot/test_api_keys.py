"""`/api` in the chat: a key for the user's own programs, shown once, listed and revoked."""

import os
import re
from dataclasses import replace
from pathlib import Path

from genlock.domain.api_key import ALL_SCOPES, SHOWN_LENGTH, hash_api_secret, is_well_formed
from genlock.engine.api_keys import create_api_key
from genlock.stores.sqlite import SqliteStore
from tests.bot.pages import heading_of, label, page
from tests.bot.world import USUAL_RULES, BotWorld, ChatUser, die_once, running_bot, sqlite_url


def shown_secrets(ann: ChatUser) -> set[str]:
    words: list[str] = re.findall(r"glk_\w+", ann.screen.text or "")
    return {word for word in words if is_well_formed(word)}


async def new_secret(ann: ChatUser) -> str:
    await ann.write("/api")
    await ann.tap(label("api.create"))
    await ann.sees(page("api.made"))
    [secret] = shown_secrets(ann)
    return secret


async def test_a_user_makes_a_key_sees_it_listed_and_revokes_it(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/api")
    await ann.sees(page("api.none"))
    secret = await new_secret(ann)

    key = await world.store.api_key_by_secret(hash_api_secret(secret))
    assert key is not None
    assert key.account_id == ann.number
    await ann.tap(label("api.all"))
    await ann.sees(f"{key.shown}…")
    assert secret not in (ann.screen.text or "")
    await ann.tap(label("api.revoke", key=f"{key.shown}…"))
    assert await world.store.api_key_by_secret(hash_api_secret(secret)) is not None  # not before the confirmation
    await ann.tap(label("api.revoke_yes"))
    await ann.sees(page("api.revoked"))
    assert await world.store.api_key_by_secret(hash_api_secret(secret)) is None


async def test_the_message_with_a_key_stays_until_the_user_deletes_it(world: BotWorld) -> None:
    """It is the only copy: the next screen must not remove it."""
    ann = await world.add_user()
    secret = await new_secret(ann)
    shown = ann.screen
    for command in ("/start", "/api", "/gen z-image a fox"):
        await ann.write(command)
    await ann.tap(label("api.all"), on=shown)
    await ann.tap(label("button.menu"), on=shown)
    assert shown in ann.client.messages
    assert secret in shown.text


async def test_a_key_of_another_user_cannot_be_revoked(world: BotWorld) -> None:
    ann, bob = await world.add_user("Ann"), await world.add_user("Bob")
    secret = await new_secret(ann)
    key = await world.store.api_key_by_secret(hash_api_secret(secret))
    assert key is not None

    assert await world.store.revoke_api_key(key.id, bob.number) is None
    assert await world.store.api_key_by_secret(hash_api_secret(secret)) is not None


async def test_a_press_that_is_handled_again_after_a_crash_makes_one_key_and_shows_it(world: BotWorld) -> None:
    ann = await world.add_user()
    die_once(world.store, "add_api_key", after=True)
    await ann.write("/api")
    await ann.tap(label("api.create"))
    await ann.sees(page("api.made"))

    [key] = await world.store.api_keys(ann.number, before=None, limit=10)
    [secret] = shown_secrets(ann)
    assert await world.store.api_key_by_secret(hash_api_secret(secret)) is not None
    assert secret.startswith(key.shown)


async def test_a_user_has_at_most_five_keys(world: BotWorld) -> None:
    ann = await world.add_user()
    for _ in range(5):
        await new_secret(ann)
    await ann.write("/api")
    keys = await world.store.api_keys(ann.number, before=None, limit=10)

    await ann.sees(f"{keys[0].shown}…")
    await ann.press(ann.screen, "apinew")
    await ann.sees(page("api.too_many"))
    assert len(await world.store.api_keys(ann.number, before=None, limit=10)) == 5


async def test_the_database_never_holds_a_key(world: BotWorld) -> None:
    """Telegram sends a message back with every press of its buttons, and with replies to it."""
    ann = await world.add_user()
    secret = await new_secret(ann)
    await ann.tap(label("api.all"))
    await ann.write(f"a cat with a sign that says {secret}")

    assert isinstance(world.store, SqliteStore)
    stored = "".join(world.store.session.connection.iterdump())
    assert heading_of("api.made") in stored
    assert secret not in stored
    assert secret[:SHOWN_LENGTH] in stored


async def test_a_key_is_listed_and_counted_however_many_were_made_since(world: BotWorld) -> None:
    ann = await world.add_user()
    for _ in range(5):
        await new_secret(ann)
    oldest = (await world.store.api_keys(ann.number, before=None, limit=10))[-1]
    for number in range(101):
        key, _ = await create_api_key(
            world.store,
            ann.number,
            name="made and revoked",
            scopes=ALL_SCOPES,
            spend_limit=None,
            request_key=f"request-{number}",
            author="test",
            random_bytes=os.urandom,
        )
        await world.store.revoke_api_key(key.id)
    await ann.write("/api")

    await ann.sees(f"{oldest.shown}…")
    await ann.press(ann.screen, "apinew")
    await ann.sees(page("api.too_many"))
    assert sum(key.revoked_at is None for key in await world.store.api_keys(ann.number, before=None, limit=200)) == 5


async def test_the_api_is_offered_only_where_programs_can_reach_it(world: BotWorld, tmp_path: Path) -> None:
    async def offers(shown: BotWorld) -> tuple[bool, bool]:
        """Return whether Telegram's list of commands and the help name /api."""
        await shown.bot.start()
        ann = await shown.add_user()
        await ann.write("/help")
        [first, *_] = shown.telegram.calls("setMyCommands")
        return any(command["command"] == "api" for command in first.arguments["commands"]), "/api" in ann.from_bot[
            -1
        ].text

    assert await offers(world) == (True, True)
    (folder := tmp_path / "closed").mkdir()
    async with running_bot(sqlite_url(folder), rules=replace(USUAL_RULES, api_url="")) as closed:
        assert await offers(closed) == (False, False)
        olya = await closed.add_user("Olya", language="ru")
        await olya.write("/api")
        assert page("api.off", language="ru")(olya.from_bot[-1])


async def test_a_key_can_be_revoked_after_the_api_was_closed(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=replace(USUAL_RULES, api_url="")) as closed:
        ann = await closed.add_user()
        await ann.write("/start")
        key, _ = await create_api_key(
            closed.store,
            ann.number,
            name="chat",
            scopes=ALL_SCOPES,
            spend_limit=None,
            request_key="made before",
            author="test",
            random_bytes=os.urandom,
        )
        await ann.write("/api")
        await ann.sees(page("api.off"))
        await ann.sees(f"{key.shown}…")
        await ann.press(ann.screen, "apinew")
        await ann.tap(label("api.revoke", key=f"{key.shown}…"))
        await ann.tap(label("api.revoke_yes"))
        await ann.sees(page("api.revoked"))

        [revoked] = await closed.store.api_keys(ann.number, before=None, limit=10)
        assert revoked.revoked_at is not None
