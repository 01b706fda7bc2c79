"""Steps that the tests of several subjects take: order, buy, open a model."""

import io
import json

import pytest
from PIL import Image

from genlock.domain.job import Job
from genlock.engine.hourly_figures import HourlyFigureKeeper
from tests.bot.pages import label, page
from tests.bot.world import BotWorld, ChatUser

DRAW = "/gen z-image a red fox"


async def bought(ann: ChatUser, stars: int = 100) -> str:
    """Buy a package; gives the receipt."""
    await ann.write("/topup")
    await ann.tap(label("topup.package", stars=stars))
    bill = await ann.sees(lambda message: message.kind == "invoice")
    async with ann.world.done(2):  # the question before, and the payment
        payment = await ann.client.pay(bill)
    assert payment.ok, payment
    return str(payment.charge_id)


async def count_figures(world: BotWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count what has happened, as the leader does."""
    monkeypatch.setattr("genlock.stores.hourly_figures.COMMIT_SECONDS", 0.0)
    await world.quiet()
    await world.engine.leader.elect()
    await HourlyFigureKeeper(world.engine.ctx, world.engine.leader, world.store).round()


def picture(size: int = 64) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (size, size), "navy").save(file, "PNG")
    return file.getvalue()


async def confirmed(ann: ChatUser, text: str = "a fox") -> None:
    await ann.write(text)
    await ann.sees(page("confirm.suggestion"))
    await ann.tap(label("button.generate"))


async def drawn(ann: ChatUser, order: str = DRAW) -> Job:
    await ann.write(order)
    await ann.world.quiet()
    await ann.sees(page("order.done"))
    return (await ann.world.jobs(ann))[0]


def inputs(job: Job) -> dict[str, object]:
    found: dict[str, object] = json.loads(job.input)
    return found


async def opened(ann: ChatUser, model: str) -> None:
    """Open the card of a model."""
    await ann.write("/models")
    await ann.write(model)
    await ann.tap(f"{model} ·")
