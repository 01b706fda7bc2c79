"""The original of a result, as a document, once."""

from genlock.domain.field import FieldType
from tests.bot.order_by_chat import sample
from tests.bot.pages import label, page
from tests.bot.steps import drawn
from tests.bot.world import BotWorld, die_once


async def test_the_original_of_a_picture_is_sent_as_a_document_once(world: BotWorld) -> None:
    ann = await world.add_user()
    job = await drawn(ann)
    die_once(world.drafts, "save", after=True)
    await ann.tap(label("button.original"), on=ann.from_bot[0])
    documents = [message for message in ann.from_bot if message.kind == "document"]
    assert documents == [], "the press was marked before the crash, so the send is not repeated"
    await ann.tap(label("button.next_more"), on=ann.from_bot[0])
    await ann.sees(page("next.choose"))
    await ann.tap(label("button.original"))
    document = await ann.sees(lambda message: message.kind == "document")
    file = world.kie.service.files.find(job.parts[0].value)
    assert file is not None
    assert world.telegram.state.files.read(document.content["document"]["file_id"]) == file.make()
    assert len(await world.jobs(ann)) == 1


async def test_an_original_that_was_sent_once_outlives_the_file_of_the_provider(world: BotWorld) -> None:
    ann, bob = await world.add_user(), await world.add_user("Bob")
    await drawn(ann)
    picture = next(message for message in ann.from_bot if message.kind == "photo")
    await ann.tap(label("button.original"), on=picture)
    first = await ann.sees(lambda message: message.kind == "document")
    world.kie.service.files.expire()
    await ann.write("/balance")  # the same press at once would be taken for a repeated one
    await ann.tap(label("button.original"), on=picture)
    documents = [message for message in ann.from_bot if message.kind == "document"]
    assert [message.file_id for message in documents] == [first.file_id] * 2, "the same bytes"
    await bob.press(
        picture, next(button["callback_data"] for button in picture.buttons if "original" in button["callback_data"])
    )
    assert not any(message.kind == "document" for message in bob.from_bot)


async def test_what_must_stay_exact_is_a_document_and_has_no_button_for_the_original(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.send("photo", sample(FieldType.IMAGE))
    await ann.tap(label("button.next_image_remove_background"))
    await ann.tap(label("button.generate"))
    document = await ann.sees(lambda message: message.kind == "document")
    await ann.sees(page("order.done"))
    assert any(label("button.next_image_animate").search(button["text"]) for button in document.buttons)
    assert not any(label("button.original").search(button["text"]) for button in document.buttons)
    await ann.tap(label("button.next_more"), on=document)
    more = await ann.sees(page("next.choose"))
    assert not any(label("button.original").search(button["text"]) for button in more.buttons)
