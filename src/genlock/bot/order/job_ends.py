"""Continues what a user began when its job has ended: a voice message becomes a prompt, a group gets its notice.

A job ends on any instance, at any time. The engine calls `job_ended` at least once before the job's notice. That stores
an update under an id that only this job can have, so it is stored once. The user's update queue then handles it like a
message of the user: in order, on any instance, again after a crash.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from genlock.bot.bundle import BotBundle
from genlock.bot.context import UpdateContext
from genlock.bot.order import draft as drafts
from genlock.bot.order.draft import Draft
from genlock.bot.order.request_keys import GroupKey, VoiceKey
from genlock.channels.telegram.address import Address
from genlock.domain.job import Delivery, Job
from genlock.domain.update import NewUpdate
from genlock.domain.update import Update as StoredUpdate
from genlock.ports import Database

#: kind of the stored update, and the member that names the job
JOB_ENDED = "job_ended"
OPEN_DELIVERIES = (Delivery.NONE, Delivery.PENDING, Delivery.SENDING)

Receive = Callable[[NewUpdate], Awaitable[Any]]


def settled(job: Job) -> bool:
    """Whether the job has ended and the chat shows how."""
    return job.ended and job.delivery not in OPEN_DELIVERIES


class JobEnds:
    def __init__(self, *, bundle: BotBundle, store: Database, receive: Receive) -> None:
        self._bundle = bundle
        self._store = store
        self._receive = receive

    async def job_ended(self, job: Job) -> None:
        """Store an update if the end of this job, or of its whole group, has a consequence. Idempotent."""
        if VoiceKey.read(job.request_key) is not None:
            if job.has_result and job.delivery is Delivery.DELIVERED:
                await self._store_update(job)
        elif (group := GroupKey.read(job.request_key)) is not None:
            await self.group_ended(job.account_id, group)

    async def group_ended(self, account_id: int, group: GroupKey) -> None:
        """Store the update about a group if all of its jobs have ended. Idempotent."""
        jobs = await self.group_jobs(account_id, group)
        if jobs and all(map(settled, jobs)) and await self._is_sold(account_id, group, jobs):
            await self._store_update(jobs[0])

    async def group_jobs(self, account_id: int, group: GroupKey) -> list[Job]:
        found = [await self._store.job_by_request_key(account_id, key) for key in group.all()]
        return [job for job in found if job is not None]

    async def _is_sold(self, account_id: int, group: GroupKey, jobs: list[Job]) -> bool:
        """Whether no further job of the group can follow: the press has saved another draft, or failed on every try."""
        if len(jobs) == group.count:
            return True
        saved = await self._store.draft(account_id, group.chat)
        if saved is None:
            return True
        draft = drafts.load(saved.body, version=saved.version, message=saved.message)
        if draft.sale is None or draft.sale.version != group.version:
            return draft.version != group.version
        return draft.place > 0 and not await self._store.is_update_open(draft.place)

    async def _store_update(self, job: Job) -> None:
        profile = await self._store.profile(job.account_id)
        update_id = -job.id  # Telegram's ids are positive
        body = {"update_id": update_id, JOB_ENDED: {"job": job.id}}
        update = NewUpdate(
            bot=self._bundle.id,
            update_id=update_id,
            ordering_key=profile.external_id,
            kind=JOB_ENDED,
            urgent=False,
            dedup_key=None,
            body=json.dumps(body),
        )
        await self._receive(update)

    # the update

    async def read(self, stored: StoredUpdate) -> tuple[UpdateContext, Job] | None:
        """Return the context of a stored update and its job; None if the job is gone."""
        job = await self._store.job(-stored.update_id)
        if job is None:
            return None
        address = Address.parse(job.address)
        saved = await self._store.draft(job.account_id, address.chat)
        ctx = UpdateContext(
            update=stored.update_id,
            first=stored.attempts == 1,
            profile=await self._store.profile(job.account_id),
            chat=address.chat,
            thread=address.thread,
            group=address.group,
            draft=drafts.load(saved.body, version=saved.version, message=saved.message) if saved else Draft(),
            place=stored.id,
            texts=self._bundle.texts,
        )
        return ctx, job
