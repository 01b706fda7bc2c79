"""Signals that the shell has ignored before it started the tests, as `nohup` and scripts in the background do."""

import signal

#: child processes inherit an ignored signal, and tests send these to them
SENT = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def heed_ignored_signals() -> None:
    """Give each ignored signal its default effect, so that the programs under test end by it."""
    for number in SENT:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
