"""Menus by wish and typed wishes, through the chat, in both languages."""

import json
from dataclasses import replace

from genlock.bot.storefront.popularity import Experience, Popularity, most_popular
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import Category, Status
from genlock.domain.figures import JobFigures, ModelFigures
from genlock.domain.job import Job
from tests.bot.pages import has_button, label, page
from tests.bot.steps import picture
from tests.bot.world import BotWorld, ChatUser, die_once
from tests.packaged import CATALOG

LANGUAGES = ("en", "ru")


def shop() -> Storefront:
    return Storefront(CATALOG, markup=2.0, credit_usd=0.01)


async def menu_of(world: BotWorld, language: str) -> ChatUser:
    ann = await world.add_user(language=language)
    await ann.write("/start")
    return ann


# the menu


async def test_the_menu_has_the_eight_wishes_and_each_opens_its_short_list(world: BotWorld) -> None:
    for language in LANGUAGES:
        ann = await menu_of(world, language)
        t = world.bot.texts.translator(language)
        titles = [f"{wish.icon} {t.plain(f'wish.{wish.name}')}" for wish in CATALOG.wishes]
        shown = [button["text"] for button in ann.screen.buttons]
        assert [title for title in shown if title in titles] == titles
        for wish in CATALOG.wishes:
            await ann.press(ann.screen, f"wish:{wish.name}")
            screen = ann.screen
            models = [button for button in screen.buttons if button["callback_data"].startswith("model:")]
            assert 1 < len(models) <= 6, wish.name
            popular = world.catalog.get(wish.popular[0])
            assert popular.good_at[language] in screen.text, wish.name
            assert t.duration(popular.expected_seconds) in screen.text, wish.name
            await ann.tap(label("button.back", language=language))
            assert [button["text"] for button in ann.screen.buttons] == shown, "back to the menu"


async def test_a_picture_takes_four_taps_by_the_menu_and_three_by_typing(world: BotWorld) -> None:
    for language in LANGUAGES:
        ann = await menu_of(world, language)  # 1
        await ann.tap(label("wish.draw", language=language))  # 2
        await ann.write("кот в космосе" if language == "ru" else "a cat in space")  # 3
        await ann.sees(page("confirm.suggestion", language=language))
        await ann.tap(label("button.generate", language=language))  # 4
        await ann.sees(page("order.done", language=language))

        bob = await menu_of(world, language)  # 1
        await bob.write("кот в космосе" if language == "ru" else "a cat in space")  # 2
        await bob.tap(label("button.generate", language=language))  # 3
        await bob.sees(page("order.done", language=language))
        for user in (ann, bob):
            [job] = await world.jobs(user)
            assert world.catalog.get(job.model).category is Category.TEXT_TO_IMAGE


async def test_a_model_of_the_short_list_asks_only_for_the_prompt(world: BotWorld) -> None:
    ann = await menu_of(world, "en")
    await ann.tap(label("wish.draw"))
    await ann.tap("Nano Banana ·")
    await ann.sees("Describe what you want")
    await ann.write("a red fox")
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.generate"))
    await ann.sees(page("order.done"))
    [job] = await world.jobs(ann)
    assert (job.model, json.loads(job.input)["prompt"]) == ("google/nano-banana", "a red fox")


async def test_all_is_behind_the_short_list_and_back_leads_through_both(world: BotWorld) -> None:
    ann = await menu_of(world, "en")
    await ann.tap(label("wish.animate"))
    await ann.tap(label("button.every"))
    every = ann.screen
    assert any(button["text"] == "1 / 6" for button in every.buttons)
    assert page("wish.animate")(every)
    await ann.tap(label("button.back"))
    assert page("wish.hint_animate")(ann.screen)
    await ann.tap(label("button.back"))
    assert page("menu.nothing_chosen")(ann.screen)


async def test_a_category_with_one_model_opens_it(world: BotWorld) -> None:
    ann = await menu_of(world, "en")
    await ann.press(ann.screen, "cat:background-removal:0")
    assert page("ask.image")(ann.screen)
    await ann.send("photo", picture())
    await ann.sees(page("confirm.price"))

    bob = await world.add_user()
    await bob.send("photo", picture())
    await bob.tap(label("category.background-removal"))
    confirm = await bob.sees(page("confirm.price"))
    assert "📎 1" in confirm.text


async def test_a_wish_with_one_model_left_opens_it_and_one_without_is_not_shown(world: BotWorld) -> None:
    hidden = {
        model.id: replace(model, status=Status.HIDDEN)
        for model in CATALOG.offered()
        if Category.AVATAR in (model.category, *model.also)
        or (Category.MUSIC in (model.category, *model.also) and model.id != "suno/generate")
        or model.category is Category.SOUND_EFFECTS
    }
    world.current.replace(replace(CATALOG, models={**CATALOG.models, **hidden}))
    ann = await menu_of(world, "en")
    assert not has_button(ann.screen, "wish.avatar")
    await ann.press(ann.screen, "wish:avatar")
    assert page("menu.nothing_chosen")(ann.screen)
    await ann.tap("🎵 Music")
    assert "Suno" in ann.screen.text
    assert page("ask.text")(ann.screen)


