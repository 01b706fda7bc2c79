"""After an erasure no column of any table holds a text of the user, or what operators wrote about the user."""

import json
from dataclasses import replace

import pytest

from genlock.domain.bulk import BulkAction, BulkKind, BulkSelection, BulkState
from genlock.domain.events import Event
from genlock.domain.field import FieldType
from genlock.domain.job_search import CountKind, JobCount, JobFilter
from genlock.domain.money import EntryKind
from genlock.engine.erasure import Erasure
from genlock.sandbox.kie.faults import Fault
from tests.bot.conftest import BOSS
from tests.bot.order_by_chat import sample
from tests.bot.pages import page
from tests.bot.rules import OPEN
from tests.bot.world import BotWorld, ChatUser, running_bot
from tests.marker import places_of, rows_in
from tests.stores.builders import SECRET

MARKER = "zqxsecret"
#: what operators do to an account, as the dashboard and the chat write it down
ACTIONS = (
    "credit",
    "debit",
    "ban",
    "unban",
    "message",
    "create_api_key",
    "revoke_api_key",
    "enable_webhook",
)
#: where the marker must be before the erasure, so that the test proves something
BEFORE = {
    "audit.detail",
    "drafts.body",
    "inbox.body",
    "jobs.input",
    "ledger.reason",
    "profiles.ban_reason",
    "profiles.name",
    "updates.body",
}


async def leave_texts(world: BotWorld, ann: ChatUser) -> None:
    """Write the marker wherever a user can."""
    await ann.write(f"/gen z-image {MARKER} fox")
    await ann.sees(page("order.done"))
    world.kie.faults.order(Fault.TASK_FAIL)
    await ann.write(f"/gen z-image {MARKER} failing fox")
    await world.quiet()
    await ann.write(f"/start {MARKER}")
    await ann.write(f"/promo {MARKER}")
    await ann.write(f"{MARKER} in an unfinished order")
    await ann.send("document", sample(FieldType.IMAGE), name=f"{MARKER}.png", caption=f"{MARKER} caption")
    await world.quiet()
    job = (await world.jobs(ann))[0]
    body = {"code": 200, "msg": MARKER, "data": {"taskId": job.task_id, "state": "success", "param": MARKER}}
    await world.engine.callback("kie", None, json.dumps(body).encode(), authenticated=False)
    await world.recorder.until(Event.ORPHAN_MATCHED)


async def write_about(world: BotWorld, ann: ChatUser) -> None:
    """Write the marker wherever operators write about a user."""
    store, number = world.store, ann.number
    await store.transfer(number, EntryKind.GRANT, 1000, "operator:1", f"{MARKER} reason")
    await store.transfer(number, EntryKind.GRANT, 1000, "admin:1", f"{MARKER} reason")
    await store.transfer(number, EntryKind.GRANT, 1000, "dashboard:1:1", f"{MARKER} reason")
    await store.set_ban(number, banned=True, reason=f"{MARKER} ban")
    for action in ACTIONS:
        await store.add_audit(
            bot=world.bot_id, key=f"test:{action}", actor="1", action=action, subject=str(number), detail=MARKER
        )


async def look_for(world: BotWorld, text: str, *, key: str) -> BulkAction:
    """Begin a bulk action on the orders with a text, as the dashboard does."""
    filters = JobFilter(text=text)
    action = await world.store.begin_bulk_action(
        BulkKind.RETRY,
        BulkSelection(filters=filters),
        author="1",
        request_key=key,
        expected=JobCount(number=1, kind=CountKind.EXACT),
    )
    for name, subject, after in (
        ("bulk_retry", f"bulk {action.id}", {"filters": filters.dump()}),
        ("export_jobs", "jobs", filters.dump()),
    ):
        detail = json.dumps({"after": after})
        await world.store.add_audit(key=f"{key}:{name}", actor="1", action=name, subject=subject, detail=detail)
    return action


async def test_after_an_erasure_nothing_holds_what_operators_looked_for_in_inputs(database_url: str) -> None:
    async with running_bot(database_url, rules=OPEN) as world:
        ann = await world.add_user(having=50)
        ended = await look_for(world, MARKER, key="first")
        assert await world.store.end_bulk_action(ended, BulkState.DONE)
        await world.store.add_audit(key="k", actor="1", action="export_jobs", subject="jobs", detail='{"after": {}}')
        assert await places_of(MARKER, database_url) == {"audit.detail", "bulk_actions.selection"}

        await Erasure(world.store).request(ann.number, "operator", "erase")
        assert await Erasure(world.store).run(world.bot_id, older_than=0.0) == [ann.number]

        assert await places_of(MARKER, database_url) == set()
        [action] = await world.store.bulk_actions(10)
        assert action.selection.filters == JobFilter(text="…")


