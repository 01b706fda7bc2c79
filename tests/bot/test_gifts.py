"""Gifts: welcome credit, free runs, invitations, promo codes. Each once."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from genlock.bot.buttons import base36
from genlock.domain.catalog import Catalog
from genlock.domain.promo import Promo
from genlock.sandbox.kie.faults import Fault
from tests.bot.test_money import OPEN, bought
from tests.bot.world import CATALOG, Town, die_once, sqlite_url, town


@pytest.mark.parametrize(
    ("inviter", "invited", "told"),
    [
        (7000, 3000, "You get 7 credits and your friend gets 3 credits as soon as"),
        (7000, 0, "You get 7 credits as soon as your friend"),
        (0, 3000, "Your friend gets 3 credits as soon as"),
        (0, 0, "Send your friends here"),
    ],
)
async def test_an_invitation_promises_what_it_brings(tmp_path: Path, inviter: int, invited: int, told: str) -> None:
    rules = replace(OPEN, reward_inviter=inviter, reward_invited=invited)
    async with town(sqlite_url(tmp_path), rules=rules) as here:
        ann = await here.person()
        await ann.say("/invite")
        page = await ann.sees("Your link:")

        assert told in page.text
        assert " 0 credits" not in page.text
        assert page.buttons[0]["url"].startswith(
            "https://t.me/share/url?url=https%3A%2F%2Ft.me%2Fsandbox_bot%3Fstart%3Dr"
        )


async def test_free_runs_are_told_where_there_is_something_free(tmp_path: Path) -> None:
    gift = Promo(code="THREERUNS", amount=0, runs=3, uses_max=None, per_account=1, until=None)
    rules = replace(OPEN, free_per_day=2)
    async with town(sqlite_url(tmp_path), rules=rules, catalog=with_free("z-image")) as here:
        ann = await here.person()
        await ann.say("/balance")
        assert "Free runs left today: 2" in ann.screen.text
        await here.store.create_promo(gift, lasting=None, author="op")
        await ann.say("/promo threeruns")
        assert "Free runs left: 5" in ann.screen.text, "those that were given do not end with the day"
    async with town(sqlite_url(tmp_path), rules=rules) as here:
        ann = await here.person("Bob")
        await ann.say("/balance")
        assert "Free runs" not in ann.screen.text


async def test_newcomers_are_welcomed_with_credit_once(database_url: str) -> None:
    async with town(database_url, rules=replace(OPEN, welcome=5000)) as here:
        ann = await here.person(having=0)
        await ann.say("/start")
        await ann.sees("A gift to begin with: 5 credits")
        await ann.say("/start")
        bob = await here.person("Bob", having=0)
        await bob.say("a fox")

        assert await ann.available() == 5000
        assert await bob.available() == 5000


async def test_a_newcomers_credit_is_not_lost_in_a_crash(tmp_path: Path) -> None:
    async with town(sqlite_url(tmp_path), rules=replace(OPEN, welcome=5000)) as here:
        here.postman.patient = True
        ann = await here.person(having=0)
        die_once(here.store, "ensure_profile", after=True)
        await ann.say("a fox")

        assert await ann.available() == 5000


def with_free(*ids: str) -> Catalog:
    return Catalog(models={name: replace(model, free=name in ids) for name, model in CATALOG.models.items()})


async def test_models_marked_free_are_free_so_often_a_day(database_url: str) -> None:
    async with town(database_url, rules=replace(OPEN, free_per_day=2), catalog=with_free("z-image")) as here:
        ann = await here.person(having=1)
        for number in range(2):
            await ann.say(f"fox {number}")
            await ann.sees("Price: free")
            await ann.tap("Generate · free")
            await ann.sees(f"#{number + 1} · free")
        assert await ann.available() == 1000
        await ann.say("fox 3")
        await ann.sees("Price: 0.8 credits")
        assert await here.store.violations(settled=False) == []


async def test_a_free_run_that_failed_is_not_lost(tmp_path: Path) -> None:
    async with town(sqlite_url(tmp_path), rules=replace(OPEN, free_per_day=1), catalog=with_free("z-image")) as here:
        ann = await here.person(having=0)
        here.kie.faults.order(Fault.TASK_FAIL)
        await ann.say("a fox")
        await ann.tap("Generate · free")
        await ann.sees("did not work out")
        await ann.say("a fox")
        await ann.tap("Generate · free")
        await ann.sees("Generation complete")


async def test_an_invitation_is_rewarded_after_the_first_result_and_money_of_the_guests_own(database_url: str) -> None:
    rules = replace(OPEN, reward_inviter=7000, reward_invited=3000)
    async with town(database_url, rules=rules) as here:
        ann = await here.person("Ann", having=0)
        await ann.say("/invite")
        page = await ann.sees("Your link:")
        payload = page.text.rpartition("start=")[2]
        bob = await here.person("Bob", having=10)
        await bob.say(f"/start {payload}")
        await bob.say("/start")
        assert await here.bot.reward() == 0
        await bob.say("/gen z-image a fox")
        await bob.sees("Generation complete")
        assert await here.bot.reward() == 0  # what gifts have paid for brings no gifts
        await bought(bob)
        await asyncio.gather(*(here.bot.reward() for _ in range(5)))

        assert await ann.available() == 7000
        assert await bob.available() == 10_000 - 800 + 120_000 + 3000
        await ann.sees("7 credits for you!")
        await bob.sees("3 credits for you,")
        assert len([message for message in ann.from_bot if "for you!" in message.text]) == 1
        assert await here.bot.reward() == 0


async def test_nobody_invites_themselves_or_those_who_were_here(here: Town) -> None:
    ann, bob = await here.person("Ann"), await here.person("Bob")
    await ann.say("/start")
    await bob.say("/start")
    cid, dora = await here.person("Cid"), await here.person("Dora")
    for guest, host in ((ann, bob), (bob, ann), (cid, cid), (dora, ann)):
        await guest.say(f"/start r{base36(host.number)}")

    people = (ann, bob, cid, dora)
    assert [(await here.store.profile(one.number)).referred_by for one in people] == [None, None, None, ann.number]


async def test_promo_codes_cannot_be_guessed(database_url: str) -> None:
    async with town(database_url, rules=OPEN) as here:
        await here.store.create_promo(
            Promo(code="SECRET", amount=5000, runs=0, uses_max=None, per_account=1, until=None),
            lasting=None,
            author="op",
        )
        ann, bob = await here.person("Ann", having=0), await here.person("Bob", language="ru", having=0)
        for number in range(10):
            await ann.say(f"/promo guess{number}")
            assert "There is no such promo code" in ann.screen.text
        for guess in ("/promo secret", "/start p_SECRET"):
            await ann.say(guess)
            assert "You can try another in " in ann.screen.text
        assert await ann.available() == 0
        await bob.say("/promo secret")

        assert await bob.available() == 5000


async def test_a_promo_code_whose_instance_died_before_its_credit_is_credited_though_no_more_may_be_tried(
    database_url: str,
) -> None:
    async with town(database_url, rules=OPEN) as here:
        here.postman.patient = True
        await here.store.create_promo(
            Promo(code="SECRET", amount=5000, runs=0, uses_max=None, per_account=1, until=None),
            lasting=None,
            author="op",
        )
        ann = await here.person(having=0)
        for number in range(9):
            await ann.say(f"/promo guess{number}")
        die_once(here.store, "use_promo", after=True)
        await ann.say("/promo secret")
        await ann.sees("Added to your balance: 5 credits!")
        await ann.say("/promo secret")

        assert "You can try another in " in ann.screen.text
        assert await ann.available() == 5000


async def test_a_guess_that_was_refused_is_not_made_when_its_update_is_tried_again(here: Town) -> None:
    here.postman.patient = True
    await here.store.create_promo(
        Promo(code="SECRET", amount=5000, runs=0, uses_max=None, per_account=1, until=None), lasting=None, author="op"
    )
    ann = await here.person(having=0)
    for number in range(10):
        await ann.say(f"/promo guess{number}")
    die_once(here.bot._view, "show_draft", after=False)
    await ann.say("/promo secret")

    assert "You can try another in " in ann.screen.text
    assert await ann.available() == 0


async def test_promo_codes_give_credits_or_runs_and_say_why_not(here: Town) -> None:
    ann = await here.person(having=0)
    await here.store.create_promo(
        Promo(code="CAT", amount=5000, runs=0, uses_max=1, per_account=1, until=None), lasting=None, author="op"
    )
    await here.store.create_promo(
        Promo(code="RUNS", amount=0, runs=3, uses_max=None, per_account=1, until=None), lasting=None, author="op"
    )
    await ann.say("/promo cat")
    await ann.sees("Added to your balance: 5 credits!")
    await ann.say("/promo CAT")
    await ann.sees("You have used this promo code already")
    await ann.say("/balance")
    await ann.sees("+5 · promo code")
    await ann.tap("Promo code")
    await ann.sees("Write your promo code")
    await ann.say("dog")
    await ann.sees("There is no such promo code")
    await ann.say("runs")
    await ann.sees("A gift: 3 free runs!")
    bob = await here.person("Bob", having=0)
    await bob.say("/start p_CAT")
    await bob.sees("There is no such promo code, or it is over")

    assert await ann.available() == 5000
