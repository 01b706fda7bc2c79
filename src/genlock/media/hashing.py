"""The hash by which a copy of a file is compared."""

import hashlib
from typing import IO

CHUNK = 1_000_000


def hash_file(file: IO[bytes]) -> str:
    """Return the SHA-256 of the whole file as hex digits. Reads from disk: call it in a thread."""
    digest = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(CHUNK):
        digest.update(chunk)
    return digest.hexdigest()
