"""A reply to a file and a caption under one say what to do with the file."""

from genlock.domain.field import FieldType
from tests.bot.order_by_chat import sample
from tests.bot.pages import label, page
from tests.bot.steps import drawn, inputs
from tests.bot.world import BotWorld, die_once, holds


async def test_a_reply_to_a_picture_edits_it(world: BotWorld) -> None:
    ann = await world.add_user()
    job = await drawn(ann)
    await ann.write("make it winter", reply_to=ann.from_bot[0])
    confirm = await ann.sees(page("confirm.price"))
    assert label("button.next_image_edit").search(confirm.text)
    assert "make it winter" in confirm.text
    await ann.tap(label("button.generate"))
    await ann.sees(lambda message: message.kind == "photo" and "make it winter" in message.text)

    edited = (await world.jobs(ann))[0]
    assert job.parts[0].value in edited.input
    assert inputs(edited)["prompt"] == "make it winter"


async def test_a_reply_to_a_video_or_a_song_changes_it_where_a_model_can(world: BotWorld) -> None:
    ann = await world.add_user(having=100_000)
    for order, text, key in (
        ("grok-imagine/text-to-video a fox", "make it snow", "button.next_video_edit"),
        ("suno/generate a song about the sea", "as a waltz", "button.next_audio_cover"),
    ):
        job = await drawn(ann, f"/gen {order}")
        shown = next(message for message in ann.from_bot if str(message.id) == job.parts[0].message)
        await ann.write(text, reply_to=shown)
        confirm = await ann.sees(holds(page("confirm.price"), text))
        assert label(key).search(confirm.text)


async def test_a_reply_to_ones_own_photo_edits_it_and_the_order_before_is_left(world: BotWorld) -> None:
    ann = await world.add_user()
    photo = await ann.send("photo", sample(FieldType.IMAGE))
    await ann.sees(page("misc.what_with_file"))
    await ann.write("/start")
    await ann.write("make it winter", reply_to=photo)
    confirm = await ann.sees(page("confirm.price"))
    assert label("button.next_image_edit").search(confirm.text)
    await ann.write("/gen z-image")
    question = await ann.sees(page("ask.text"))
    await ann.write("a fox", reply_to=question)
    assert "Z-Image" in ann.screen.text, "a reply to the question answers it"


async def test_a_reply_that_is_handled_twice_makes_one_draft(world: BotWorld) -> None:
    ann = await world.add_user()
    await drawn(ann)
    die_once(world.drafts, "show", after=False)
    await ann.write("make it winter", reply_to=ann.from_bot[0])
    confirm = await ann.sees(page("confirm.price"))
    await ann.tap(label("button.generate"), on=confirm)
    await ann.sees(lambda message: message.kind == "photo" and "make it winter" in message.text)
    assert len(await world.jobs(ann)) == 2


async def test_a_reply_to_a_result_in_a_group_edits_it_for_the_user_who_replies(world: BotWorld) -> None:
    ann, bob = await world.add_user("Ann"), await world.add_user("Bob")
    group = world.telegram.group("Friends", [ann.client, bob.client])
    await ann.write("/gen@sandbox_bot z-image a fox", chat=group.id)
    await ann.sees(page("order.done"), chat=group.id)
    picture = next(message for message in group.messages if message.kind == "photo")
    for user, text in ((ann, "make it winter"), (bob, "make it spring")):
        await user.write(text, chat=group.id, reply_to=picture)
        offer = await user.sees(text, chat=group.id)
        offer = next(
            message for message in reversed(group.messages) if message.sender != user.client.id and text in message.text
        )
        assert label("button.next_image_edit").search(offer.text)
        await user.press(offer, offer.buttons[0]["callback_data"])
    await world.quiet()

    assert [inputs(job)["prompt"] for job in await world.jobs(bob)] == ["make it spring"]
    assert len(await world.jobs(ann)) == 2


async def test_a_photo_with_a_caption_needs_one_tap(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.send("photo", sample(FieldType.IMAGE), caption="make it winter")
    confirm = await ann.sees(page("confirm.price"))
    assert "make it winter" in confirm.text
    await ann.tap(label("button.generate"))
    await ann.sees(lambda message: message.kind == "photo" and "make it winter" in message.text)
    assert len(await world.jobs(ann)) == 1


async def test_a_text_after_a_photo_is_its_caption(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.send("photo", sample(FieldType.IMAGE))
    await ann.sees(page("misc.what_with_file"))
    await ann.write("make it winter")
    confirm = await ann.sees(page("confirm.price"))
    assert label("button.next_image_edit").search(confirm.text)


async def test_a_captioned_photo_can_still_be_used_for_something_else(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.send("photo", sample(FieldType.IMAGE), caption="make it move")
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.back"))
    menu = await ann.sees(page("misc.what_with_file"))
    assert "make it move" in menu.text
    await ann.tap(label("category.image-to-video"))
    await ann.tap("Seedance 1.0 Pro Fast")
    assert "make it move" in ann.screen.text


async def test_a_captioned_photo_in_an_open_list_is_for_that_list(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await ann.tap(label("wish.animate"))
    await ann.send("photo", sample(FieldType.IMAGE), caption="the wind blows")
    confirm = await ann.sees(page("confirm.price"))
    assert label("button.next_image_animate").search(confirm.text)


async def test_an_album_with_a_caption_is_one_order(world: BotWorld) -> None:
    ann = await world.add_user()
    async with world.done(3):
        await ann.client.send_album([sample(FieldType.IMAGE)] * 3, caption="put them together")
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.generate"))
    await ann.sees(page("order.done"))
    [job] = await world.jobs(ann)
    urls = inputs(job)["image_urls"]
    assert isinstance(urls, list)
    assert len(urls) == 3
