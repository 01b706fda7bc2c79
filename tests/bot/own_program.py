"""Orders that a program of a user has made through the API, with a key of the user's account."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from genlock.channels.api.address import ApiAddress
from genlock.domain.delivery import dump_parts
from genlock.domain.job import Job
from genlock.domain.stored_file import StoredFile


def made_by_a_program(tmp_path: Path, job: Job) -> None:
    """Change an order into one that a program of the user has made through the API."""
    file = StoredFile(key="20261120/1/1-0.png", content_type="image/png", size=100, sha256="0" * 64)
    parts = dump_parts(replace(part, file=str(file), message="0") for part in job.parts)
    address = str(ApiAddress(request_hash="x", metadata={}))
    with closing(sqlite3.connect(next(tmp_path.glob("*.db")))) as database, database:
        database.execute(
            "UPDATE jobs SET channel = 'api', bot = '', address = ?, parts = ?, placeholder = '0' WHERE id = ?",
            (address, parts, job.id),
        )
