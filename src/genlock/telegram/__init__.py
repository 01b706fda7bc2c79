"""Telegram, by python-telegram-bot's `Bot`."""

import os

# Its next version gives times as timedelta, and this one warns at every 429 unless it is asked to do so already.
os.environ.setdefault("PTB_TIMEDELTA", "true")
