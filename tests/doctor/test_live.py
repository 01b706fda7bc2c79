"""`genlock doctor --live`, against the simulated Telegram: the table shows its answers, and the chat is left clean."""

import asyncio
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
from genlock.doctor.check_failed import CheckFailed
from genlock.doctor.live import CALLS, NO_ANSWER, NOT_MODIFIED, REFUSED, LiveTrial, Observation
from genlock.doctor.live_files import KINDS, make_file
from genlock.doctor.live_report import examine_live, live_table
from genlock.log import Mask, Silent
from genlock.media.sniff import recognise
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from genlock.settings import Settings
from tests.channels.telegram.harness import NoLimits
from tests.media.file_server import running_file_server


@dataclass
class Chat:
    telegram: TelegramSimulator
    ann: SimulatedUser
    picture_url: str
    caller: Caller

    async def run(self, **options: Any) -> dict[str, Observation]:
        mask = Mask([self.telegram.token])
        found = await LiveTrial(self.caller, self.ann.id, mask, picture_url=self.picture_url, **options).run()
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
    assert button == "inline keyboard button URL 'http://' is invalid: Wrong HTTP URL"


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
        ({"telegram_api_url": "http://127.0.0.1:9"}, "does not answer at http://127.0.0.1:9"),
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

    async with asyncio.timeout(5):
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


def test_the_files_are_what_they_are_called() -> None:
    for kind in (*KINDS, "voice"):
        content, name = make_file(kind)
        assert 10 < len(content) < 10_000, name
        if kind != "document":
            assert recognise(content).suffix == Path(name).suffix, name
