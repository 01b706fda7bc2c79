"""Short texts that show which message is which."""

from genlock.domain.delivery import Part
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.ports import Button, FileLabel, OutgoingMessage


class PlainTexts:
    """The MessageTexts port with one short English text for each message."""

    def label(self, job: Job) -> FileLabel:
        return FileLabel(title=f"Title of order {job.id}", performer="A Model")

    def waiting(self, job: Job, language: str, fraction: float | None) -> OutgoingMessage:
        done = "accepted" if fraction is None else f"{fraction:.0%}"
        return OutgoingMessage(
            text=f"<b>Order {job.id}</b>: {done}", buttons=((Button(text="Cancel", data=f"cancel:{job.id}"),),)
        )

    def placeholder(self, job: Job, language: str, index: int) -> OutgoingMessage:
        return OutgoingMessage(text=f"Order {job.id}, part {index + 1}")

    def caption(self, job: Job, language: str, index: int, part: Part) -> OutgoingMessage:
        again = Button(text="Repeat", data=f"repeat:{job.id}")
        if part.kind is not PartKind.FILE:
            return OutgoingMessage(text=f"Part {index + 1}", buttons=((again,),))
        return OutgoingMessage(
            text=f"<i>Part {index + 1}</i>", buttons=((Button(text="Original", url=part.value), again),)
        )

    def link(self, job: Job, language: str, index: int, part: Part) -> OutgoingMessage:
        return OutgoingMessage(text=f'Part {index + 1}: <a href="{part.value}">open</a>')

    def failed(self, job: Job, language: str) -> OutgoingMessage:
        return OutgoingMessage(text=f"Order {job.id} failed ({job.error_code}), money back")

    def notice(self, job: Job, language: str) -> OutgoingMessage:
        return OutgoingMessage(
            text="✅ Generation complete", buttons=((Button(text="Show again", data=f"again:{job.id}"),),)
        )
