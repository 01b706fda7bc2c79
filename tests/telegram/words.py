"""Plain words, enough to see what is shown where."""

from genlock.domain.delivery import Part
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.telegram.address import Address
from genlock.telegram.words import Button, Label, Said


class PlainWords:
    """Telegram's HTML in two languages, short."""

    def label(self, job: Job) -> Label:
        return Label(title=f"Words of order {job.id}", performer="A Model")

    def waiting(self, job: Job, address: Address, fraction: float | None) -> Said:
        done = "accepted" if fraction is None else f"{fraction:.0%}"
        return Said(text=f"<b>Order {job.id}</b>: {done}", buttons=((Button(text="Cancel", data=f"cancel:{job.id}"),),))

    def place(self, job: Job, address: Address, index: int) -> Said:
        return Said(text=f"Order {job.id}, part {index + 1}")

    def caption(self, job: Job, address: Address, index: int, part: Part) -> Said:
        again = Button(text="Repeat", data=f"repeat:{job.id}")
        if part.kind is not PartKind.FILE:
            return Said(text=f"Part {index + 1}", buttons=((again,),))
        return Said(text=f"<i>Part {index + 1}</i>", buttons=((Button(text="Original", url=part.value), again),))

    def link(self, job: Job, address: Address, index: int, part: Part) -> Said:
        return Said(text=f'Part {index + 1}: <a href="{part.value}">open</a>')

    def failed(self, job: Job, address: Address) -> Said:
        return Said(text=f"Order {job.id} failed ({job.error_code}), money back")

    def notice(self, job: Job, address: Address) -> Said:
        return Said(text="✅ Generation complete", buttons=((Button(text="Show again", data=f"again:{job.id}"),),))