async def test_an_erasure_waits_for_a_bulk_action_that_looks_for_a_text_in_inputs(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_bot(database_url, rules=OPEN) as world:
        ann = await world.add_user(having=50)
        running, store = await look_for(world, MARKER, key="first"), world.store
        erasure, erase_account = Erasure(store), store.erase_account
        await erasure.request(ann.number, "operator", "erase")
        assert await erasure.run(world.bot_id, older_than=0.0) == []
        assert "audit.detail" in await places_of(MARKER, database_url), (
            "what the user begins meanwhile is not erased, too"
        )
        [action] = await store.open_bulk_actions(10)
        assert action.selection == running.selection, "it is not carried out on other orders than was asked for"
        assert await store.end_bulk_action(running, BulkState.DONE)

        async def erase_while_another_begins(account_id: int, limit: int) -> None:
            await look_for(world, MARKER, key="second")
            await erase_account(account_id, limit)

        with monkeypatch.context() as patch:
            patch.setattr(store, "erase_account", erase_while_another_begins)
            assert await erasure.run(world.bot_id, older_than=0.0) == []
        [second] = await store.open_bulk_actions(10)
        assert await store.end_bulk_action(second, BulkState.DONE)

        assert await erasure.run(world.bot_id, older_than=0.0) == [ann.number]
        assert await places_of(MARKER, database_url) == set()


async def test_after_an_erasure_no_column_holds_a_text_of_the_user_or_about_the_user(database_url: str) -> None:
    async with running_bot(database_url, rules=OPEN) as world:
        ann = await world.add_user(MARKER, having=50)
        await leave_texts(world, ann)
        await write_about(world, ann)
        assert await places_of(MARKER, database_url) >= BEFORE

        await Erasure(world.store).request(ann.number, "operator", "erase")
        assert await Erasure(world.store).run(world.bot_id, older_than=0.0) == [ann.number]
        assert await places_of(MARKER, database_url) == set()


async def confirm(boss: ChatUser, command: str) -> None:
    """Send a command of the operators, and press the button that carries it out."""
    await boss.write(f"/admin {command}")
    asked = boss.from_bot[-1]
    await boss.press(asked, asked.buttons[0]["callback_data"])


async def test_after_an_erasure_no_message_of_an_operator_holds_the_users_name_or_what_was_said_about_the_user(
    database_url: str,
) -> None:
    async with running_bot(database_url, rules=replace(OPEN, admin_ids=frozenset({BOSS}))) as world:
        boss, ann = await world.add_user("Boss"), await world.add_user(MARKER, having=50)
        await ann.write("/start")
        await boss.write(f"/admin user {MARKER}")
        await confirm(boss, f"ban {ann.number} {MARKER} was rude")
        await boss.write("/start")
        await confirm(boss, f"erase {ann.number}")
        assert "updates.body" in await places_of(MARKER, database_url)

        assert await Erasure(world.store).run(world.bot_id, older_than=0.0) == [ann.number]
        assert await places_of(MARKER, database_url) == set()
        assert "/start" in await bodies(database_url), "what is not about users stays"


async def test_after_an_erasure_no_reply_to_the_user_in_a_group_holds_what_the_user_wrote(database_url: str) -> None:
    async with running_bot(database_url, rules=OPEN) as world:
        ann, bob = await world.add_user(MARKER, having=50), await world.add_user("Bob")
        group = world.telegram.group("Friends", [ann.client, bob.client])
        wish = await ann.write(f"/help {MARKER}", chat=group.id)
        await bob.write("/help with that", chat=group.id, reply_to=wish)
        await bob.write("/help with something else", chat=group.id)

        await Erasure(world.store).request(ann.number, "operator", "erase")
        assert await Erasure(world.store).run(world.bot_id, older_than=0.0) == [ann.number]
        assert await places_of(MARKER, database_url) == set()
        assert "with something else" in await bodies(database_url), "other users' messages stay"


async def test_a_callback_that_comes_after_the_erasure_is_stored_without_its_body(database_url: str) -> None:
    async with running_bot(database_url, rules=OPEN) as world:
        ann = await world.add_user(having=50)
        await ann.write(f"/gen z-image {MARKER} fox")
        await ann.sees(page("order.done"))
        await world.quiet()
        [job] = await world.jobs(ann)
        await Erasure(world.store).request(ann.number, "operator", "erase")
        assert await Erasure(world.store).run(world.bot_id, older_than=0.0) == [ann.number]

        body = {"code": 200, "msg": MARKER, "data": {"taskId": job.task_id, "state": "success", "param": MARKER}}
        content = json.dumps(body).encode()
        await world.engine.callback("kie", f"{job.id}.{SECRET}", content)
        await world.engine.callback("kie", None, content, authenticated=False)
        await world.recorder.until(Event.ORPHAN_MATCHED, 2)

        assert await places_of(MARKER, database_url) == set()


async def bodies(database_url: str) -> str:
    return " ".join(str(row["body"]) for table, row in await rows_in(database_url) if table == "updates")
