"""`genlock doctor --live`, against the simulated Telegram: the table shows its answers, and the chat is left clean."""

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from genlock import cli
from genlock.app.databases import open_store
from genlock.channels.telegram.caller import Caller, make_bot
from genlock.doctor import live as live_module
from genlock.doctor import live_report
from genlock.doctor.check_failed import CheckFailed
from genlock.doctor.live import CALLS, NO_ANSWER, NOT_MADE, NOT_MODIFIED, REFUSED, LiveTrial, Observation
from genlock.doctor.live_files import KINDS, make_file
from genlock.doctor.live_report import Interruption, examine_live, live_table
from genlock.log import Mask, Silent
from genlock.media.sniff import recognise
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from genlock.settings import Settings
from tests.changes import PATIENCE_SECONDS
from tests.channels.telegram.harness import NoLimits
from tests.media.file_server import running_file_server


@dataclass
class Chat:
    telegram: TelegramSimulator
    ann: SimulatedUser
    picture_url: str
    caller: Caller

    async def run(self, *, chat: int | None = None, **options: Any) -> dict[str, Observation]:
        mask = Mask([self.telegram.token])
        found = await LiveTrial(self.caller, chat or self.ann.id, mask, picture_url=self.picture_url, **options).run()
        assert len({observation.attempt for observation in found}) == len(found)
        return {observation.attempt: observation for observation in found}


@pytest.fixture
async def chat(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Chat]:
    async with running_telegram() as telegram, running_file_server() as files:
        ann = telegram.add_user("Ann")
        monkeypatch.setattr(live_module, "ABSENT_URL", "http://127.0.0.1:9/absent.png")
        content, _ = make_file("photo")
        caller = Caller(make_bot(telegram.token, telegram.url), NoLimits(), Silent())
        yield Chat(telegram, ann, files.put("logo.png", content, "image/png"), caller)
        await caller.close()


async def test_every_transition_repeat_and_refusal_is_tried_and_recorded(chat: Chat) -> None:
    found = await chat.run()

    for kind in KINDS:
        assert found[f"text → {kind}, upload"].outcome == kind
        assert found[f"text → {kind}, by file id"].outcome == kind
        assert found[f"{kind} → the same {kind}, by file id"].outcome == NOT_MODIFIED
        assert found[f"{kind}: the same caption again"].outcome == NOT_MODIFIED
        assert found[f"{kind} → text"].outcome == REFUSED
        assert "no text in the message" in found[f"{kind} → text"].answer
    assert found["photo → video, upload"].outcome == "video"
    assert found["document → photo, upload"].outcome == "photo"
    assert found["text → photo, by URL"].outcome == "photo"
    assert found["the same text again"].read_as == "MessageNotModified"
    assert found["deleted message: a text"].read_as == "PlaceholderGone"
    for attempt in (
        "text → photo, by a URL without a host",
        "text → photo, by an invalid file id",
        "text → photo, by the file id of a video",
        "text of 4097 characters",
        "caption of 1025 characters",
        "button with the URL 'http://'",
        "deleted message: a photo, upload",
        "delete it again",
    ):
        assert found[attempt].outcome == REFUSED, found[attempt]
        assert found[attempt].answer


async def test_refusals_are_quoted_as_telegram_wrote_them(chat: Chat) -> None:
    found = await chat.run()

    assert found["text of 4097 characters"].answer == "MESSAGE_TOO_LONG"
    button = found["button with the URL 'http://'"].answer
    assert button == "inline keyboard button URL 'http://' is invalid: URL host is empty"


