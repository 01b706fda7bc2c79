"""The Telegram channel, built on python-telegram-bot's `Bot`."""

import os

# python-telegram-bot warns at every 429 unless times are timedelta values, as in its next major version.
os.environ.setdefault("PTB_TIMEDELTA", "true")
