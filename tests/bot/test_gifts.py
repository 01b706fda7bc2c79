"""Gifts: welcome credit, free runs, invitations, promo codes. Each once."""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from genlock.bot.buttons import base36
from genlock.domain.events import Event
from genlock.domain.promo import Promo
from genlock.sandbox.kie.faults import Fault
from genlock.stores.postgres import PostgresStore
from genlock.stores.rows import Row
from tests.bot.pages import EN, label, page
from tests.bot.rules import OPEN, with_free
from tests.bot.steps import bought
from tests.bot.world import BotWorld, die_once, running_bot, sqlite_url
from tests.noon_clock import NoonClock
from tests.stores.builders import ensure_profile


@pytest.mark.parametrize(
    ("inviter", "invited", "told"),
    [
        (7000, 3000, "You get 7\u00a0credits and your friend gets 3\u00a0credits as soon as"),
        (7000, 0, "You get 7\u00a0credits as soon as your friend"),
        (0, 3000, "Your friend gets 3\u00a0credits as soon as"),
        (0, 0, "Invite your friends"),
    ],
)
async def test_an_invitation_promises_what_it_brings(tmp_path: Path, inviter: int, invited: int, told: str) -> None:
    rules = replace(OPEN, reward_inviter=inviter, reward_invited=invited)
    async with running_bot(sqlite_url(tmp_path), rules=rules) as world:
        ann = await world.add_user()
        await ann.write("/invite")
        shown = await ann.sees(page("invite.link"))

        assert told in shown.text
        assert " 0\u00a0credits" not in shown.text
        assert shown.buttons[0]["url"].startswith(
            "https://t.me/share/url?url=https%3A%2F%2Ft.me%2Fsandbox_bot%3Fstart%3Dr"
        )


async def test_free_runs_are_told_where_there_is_something_free(tmp_path: Path) -> None:
    gift = Promo(code="THREERUNS", amount=0, runs=3, uses_max=None, per_account=1, until=None)
    rules = replace(OPEN, free_per_day=2)
    async with running_bot(sqlite_url(tmp_path), rules=rules, catalog=with_free("z-image")) as world:
        ann = await world.add_user()
        await ann.write("/balance")
        assert page("menu.free_today", n=2)(ann.screen)
        await world.store.create_promo(gift, lasting=None, author="op")
        await ann.write("/promo threeruns")
        assert page("menu.free_left", n=5)(ann.screen), "those that were given do not end with the day"
    async with running_bot(f"sqlite:///{tmp_path / 'other.db'}", rules=rules) as world:
        ann = await world.add_user("Bob")
        await ann.write("/balance")
        assert not page("menu.free_left")(ann.screen)
        assert not page("menu.free_today")(ann.screen)


async def test_newcomers_are_welcomed_with_credit_once(database_url: str) -> None:
    async with running_bot(database_url, rules=replace(OPEN, welcome=5000)) as world:
        ann = await world.add_user(having=0)
        await ann.write("/start")
        await ann.sees(page("menu.welcome_gift", credits="5\u00a0credits"))
        await ann.write("/start")
        bob = await world.add_user("Bob", having=0)
        await bob.write("a fox")

        assert await ann.available() == 5000
        assert await bob.available() == 5000


async def test_a_newcomers_credit_is_not_lost_in_a_crash(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=replace(OPEN, welcome=5000)) as world:
        ann = await world.add_user(having=0)
        die_once(world.store, "ensure_profile_and_draft", after=True)
        await ann.write("a fox")

        assert len(world.recorder.of(Event.UPDATE_FAIL)) == 1
        assert await ann.available() == 5000