async def test_what_was_observed_is_reported_if_the_bot_cannot_go_on(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def blocked(*_: Any) -> None:
        chat.telegram.faults.switch(Fault.REFUSED, method="sendMessage", text="Forbidden: bot was blocked by the user")

    monkeypatch.setattr(LiveTrial, "_repeats", blocked)
    found = await chat.run()

    assert found["text → document, upload"].outcome == "document"
    assert "bot was blocked by the user" in list(found.values())[-1].answer
    assert len(chat.ann.messages) == 0, "the chat is left clean"


async def test_a_long_429_is_waited_for(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """After many edits Telegram asks to wait for one to five minutes."""
    waited: list[float] = []
    real_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds > 1:
            waited.append(seconds)
            chat.telegram.limiter.unblock()
        await real_sleep(0 if seconds > 1 else seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    chat.telegram.faults.once(Fault.TOO_MANY, method="editMessageMedia", seconds=137)
    found = await chat.run()

    assert waited == [137]
    assert [observation for observation in found.values() if not observation.as_expected] == []


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"telegram_token": SecretStr("42:revoked")}, "does not know the token"),
        (
            {"telegram_api_url": "http://127.0.0.1:9"},
            r"does not answer at http://127.0.0.1:9 \(Telegram cannot be reached\)",
        ),
    ],
)
async def test_a_bot_that_telegram_does_not_answer_is_reported_at_once(
    chat: Chat, tmp_path: Path, wrong: dict[str, Any], why: str
) -> None:
    url = f"sqlite:///{tmp_path}/genlock.db"
    await (await open_store(url, observer=Silent())).close()
    settings = Settings(
        telegram_token=SecretStr(chat.telegram.token), telegram_api_url=chat.telegram.url, database_url=url
    ).model_copy(update=wrong)

    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(CheckFailed, match=why):
            await examine_live(settings, chat.ann.id, keep=False, picture_url="")


async def test_the_messages_are_deleted_unless_they_are_to_be_kept(chat: Chat) -> None:
    before = len(chat.ann.messages)
    await chat.run()
    assert len(chat.ann.messages) == before

    await chat.run(keep=True)
    assert len(chat.ann.messages) > before + 10


async def test_the_operator_is_told_about_how_many_calls_it_takes(chat: Chat) -> None:
    await chat.run()
    methods = ("sendMessage", "sendVoice", "editMessageText", "editMessageMedia", "editMessageCaption", "deleteMessage")
    calls = sum(len(chat.telegram.calls(method)) for method in methods)
    assert abs(calls - CALLS) < 10


async def test_a_chat_that_the_bot_cannot_write_to_is_reported_and_nothing_is_tried(chat: Chat) -> None:
    trial = LiveTrial(chat.caller, 999_999, Mask([]))
    with pytest.raises(CheckFailed, match=r"cannot write to the chat .*press Start"):
        await trial.run()
    assert trial.observations == []


async def test_the_table_shows_what_differs_and_no_secret(chat: Chat) -> None:
    found = list((await chat.run()).values())
    table = live_table([*found, replace(found[0], attempt="a | b\x1b[2J", outcome=NO_ANSWER)], server=chat.telegram.url)

    assert chat.telegram.token not in table
    assert str(chat.ann.id) not in table
    assert "\x1b" not in table
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) == len(found) + 2
    assert all(row.replace("\\|", "").count("|") == 6 for row in rows)
    assert rows[-1].startswith("| a \\| b [2J |")
    assert "≠ no answer" in rows[-1]
    assert "Not tested: edits after the user has blocked the bot" in table


