"""Descriptions of refused calls, by the error that each must become."""

import tomllib
from pathlib import Path

ANSWERS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