async def test_a_newcomers_credit_is_not_lost_with_the_answer_of_the_database(
    migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement that stored the profile is repeated, and then finds it."""
    async with running_bot(migrated_postgres_url, rules=replace(OPEN, welcome=5000)) as world:
        ann = await world.add_user(having=0)
        assert isinstance(world.store, PostgresStore)
        session = world.store.session
        attempt = session._try

        async def lose_an_answer(text: str, values: list[Any]) -> list[Row]:
            rows = await attempt(text, values)
            if "INSERT INTO profiles" in text:
                monkeypatch.setattr(session, "_try", attempt)
                raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
            return rows

        monkeypatch.setattr(session, "_try", lose_an_answer)
        await ann.write("a fox")

        assert await ann.available() == 5000


async def test_a_repeated_update_of_an_old_user_brings_no_welcome_credit(tmp_path: Path) -> None:
    """The operator has given a welcome credit only since today."""
    url = sqlite_url(tmp_path)
    async with running_bot(url, rules=replace(OPEN, welcome=5000)) as world:
        ann = await world.add_user(having=0)
        await ensure_profile(world.store, ann.number, language="en", name="Ann", username="ann")
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as database:
            database.execute("UPDATE profiles SET created_at = created_at - 2 * 86400 * 1000000")
        die_once(world.store, "ensure_profile_and_draft", after=True)
        await ann.write("a fox")

        assert len(world.recorder.of(Event.UPDATE_FAIL)) == 1
        assert await ann.available() == 0


async def test_models_marked_free_are_free_so_often_a_day(database_url: str) -> None:
    rules, catalog = replace(OPEN, free_per_day=2), with_free("z-image")
    async with running_bot(database_url, rules=rules, catalog=catalog, clock=NoonClock()) as world:
        ann = await world.add_user(having=1)
        for number in range(2):
            await ann.write(f"fox {number}")
            await ann.sees(page("confirm.price_free"))
            await ann.tap(label("button.generate_free"))
            await ann.sees(page("order.done_free", code=f"#{number + 1}"))
        assert await ann.available() == 1000
        await ann.write("fox 3")
        await ann.sees(page("confirm.price", price="0.8\u00a0credits"))
        assert await world.store.violations(settled=False) == []


async def test_a_free_run_that_failed_is_not_lost(tmp_path: Path) -> None:
    async with running_bot(
        sqlite_url(tmp_path), rules=replace(OPEN, free_per_day=1), catalog=with_free("z-image")
    ) as world:
        ann = await world.add_user(having=0)
        world.kie.faults.order(Fault.TASK_FAIL)
        await ann.write("a fox")
        await ann.tap(label("button.generate_free"))
        await ann.sees(page("failed.head"))
        await ann.write("a fox")
        await ann.tap(label("button.generate_free"))
        await ann.sees(page("order.done"))
        assert [job.has_result for job in await world.jobs(ann)] == [True, False]


async def test_an_invitation_is_rewarded_after_the_first_result_and_money_of_the_guests_own(database_url: str) -> None:
    rules = replace(OPEN, reward_inviter=7000, reward_invited=3000)
    async with running_bot(database_url, rules=rules) as world:
        ann = await world.add_user("Ann", having=0)
        await ann.write("/invite")
        shown = await ann.sees(page("invite.link"))
        payload = shown.text.rpartition("start=")[2]
        bob = await world.add_user("Bob", having=10)
        await bob.write(f"/start {payload}")
        await bob.write("/start")
        assert await world.bot.reward() == 0
        await bob.write("/gen z-image a fox")
        await bob.sees(page("order.done"))
        assert await world.bot.reward() == 0  # what gifts have paid for brings no gifts
        await bought(bob)
        await asyncio.gather(*(world.bot.reward() for _ in range(5)))

        assert await ann.available() == 7000
        assert await bob.available() == 10_000 - 800 + 120_000 + 3000
        await ann.sees(page("invite.rewarded_inviter", credits="7\u00a0credits"))
        await bob.sees(page("invite.rewarded_invited", credits="3\u00a0credits"))
        assert len([message for message in ann.from_bot if page("invite.rewarded_inviter")(message)]) == 1
        assert await world.bot.reward() == 0


async def test_users_cannot_invite_themselves_or_older_users(world: BotWorld) -> None:
    ann, bob = await world.add_user("Ann"), await world.add_user("Bob")
    await ann.write("/start")
    await bob.write("/start")
    cid, dora = await world.add_user("Cid"), await world.add_user("Dora")
    for guest, host in ((ann, bob), (bob, ann), (cid, cid), (dora, ann)):
        await guest.write(f"/start r{base36(host.number)}")

    users = (ann, bob, cid, dora)
    assert [(await world.store.profile(user.number)).referred_by for user in users] == [None, None, None, ann.number]


async def test_promo_codes_cannot_be_guessed(database_url: str) -> None:
    async with running_bot(database_url, rules=OPEN) as world:
        await world.store.create_promo(
            Promo(code="SECRET", amount=5000, runs=0, uses_max=None, per_account=1, until=None),
            lasting=None,
            author="op",
        )
        ann, bob = await world.add_user("Ann", having=0), await world.add_user("Bob", language="ru", having=0)
        for number in range(10):
            await ann.write(f"/promo guess{number}")
            assert page("promo.unknown")(ann.screen)
        for guess in ("/promo secret", "/start p_SECRET"):
            await ann.write(guess)
            assert page("limit.codes")(ann.screen)
        assert await ann.available() == 0
        await bob.write("/promo secret")

        assert await bob.available() == 5000


async def test_a_promo_code_whose_instance_died_before_its_credit_is_credited_though_no_more_may_be_tried(
    database_url: str,
) -> None:
    async with running_bot(database_url, rules=OPEN) as world:
        await world.store.create_promo(
            Promo(code="SECRET", amount=5000, runs=0, uses_max=None, per_account=1, until=None),
            lasting=None,
            author="op",
        )
        ann = await world.add_user(having=0)
        for number in range(9):
            await ann.write(f"/promo guess{number}")
        die_once(world.store, "use_promo", after=True)
        await ann.write("/promo secret")
        await ann.sees(page("promo.done_credits", credits="5\u00a0credits"))
        await ann.write("/promo secret")

        assert page("limit.codes")(ann.screen)
        assert await ann.available() == 5000


async def test_a_guess_that_was_refused_is_not_made_when_its_update_is_tried_again(world: BotWorld) -> None:
    await world.store.create_promo(
        Promo(code="SECRET", amount=5000, runs=0, uses_max=None, per_account=1, until=None), lasting=None, author="op"
    )
    ann = await world.add_user(having=0)
    for number in range(10):
        await ann.write(f"/promo guess{number}")
    die_once(world.drafts, "show", after=False)
    await ann.write("/promo secret")

    assert page("limit.codes")(ann.screen)
    assert await ann.available() == 0


async def test_promo_codes_give_credits_or_runs_and_say_why_not(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    await world.store.create_promo(
        Promo(code="CAT", amount=5000, runs=0, uses_max=1, per_account=1, until=None), lasting=None, author="op"
    )
    await world.store.create_promo(
        Promo(code="RUNS", amount=0, runs=3, uses_max=None, per_account=1, until=None), lasting=None, author="op"
    )
    await ann.write("/promo cat")
    await ann.sees(page("promo.done_credits", credits="5\u00a0credits"))
    await ann.write("/promo CAT")
    await ann.sees(page("promo.used"))
    await ann.write("/balance")
    await ann.sees(page("balance.line", amount="+5", what=EN.plain("balance.promo")))
    await ann.tap(label("button.promo"))
    await ann.sees(page("promo.ask"))
    await ann.write("dog")
    await ann.sees(page("promo.unknown"))
    await ann.write("runs")
    await ann.sees(page("promo.done_runs", runs=EN.plain("unit.runs", n=3)))
    bob = await world.add_user("Bob", having=0)
    await bob.write("/start p_CAT")
    await bob.sees(page("promo.unknown"))

    assert await ann.available() == 5000
