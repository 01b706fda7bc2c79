"""A file of one good model, to be changed by tests."""

from pathlib import Path

GOOD = """
vendor = "Maker"
[models."maker/one"]
title = "One"
category = "text-to-image"
outputs = ["image"]
expected_seconds = 10
deadline_seconds = 60
prices = [{ when = { size = "1K" }, credits = 1.5 }, { when = { size = "2K" }, credits = 3 }]
fields = [
    { name = "prompt", type = "text", required = true, max_length = 10 },
    { name = "size", type = "choice", choices = ["1K", "2K"], default = "1K" },
    { name = "count", type = "integer", min = 1, max = 4, default = 1 },
]
"""


def write(folder: Path, text: str, name: str = "maker.toml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder
