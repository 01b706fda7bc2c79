"""An order that goes on with an earlier one: only with the user's own result, and only one that the user has got."""

import re

from genlock.sandbox.kie.faults import Fault
from tests.bot.pages import label, page
from tests.bot.world import BotWorld, ChatUser

MODEL = "grok-imagine/image-to-video"


async def picture(ann: ChatUser) -> None:
    await ann.write("/gen z-image a cat")
    await ann.sees(page("order.done"))


async def asked_for_an_order(ann: ChatUser) -> None:
    await ann.write(f"/gen {MODEL} it jumps")
    await ann.write("https://example.com/a.png")
    await ann.tap(label("button.done_files"))
    await ann.tap(label("button.options"))
    await ann.tap(re.compile("[Oo]rder|task"))
    await ann.sees(page("ask.task"))


async def test_only_an_own_order_whose_result_the_user_has_got_can_be_gone_on_with(world: BotWorld) -> None:
    ann, bob = await world.add_user("Ann"), await world.add_user("Bob")
    for user in (ann, bob):
        await picture(user)
    [own], [foreign] = await world.jobs(ann), await world.jobs(bob)
    code = world.bot.texts.numbers.order
    for text in (foreign.task_id, code(foreign.id), own.task_id, "#ZZZZZZ"):
        await asked_for_an_order(ann)
        await ann.write(str(text))
        assert page("refused.task")(ann.screen), text

    world.kie.faults.order(Fault.RESULT_EMPTY)
    await ann.write("/gen z-image a dog")
    await ann.sees(page("failed.notice"))
    failed = (await world.jobs(ann))[0]
    assert failed.task_id
    await asked_for_an_order(ann)
    await ann.write(code(failed.id))
    assert page("refused.task")(ann.screen)

    await asked_for_an_order(ann)
    await ann.write(code(own.id))
    assert not page("refused.task")(ann.screen)
