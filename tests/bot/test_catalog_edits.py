"""Operators edit models while users order: a user never pays more than the screen showed."""

from dataclasses import replace
from typing import Any

from genlock.bot.storefront.storefront import Storefront
from genlock.catalog.edits import edited
from genlock.domain.catalog import Catalog, Category
from tests.bot.pages import label, page
from tests.bot.world import BotWorld
from tests.packaged import CATALOG

MODEL = "z-image"
#: the price of one image by the package, in credits
PRICE = 0.8


def with_edit(catalog: Catalog, model: str, **table: Any) -> Catalog:
    return replace(catalog, models={**catalog.models, model: edited(catalog.get(model), table)})


def edit(world: BotWorld, **table: Any) -> None:
    world.current.replace(with_edit(world.catalog, MODEL, **table))


async def test_a_price_raised_after_the_screen_was_shown_is_confirmed_anew(world: BotWorld) -> None:
    ann = await world.add_user(having=10)
    await ann.write("a fox")
    await ann.sees(page("confirm.price", price=f"{PRICE}\u00a0credits"))
    edit(world, price=3)
    await ann.tap(label("button.generate"))
    await ann.sees(page("confirm.dearer"))
    assert (await world.jobs(ann), await ann.available()) == ([], 10_000)
    await ann.tap(label("button.generate", price="3\u00a0credits"))
    await ann.sees(page("order.done"))
    assert await ann.available() == 7_000


async def test_a_price_lowered_after_the_screen_was_shown_is_the_one_that_is_charged(world: BotWorld) -> None:
    ann = await world.add_user(having=10)
    await ann.write("a fox")
    await ann.sees(page("confirm.price", price=f"{PRICE}\u00a0credits"))
    edit(world, price=0)
    await ann.tap(label("button.generate"))
    await ann.sees(page("order.done"))
    assert await ann.available() == 10_000


async def test_an_edit_while_an_order_is_being_accepted_does_not_change_it(world: BotWorld) -> None:
    ann = await world.add_user(having=10)
    await ann.write("a fox")
    store: Any = world.store
    activity = store.activity

    async def edit_meanwhile(account_id: int) -> Any:
        edit(world, status="hidden", price=9)
        return await activity(account_id)

    store.activity = edit_meanwhile
    await ann.tap(label("button.generate"))
    del store.activity
    await ann.sees(page("order.done"))
    assert await ann.available() == 10_000 - round(PRICE * 1000)


async def test_a_hidden_model_is_not_sold_and_a_renamed_one_has_its_new_title(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a fox")
    edit(world, status="hidden")
    answer = await ann.tap(label("button.generate"))
    assert page("order.model_gone")(answer)
    assert await world.jobs(ann) == []
    edit(world, title="Quick <b>picture</b>")
    await ann.write("a fox")
    await ann.tap(label("button.generate"))
    done = await ann.sees(page("order.done"))
    assert "Quick <b>picture</b>" in done.text, "shown as it is, not as markup"


def test_menus_show_featured_models_first_then_positions_then_prices() -> None:
    category = Category.TEXT_TO_VIDEO
    by_price = [model.id for model in Storefront(CATALOG, markup=2.0, credit_usd=0.01).models(category)]
    first, second, star = by_price[-1], by_price[-2], by_price[-3]
    catalog = with_edit(CATALOG, second, order=2)
    catalog = with_edit(with_edit(catalog, first, order=1), star, featured=True)
    shop = Storefront(CATALOG, markup=2.0, credit_usd=0.01)
    shop.use_catalog(catalog)
    assert [model.id for model in shop.models(category)] == [star, first, second, *by_price[:-3]]
    [wish] = [wish for wish in CATALOG.wishes if wish.name == "video"]
    assert shop.recommended(wish, category)[0].id == star, "a typed wish goes to the operator's choice"
    shop.use_catalog(CATALOG)
    assert [model.id for model in shop.models(category)] == by_price


async def test_a_featured_model_has_a_mark_in_the_menu(world: BotWorld) -> None:
    ann = await world.add_user()
    edit(world, featured=True)
    await ann.write("/models")
    rows = [button["text"] for button in ann.screen.buttons]
    assert "⭐" in rows[0]
    assert sum("⭐" in row for row in rows) == 1
