"""The tests pass when they are started with nohup, or in the background of a script."""

import subprocess
import sys

import pytest

SCRIPT = """
import signal
from tests.ignored_signals import SENT, heed_ignored_signals
for number in SENT:
    signal.signal(number, signal.SIG_IGN)
heed_ignored_signals()
print(any(signal.getsignal(number) is signal.SIG_IGN for number in SENT))
"""


@pytest.mark.process
def test_programs_of_the_tests_end_by_signals_that_the_shell_has_ignored() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True, text=True)
    assert done.stdout == "False\n"
