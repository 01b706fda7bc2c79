"""The Telegram channel, built on python-telegram-bot's `Bot`."""

import os

# python-telegram-bot warns at every 429 unless it is asked now for what its next version does: times as timedelta.
os.environ.setdefault("PTB_TIMEDELTA", "true")