async def test_a_photo_sent_to_a_wish_begins_its_order(world: BotWorld) -> None:
    ann = await menu_of(world, "ru")
    await ann.tap(label("wish.improve", language="ru"))
    await ann.send("photo", picture())
    confirm = await ann.sees(page("confirm.price", language="ru"))
    assert "Recraft Crisp Upscale" in confirm.text

    await ann.tap(label("button.cancel", "button.menu", language="ru"))
    await ann.press(ann.screen, "wish:animate")
    await ann.send("photo", picture(), caption="ветер в волосах")
    await ann.sees(page("confirm.price", language="ru"))
    [job] = await ordered(ann, "ru")
    assert world.catalog.get(job.model).category is Category.IMAGE_TO_VIDEO


async def ordered(ann: ChatUser, language: str = "en") -> list[Job]:
    await ann.tap(label("button.generate", language=language))
    await ann.sees(page("order.done", language=language))
    return await ann.world.jobs(ann)


# typed wishes


WISHES = {
    "ru": {
        "песня про кота": "audio",
        "видео, где кот танцует": "video",
        "озвучь: Привет, мир!": "audio",
        "рыжий кот": "image",
    },
    "en": {
        "a song about a cat": "audio",
        "make a video of a dancing cat": "video",
        "say hello": "audio",
        "a red fox": "image",
    },
}


async def test_typing_a_wish_makes_what_it_says(world: BotWorld) -> None:
    for language, text, output in ((language, *wish) for language, wishes in WISHES.items() for wish in wishes.items()):
        ann = await world.add_user(language=language)
        await ann.write(text)
        await ann.sees(page("confirm.suggestion", language=language))
        await ann.tap(label("button.generate", language=language))
        await world.quiet()
        [job] = await world.jobs(ann)
        assert world.catalog.get(job.model).outputs[0].value == output, text


async def test_a_song_is_a_song_and_not_the_cheapest_model_for_texts_about_songs(world: BotWorld) -> None:
    ann = await world.add_user(language="ru")
    await ann.write("весёлая песня про лето")
    confirm = await ann.sees(page("confirm.suggestion", language="ru"))
    assert "Suno" in confirm.text
    assert "Lyrics" not in confirm.text
    assert "весёлая песня про лето" in confirm.text
    await ann.write("/start")
    await ann.press(ann.screen, "wish:music")
    await ann.write("чайки над морем")
    confirm = await ann.sees(page("confirm.suggestion", language="ru"))
    assert "🧾 Suno\n" in confirm.text


async def test_a_suggestion_can_be_switched_to_another_wish_with_one_tap(world: BotWorld) -> None:
    for language in LANGUAGES:
        ann = await world.add_user(language=language)
        await ann.write("a lighthouse in a storm")
        await ann.tap(label("wish.as_video", language=language))
        confirm = await ann.sees(page("confirm.suggestion", language=language))
        assert "a lighthouse in a storm" in confirm.text
        assert max(map(len, (confirm.markup or {})["inline_keyboard"])) == 2, "a third column cuts words off on a phone"
        [job] = await ordered(ann, language)
        assert world.catalog.get(job.model).outputs[0].value == "video"