async def test_it_uses_the_configured_bot_and_the_shared_limits(
    chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/genlock.db"
    await (await open_store(url, observer=Silent())).close()
    settings = Settings(
        telegram_token=SecretStr(chat.telegram.token),
        telegram_api_url=chat.telegram.url,
        database_url=url,
    )

    async def short(trial: LiveTrial) -> list[Observation]:
        await trial._text("first")
        return trial.observations

    monkeypatch.setattr(LiveTrial, "run", short)
    assert await examine_live(settings, chat.ann.id, keep=False, picture_url="") == []

    with closing(sqlite3.connect(tmp_path / "genlock.db")) as database:
        keys = {key for (key,) in database.execute("SELECT key FROM limits")}
    assert f"telegram:{chat.telegram.token.partition(':')[0]}:{chat.ann.id}" in keys
    assert len(chat.ann.messages) >= 1


def test_the_command_says_what_it_sends_and_asks_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    asked = CliRunner().invoke(cli.app, ["doctor", "--live", "-100123"], input="n\n")
    assert asked.exit_code == 1
    assert "silent messages to chat -100123" in asked.output
    assert "They are deleted at the end." in asked.output

    refused = CliRunner().invoke(cli.app, ["doctor", "--live", "1", "--yes"])
    assert refused.exit_code == 1
    assert "GENLOCK_TELEGRAM_TOKEN is not set" in refused.output


async def test_an_attempt_is_not_made_if_its_message_shows_something_else(chat: Chat) -> None:
    """Else the table would say that Telegram turned a photo into a text, which was a text all the time."""
    group = chat.telegram.group("Friends", [chat.ann], kind="supergroup")
    await group.forbid("photo")
    found = await chat.run(chat=group.id)

    assert found["text → photo, upload"].outcome == REFUSED
    for attempt in ("photo → text", "photo → video, upload", "photo: the same caption again"):
        assert (found[attempt].outcome, found[attempt].answer) == (
            NOT_MADE,
            "an earlier attempt left the message as: text",
        )
    assert found["video → text"].outcome == REFUSED
    assert group.messages == [], "the chat is left clean"


async def test_after_a_lost_answer_nothing_is_claimed_of_what_the_message_shows(chat: Chat) -> None:
    chat.telegram.faults.once(Fault.DROP_AFTER, method="editMessageMedia")
    found = await chat.run()

    assert found["text → photo, upload"].outcome == NO_ANSWER
    assert found["photo → text"].outcome == NOT_MADE
    assert "not known" in found["photo → text"].answer
    assert found["video → text"].outcome == REFUSED


async def test_a_message_that_was_not_deleted_in_its_attempt_is_removed_at_the_end(chat: Chat) -> None:
    chat.telegram.faults.once(Fault.REFUSED, method="deleteMessage", text="Bad Request: message can't be deleted")
    found = await chat.run()

    assert found["delete a message"].outcome == REFUSED
    assert found["deleted message: a text"].outcome == NOT_MADE
    assert len(chat.ann.messages) == 0


async def test_a_deletion_whose_answer_is_lost_is_repeated_at_the_end(chat: Chat) -> None:
    chat.telegram.faults.switch(Fault.DROP_AFTER, method="deleteMessage", times=2)
    found = await chat.run()

    assert found["delete a message"].outcome == NO_ANSWER
    assert not [attempt for attempt in found if attempt.startswith("remove")]
    assert len(chat.ann.messages) == 0


async def test_a_message_whose_number_was_lost_is_named_in_the_table(chat: Chat) -> None:
    chat.telegram.faults.once(Fault.DROP_AFTER, method="sendVoice")
    found = await chat.run()

    assert [message.kind for message in chat.ann.messages] == ["voice"]
    assert "delete it by hand" in found["remove a message that may be in the chat"].answer


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        ({"fault": Fault.TOO_MANY, "seconds": 400}, r"Telegram asks the bot to wait 400 s"),
        ({"fault": Fault.REFUSED, "text": "Bad Request: FROZEN_METHOD_INVALID"}, r"frozen the bot .*@BotSupport"),
        ({"fault": Fault.REFUSED, "text": "Unauthorized"}, r"does not know the token"),
        ({"fault": Fault.REFUSED, "text": "Bad Request: not enough rights to send text messages to the chat"}, "right"),
        ({"fault": Fault.DROP_AFTER}, r"delete it by hand"),
    ],
    ids=["too many calls", "frozen", "token", "no right", "lost"],
)
async def test_why_the_trial_could_not_begin_is_said_with_what_to_do(
    chat: Chat, fault: dict[str, Any], remedy: str
) -> None:
    chat.telegram.faults.switch(fault.pop("fault"), method="sendMessage", **fault)
    with pytest.raises(CheckFailed, match=remedy) as failed:
        await chat.run()
    assert "press Start" not in str(failed.value)


async def test_a_bot_without_rights_in_a_channel_is_to_be_given_them(chat: Chat) -> None:
    channel = chat.telegram.group("News", [chat.ann], kind="channel")
    await channel.set_bot("member")
    with pytest.raises(CheckFailed, match="add the bot to the chat with the right to write"):
        await chat.run(chat=channel.id)


