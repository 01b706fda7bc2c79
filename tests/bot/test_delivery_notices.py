"""What the user is told when a result did not arrive as it should, and what *Send again* does then."""

import re
from dataclasses import replace
from html import unescape

from genlock.bot.order.job_texts import JobTexts
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.delivery import MESSAGE_ONLY, Step
from genlock.domain.job import AttentionCode, Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.sandbox.telegram.faults import Fault
from genlock.stores.sqlite import SqliteStore
from tests.bot.pages import label, page
from tests.bot.world import BotWorld, ChatUser
from tests.packaged import CATALOG

LANGUAGES = ("en", "ru")
TAG = re.compile(r"<[^>]+>")
MESSAGE_SHOWN = tuple(replace(part, step=Step.DONE, message="9") for part in MESSAGE_ONLY)


async def confirmed(ann: ChatUser) -> None:
    await ann.write("a fox")
    await ann.sees(page("confirm.suggestion"))
    await ann.tap(label("button.generate"))


async def delivered(world: BotWorld) -> Job:
    ann = await world.add_user()
    await confirmed(ann)
    await ann.sees(page("order.done"))
    await world.quiet()
    [job] = await world.jobs(ann)
    return job


async def test_an_order_that_was_never_started_is_not_said_to_have_taken_too_long(world: BotWorld) -> None:
    job, texts = await delivered(world), JobTexts(CurrentCatalog(CATALOG))
    late = replace(job, state=State.EXPIRED, error_code="deadline", parts=MESSAGE_SHOWN, hold_state=HoldState.RELEASED)
    waited = replace(late, attempt=0, task_id=None)
    for language in LANGUAGES:
        for case, key in ((late, "failed.deadline"), (waited, "failed.not_started")):
            message = texts.failed(case, language)
            message = replace(message, text=unescape(TAG.sub("", message.text)))
            assert page(key, language=language)(message), (key, language, message.text)


async def test_the_notice_says_what_happened_and_what_became_of_the_money(world: BotWorld) -> None:
    job, texts = await delivered(world), JobTexts(CurrentCatalog(CATALOG))
    part = job.parts[0]
    lost, poison, partly = AttentionCode.UNKNOWN_DELIVERY, AttentionCode.POISON, AttentionCode.UNDELIVERABLE
    paid = replace(job, hold_state=HoldState.CAPTURED)
    returned = replace(job, hold_state=HoldState.RELEASED)
    unknown = replace(returned, delivery=Delivery.UNKNOWN, attention_code=lost)
    unshown = (part, replace(part, step=Step.PUT))
    wanted: dict[str, tuple[Job, str]] = {
        "order.unsure": (unknown, "order.returned"),
        "order.unsure_part": (replace(paid, attention_code=lost), "order.paid"),
        "order.unsure_listed": (replace(unknown, attention_code=poison), "order.returned"),
        "order.done_partly": (replace(paid, parts=unshown, attention_code=partly), "order.paid"),
        "order.done_broken_part": (
            replace(paid, parts=(part, *MESSAGE_SHOWN), attention_code=partly),
            "order.paid",
        ),
        "order.done_late": (replace(returned, state=State.FAILED, late=True), "order.done_late"),
        "failed.head": (replace(unknown, state=State.FAILED), "failed.money_back"),
    }
    for key, (case, money) in wanted.items():
        for language in LANGUAGES:
            notice = texts.notice(case, language)
            notice = replace(notice, text=unescape(TAG.sub("", notice.text)))
            assert page(key, language=language)(notice), (key, language, notice.text)
            assert page(money, language=language)(notice), (key, language, notice.text)
            again = [button for row in notice.buttons for button in row if (button.data or "").startswith("again")]
            assert bool(again) == (key not in ("order.unsure_listed", "order.done_late", "failed.head")), key


async def test_a_user_told_of_a_lost_answer_gets_the_result_again_free(world: BotWorld) -> None:
    """The user deleted the message that becomes the result, and the answer to the one sent instead is lost."""
    ann = await world.add_user()
    world.telegram.faults.once(Fault.DELAY, method="editMessageMedia", seconds=0.5)
    world.telegram.faults.once(Fault.DROP_BEFORE, method="sendPhoto")
    await confirmed(ann)
    await world.telegram.until(lambda: bool(world.telegram.calls("editMessageMedia")))
    await ann.client.delete(ann.screen)

    notice = await ann.sees(page("order.unsure"))
    assert page("order.returned")(notice)
    [job] = await world.jobs(ann)
    assert (job.delivery, job.hold_state) == (Delivery.UNKNOWN, HoldState.RELEASED)
    press = await ann.tap(label("button.again"), on=notice)
    assert page("order.again_soon")(press)
    await ann.sees(lambda message: message.kind == "photo" and message.id > notice.id)
    await world.quiet()

    assert len(world.telegram.calls("sendPhoto")) == 1
    assert [message for message in ann.from_bot if page("order.unsure")(message)] == [notice]
    assert await ann.available() == 1_000_000


async def test_a_late_result_can_be_shown_again_from_its_notice_and_the_history(world: BotWorld) -> None:
    ann = await world.add_user()
    await confirmed(ann)
    await ann.sees(page("order.done"))
    await world.quiet()
    [job] = await world.jobs(ann)
    assert isinstance(world.store, SqliteStore)
    await world.store.session.call(
        lambda connection: connection.execute(
            "UPDATE jobs SET hold_state = 'free', state = 'failed', error_code = 'provider_failed', late = 1"
        )
    )

    await ann.write("/history")
    await ann.tap("a fox")
    shown = len([message for message in ann.from_bot if message.kind == "photo"])
    press = await ann.tap(label("button.again"))

    assert page("order.again_soon")(press)
    await world.quiet()
    assert len([message for message in ann.from_bot if message.kind == "photo"]) == shown + 1
    assert (await world.jobs(ann))[0].id == job.id