async def test_a_switch_handled_twice_shows_the_same_suggestion(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a lighthouse in a storm")
    die_once(world.drafts, "show", after=False)
    await ann.tap(label("wish.as_video"))
    assert "a lighthouse in a storm" in ann.screen.text
    assert len(await world.jobs(ann)) == 0
    assert len(await ordered(ann)) == 1


async def test_a_bare_wish_opens_its_short_list_or_asks_for_the_file(world: BotWorld) -> None:
    ann = await world.add_user(language="ru")
    await ann.write("видео")
    assert page("wish.hint_video", language="ru")(ann.screen)
    await ann.write("убери фон")
    assert page("ask.image", language="ru")(ann.screen)
    assert "Recraft Remove Background" in ann.screen.text
    await ann.write("/start")
    await ann.write("оживи фото")
    assert page("ask.image", language="ru")(ann.screen)


async def test_a_caption_or_reply_that_names_a_wish_does_it(world: BotWorld) -> None:
    ann = await world.add_user(language="ru")
    await ann.send("photo", picture(), caption="убери фон")
    confirm = await ann.sees(page("confirm.price", language="ru"))
    assert "Recraft Remove Background" in confirm.text
    await ordered(ann, "ru")
    await world.quiet()
    shown = next(message for message in ann.from_bot if message.kind in ("photo", "document"))
    await ann.write("оживи", reply_to=shown)
    confirm = await ann.sees(page("confirm.price", language="ru"))
    assert "Оживить" in confirm.text


async def test_a_short_text_in_a_list_finds_models_and_offers_to_make_it(world: BotWorld) -> None:
    for language in LANGUAGES:
        ann = await world.add_user(language=language)
        await ann.write("/models")
        await ann.write("нано банана")
        titles = [button["text"] for button in ann.screen.buttons if button["callback_data"].startswith("model:")]
        assert titles
        assert all("Nano Banana" in title for title in titles)
        await ann.write("кот")
        assert page("list.none", language=language, query="кот")(ann.screen)
        await ann.tap(label("button.make", language=language))
        confirm = await ann.sees(page("confirm.suggestion", language=language))
        assert "кот" in confirm.text


async def test_a_name_alone_opens_the_models_with_it(world: BotWorld) -> None:
    ann = await world.add_user(language="ru")
    await ann.write("клинг")
    titles = [button["text"] for button in ann.screen.buttons if button["callback_data"].startswith("model:")]
    assert titles
    assert all("Kling" in title for title in titles)
    await ann.write("/start")
    await ann.write("нано банана рыжий кот в снегу")
    confirm = await ann.sees(page("confirm.price", language="ru"))
    assert "Nano Banana" in confirm.text
    assert "рыжий кот в снегу" in confirm.text
    assert "банана рыжий" not in confirm.text


# what is popular


def test_every_category_belongs_to_a_wish_and_every_recommended_model_says_what_it_is_good_at() -> None:
    covered = {category for wish in CATALOG.wishes for category in wish.categories}
    unlisted = {model.category.value for model in CATALOG.offered() if not model.listed}
    assert covered == {category.value for category in Category} - unlisted
    for wish in CATALOG.wishes:
        for model_id in wish.popular:
            assert set(CATALOG.get(model_id).good_at) == {"en", "ru"}, model_id


def test_what_users_finish_moves_models_up_and_brings_new_ones_in() -> None:
    front, wish = shop(), CATALOG.wish("draw")
    assert wish is not None
    usual = [model.id for model in front.popular(wish)]
    assert usual == list(wish.popular[: len(usual)])
    front.learn(Experience(delivered={wish.popular[3]: 100, "google/imagen4": 60, "wan/2-7-image": 3}))
    popular = [model.id for model in front.popular(wish)]
    assert popular[:2] == [wish.popular[3], "google/imagen4"]
    assert "wan/2-7-image" not in popular
    assert len(popular) == len(usual)
    assert front.recommended(wish)[0].id == wish.popular[0], "a typed wish keeps to the catalog's choice"


def test_the_operators_featured_models_lead_the_short_list() -> None:
    models = [replace(model, featured=model.id == "google/imagen4") for model in shop().models(Category.TEXT_TO_IMAGE)]
    assert most_popular(models, ["z-image"], Experience(delivered={"z-image": 10**6}))[0].id == "google/imagen4"


async def test_the_short_list_shows_the_time_measured_here(world: BotWorld) -> None:
    ann = await menu_of(world, "en")
    await ann.tap(label("wish.draw"))
    assert "≈\u00a055\u00a0sec" in ann.screen.text
    front = world.bot._buttons._storefront
    front.learn(Experience(median_seconds={"z-image": 12.4}))
    await ann.tap(label("button.back"))
    await ann.tap(label("wish.draw"))
    assert "≈\u00a012\u00a0sec" in ann.screen.text
    await ann.tap("Z-Image ·")
    assert "about 12\u00a0sec" in ann.screen.text, "the card says the same"


async def test_the_figures_are_read_at_most_every_ten_minutes(world: BotWorld) -> None:
    now, reads = 0.0, 0
    learnt: list[Experience] = []

    class Store:
        read_clock = world.store.read_clock

        async def model_figures(self, since: int, until: int, bot: str) -> list[ModelFigures]:
            nonlocal reads
            reads += 1
            assert (until - since, bot) == (30 * 24, "7")
            return [
                ModelFigures(provider=provider, model="z-image", figures=JobFigures(orders=9, delivered=delivered))
                for provider, delivered in (("kie", 5), ("fal", 2))
            ]

        async def model_durations(self, since: int, until: int) -> dict[tuple[str, str], dict[int, int]]:
            assert until - since == 7 * 24
            return {("kie", "z-image"): {12: 5}, ("fal", "z-image"): {12: 2}, ("kie", "veo3"): {20: 1}}

    popularity = Popularity(Store(), "7", learnt.append, clock=lambda: now)  # type: ignore[arg-type]
    for now in (0.0, 1.0, 599.0, 600.0, 601.0):  # noqa: B007 - the clock reads it
        await popularity.refresh()
    assert reads == 2
    assert learnt[0].delivered == {"z-image": 7}
    assert set(learnt[0].median_seconds) == {"z-image"}, "one result says little"