async def test_a_group_that_became_a_supergroup_is_named_by_its_new_id(chat: Chat) -> None:
    group = chat.telegram.group("Friends", [chat.ann])
    new = await group.migrate()
    with pytest.raises(CheckFailed, match=f"name chat {new.id}"):
        await chat.run(chat=group.id)


@pytest.mark.parametrize(
    ("fault", "why", "words"),
    [
        (
            {"fault": Fault.REFUSED, "text": "Bad Request: FROZEN_METHOD_INVALID"},
            "frozen the bot",
            "FROZEN_METHOD_INVALID",
        ),
        ({"fault": Fault.REFUSED, "text": "Unauthorized"}, "does not know the token", "Unauthorized"),
        ({"fault": Fault.TOO_MANY, "seconds": 400}, "wait 400 s", "Too Many Requests: retry after 400"),
    ],
    ids=["frozen", "token", "too many calls"],
)
async def test_a_trial_ends_when_telegram_refuses_all_further_calls(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any], why: str, words: str
) -> None:
    """Each further call would wait a minute or more for the same answer."""

    async def refuse(*_: Any) -> None:
        chat.telegram.faults.switch(fault.pop("fault"), **fault)

    monkeypatch.setattr(LiveTrial, "_repeats", refuse)
    before = len(chat.telegram.journal)
    async with asyncio.timeout(PATIENCE_SECONDS):
        found = list((await chat.run()).values())

    assert [observation.outcome for observation in found[-3:]] == [NO_ANSWER, NOT_MADE, NO_ANSWER]
    assert why in found[-2].answer
    assert found[-3].answer == found[-1].answer == words
    assert found[-1].attempt == "remove the last 6 messages"
    assert len(chat.telegram.journal) - before < 20


@pytest.mark.parametrize("method", ["editMessageCaption", "sendVoice"])
async def test_an_interrupted_trial_deletes_its_messages_and_reports_what_it_saw(
    chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    url = f"sqlite:///{tmp_path}/genlock.db"
    await (await open_store(url, observer=Silent())).close()
    monkeypatch.setattr(live_report, "TelegramRateLimiter", lambda *_: NoLimits())
    settings = Settings(
        telegram_token=SecretStr(chat.telegram.token), telegram_api_url=chat.telegram.url, database_url=url
    )
    chat.telegram.faults.once(Fault.DELAY_AFTER, method=method, seconds=0.2)  # the answer comes after the signal
    told: list[str] = []
    interruption = Interruption(lambda: told.append("once"))
    trial = asyncio.create_task(
        examine_live(settings, chat.ann.id, keep=False, picture_url=chat.picture_url, interruption=interruption)
    )
    await chat.telegram.until(lambda: chat.telegram.calls(method))
    signal.raise_signal(signal.SIGTERM)
    found = await trial

    assert (interruption.signal, told) == (signal.SIGTERM, ["once"])
    assert (found[-1].outcome, found[-1].answer) == (NOT_MADE, "the trial was interrupted")
    assert len(chat.ann.messages) == 0


@pytest.mark.parametrize(
    ("outcome", "ended_by", "code"),
    [("photo", None, 0), (REFUSED, None, 1), ("photo", signal.SIGINT, 130), (REFUSED, signal.SIGTERM, 143)],
)
def test_the_exit_code_says_whether_every_row_is_as_expected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcome: str, ended_by: int | None, code: int
) -> None:
    async def examine(*_: Any, interruption: Interruption, **__: Any) -> list[Observation]:
        interruption.signal = ended_by
        return [Observation(attempt="text → photo, upload", expected="photo", outcome=outcome)]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(live_report, "examine_live", examine)
    done = CliRunner().invoke(cli.app, ["doctor", "--live", "1", "--yes"])
    assert done.exit_code == code
    assert "text → photo, upload" in done.output


def test_the_files_are_what_they_are_called() -> None:
    for kind in (*KINDS, "voice"):
        content, name = make_file(kind)
        assert 10 < len(content) < 10_000, name
        if kind != "document":
            assert recognise(content).suffix == Path(name).suffix, name
