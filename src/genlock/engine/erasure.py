"""Erasure of a user's personal data, and of the inputs of old jobs. What is kept is in docs/how-to/privacy.md."""

import json
from collections.abc import Sequence

from genlock.domain.errors import AccountNotFound
from genlock.domain.queued_message import ERASED, QueuedMessage
from genlock.engine.tell import SendQueued, make_message
from genlock.i18n.translator import Texts, package_texts
from genlock.ports import Database

#: kv entries of the account's bot, one per erasure that was asked for and is not done; the value is the newest job's id
ERASURE = "erase:"
#: kv entries of the installation: the files of an account are to be deleted, but for results of jobs after this id. The
#: value begins with a word when they are
FILES_OF = "erase_files:"
FILES_DELETED = "done:"
#: kv entries of the installation: the rows of an account up to this job are erased, but the database's files may still
#: hold them
ROWS_OF = "erase_rows:"
#: between attempts to remove them from there, while another program uses the files
SCRUB_SECONDS = 10.0
#: kv entry of the installation: the job up to which inputs were erased by age
ERASED_UNTIL = "erased_inputs_until"
#: kv entry of the installation: earlier jobs that had not ended, as JSON
AWAITED = "erased_inputs_awaited"
PAGE = 500
DAY = 86_400.0
#: the update that asked for the erasure is handled by then, so that its body is erased, too
DELAY_SECONDS = 10.0


class Erasure:
    """Erases accounts. The request is stored first; a round that crashed is repeated, and each step may be."""

    def __init__(self, store: Database, texts: Texts | None = None, send_queued: SendQueued | None = None) -> None:
        self._store = store
        self._texts = texts or package_texts()
        #: without it, the leader of the service sends the messages
        self._send_queued = send_queued

    async def request(self, account_id: int, by: str, key: str) -> None:
        """Store that the data of an account are to be erased; its open jobs end first. Raises AccountNotFound.

        A request that comes while an earlier one waits, or is carried out, takes its place.
        """
        bot = (await self._store.account(account_id)).bot
        newest = await self._store.jobs(account_id=account_id, limit=1)
        until = str(newest[0].id if newest else 0)
        await self._store.kv_delete(f"{ROWS_OF}{account_id}")  # the user may have written something new since
        await self._store.kv_put(f"{ERASURE}{account_id}", until, bot)
        await self._store.add_audit(
            bot=bot, key=key, actor=by, action="erasure", subject=str(account_id), detail="requested"
        )

    async def is_requested(self, account_id: int, bot: str) -> bool:
        return await self._store.kv_get(f"{ERASURE}{account_id}", bot) is not None

    async def run(self, bot: str, *, older_than: float = DELAY_SECONDS) -> list[int]:
        """Carry out the erasures of a bot's users whose jobs have ended, and tell the users.

        Returns the accounts that are erased now.
        """
        store = self._store
        erased = {}
        for entry in await store.kv_list(ERASURE, bot):
            account_id = int(entry.key.removeprefix(ERASURE))
            if entry.age >= older_than and await self._erase(account_id, int(entry.value), entry.age):
                erased[account_id] = entry.value
        if not erased:
            return []
        if not await store.scrub():  # once for all, because commits wait for it
            for account_id, until in erased.items():
                await store.kv_put(f"{ROWS_OF}{account_id}", until)
            return []
        return [account_id for account_id, until in erased.items() if await self._end(account_id, until, bot)]

    async def _end(self, account_id: int, until: str, bot: str) -> bool:
        """Replace the request by the message to the user, and send it.

        False if another instance did, or if there is a newer request: then the user has more to be erased.
        """
        store, request = self._store, f"{ERASURE}{account_id}"
        message = await self._last_message(account_id)
        # The request goes last: what a crash left of the others would count for the account's next request.
        await store.kv_delete(f"{ROWS_OF}{account_id}")
        await store.kv_delete(f"{FILES_OF}{account_id}")
        if message is None:
            return await store.kv_delete(request, bot, value=until)
        has_ended = await store.kv_replace_by_message(request, message, bot, value=until)
        if has_ended and self._send_queued is not None:
            await self._send_queued(message)
        return has_ended

    async def _last_message(self, account_id: int) -> QueuedMessage | None:
        try:
            language = (await self._store.profile(account_id)).language
        except AccountNotFound:  # known by a payment only, or a client of the API
            return None
        return make_message(account_id, self._texts.translator(language).html("privacy.erased"), ERASED)

    async def _erase(self, account_id: int, until: int, age: float) -> bool:
        """Erase an account's rows and files; False if not all of them are gone yet, or it is to wait.

        Jobs up to the id `until` must have ended, and messages from before the request, which has an age, be handled.
        A bulk action must have ended if it looks for a text in inputs: the text may be a prompt of the user.
        Rows that are erased are not erased again: the user may have begun something new.
        """
        store = self._store
        rows = await store.kv_get(f"{ROWS_OF}{account_id}")
        if rows is not None and rows.value == str(until):
            return rows.age >= SCRUB_SECONDS
        account = await store.account(account_id)
        if await self._is_in_use(account_id, until) or await store.waits_for_handling(account, age):
            return False
        await store.erase_jobs(account_id, until, PAGE)
        await store.erase_messages(account, PAGE)
        await store.erase_account(account_id, PAGE)
        if not await self._are_files_deleted(account_id, until):
            return False
        # The user may have had a result shown again meanwhile: then another round erases it.
        return not await self._is_in_use(account_id, until)

    async def _is_in_use(self, account_id: int, until: int) -> bool:
        if await self._store.open_jobs_until(account_id, until):
            return True
        open_actions = await self._store.open_bulk_actions(PAGE)
        return any(action.selection.filters and action.selection.filters.text for action in open_actions)

    async def _are_files_deleted(self, account_id: int, until: int) -> bool:
        """Ask for the deletion of the account's files. Its keys are revoked by now, so that none is added."""
        if not await self._store.api_keys(account_id, before=None, limit=1):
            return True  # only clients of the API have files in the media store
        asked, key = str(until), f"{FILES_OF}{account_id}"
        known = await self._store.kv_put_if_absent(key, asked)
        if known.removeprefix(FILES_DELETED) != asked:  # of an earlier request
            await self._store.kv_put(key, asked)
        return known == f"{FILES_DELETED}{asked}"

    async def erase_old_inputs(self, days: float) -> None:
        """Erase the inputs of jobs older than this many days; of those that have not ended, when they have."""
        if not days:
            return
        entry = await self._store.kv_get(ERASED_UNTIL)
        until = int(entry.value) if entry else 0
        await self._erase_awaited_inputs(())
        while jobs := await self._store.old_jobs(until, days * DAY, PAGE):
            await self._erase_awaited_inputs(await self._store.erase_inputs(jobs))
            until = jobs[-1]
            await self._store.kv_put(ERASED_UNTIL, str(until))

    async def _erase_awaited_inputs(self, more: Sequence[int]) -> None:
        """Erase the inputs of jobs that have ended since they became too old; `more` jobs are awaited from now on."""
        entry = await self._store.kv_get(AWAITED)
        before = json.loads(entry.value) if entry else []
        awaited = await self._store.erase_inputs([*before, *more])
        if awaited != before:
            await self._store.kv_put(AWAITED, json.dumps(awaited))
