"""Credits that an operator adds or deducts: once, exactly, and never more than the balance."""

import asyncio

import pytest

from genlock.app.databases import open_store
from genlock.log import Silent
from tests.cli.shell import Shell, order_a_job

pytestmark = pytest.mark.process


def test_credits_with_a_key_are_added_once(shell: Shell) -> None:
    order_a_job(shell.url)
    for _ in range(2):
        assert shell.run("wallet", "credit", "1", "2.5", "--reason", "sorry", "--key", "k").returncode == 0
    assert shell.json("wallet", "show", "1")["available"] == 5_000 - 800 + 2_500

    async def audited() -> list[tuple[str, str, str, str]]:
        store = await open_store(shell.url, observer=Silent())
        lines = await store.audit(5)
        await store.close()
        return [(line.actor, line.action, line.subject, line.detail) for line in lines]

    assert asyncio.run(audited()) == [("command", "credit", "1", "2.5: sorry")]


def test_more_than_the_balance_cannot_be_deducted(shell: Shell) -> None:
    order_a_job(shell.url)
    done = shell.run("wallet", "credit", "1", "-99", "--reason", "fraud")
    assert done.returncode == 1
    assert done.stderr == "Nothing was deducted: the balance is 4.2, less than 99.\n"
    assert shell.json("wallet", "show", "1")["available"] == 5_000 - 800


def test_large_amounts_are_shown_in_full(shell: Shell) -> None:
    order_a_job(shell.url)
    done = shell.run("wallet", "credit", "1", "1234567.125", "--reason", "a year")
    assert done.stdout.endswith("account 1 has 1234571.325 credits available.\n")
    assert shell.run("wallet", "show", "1").stdout.startswith("available 1234571.325, held 0.8 credits\n")


@pytest.mark.parametrize("credits_", ["nan", "inf", "1e9", "1,000", "0.0004", "9999999999", "0", "-"])
def test_what_is_not_an_amount_of_credits_changes_nothing(shell: Shell, credits_: str) -> None:
    order_a_job(shell.url)
    for command in (
        ("wallet", "credit", "1", credits_, "--reason", "x"),
        ("api-keys", "create", "1", "--spend-limit", credits_),
    ):
        if command[0] == "wallet" or credits_ not in {"0", "-"}:
            done = shell.run(*command)
            assert (done.returncode, "Traceback" in done.stderr) == (2, False), (command, done.stderr)
    assert shell.json("wallet", "show", "1")["available"] == 5_000 - 800
    assert shell.json("api-keys", "ls") == []


def test_a_negative_number_deducts_credits(shell: Shell) -> None:
    order_a_job(shell.url)
    for credits_ in ("-1", "-1.5"):
        done = shell.run("wallet", "credit", "1", credits_, "--reason", "a mistake")
        assert done.returncode == 0, done.stderr
    assert shell.json("wallet", "show", "1")["available"] == 5_000 - 800 - 2_500
    slip = shell.run("wallet", "credit", "1", "2", "--resaon", "sorry", "--reason", "sorry")
    assert slip.returncode == 2
    assert "--resaon" in slip.stderr
    assert shell.json("wallet", "show", "1")["available"] == 5_000 - 800 - 2_500
