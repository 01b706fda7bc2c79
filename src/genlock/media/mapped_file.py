"""Read a file on disk as if it were bytes in memory, without loading it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from typing import IO

Content = bytes | mmap


@contextmanager
def mapped(file: IO[bytes]) -> Iterator[Content]:
    """Map the whole content of a file that has a descriptor."""
    file.flush()
    if not os.fstat(file.fileno()).st_size:
        yield b""  # an empty file cannot be mapped
        return
    with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        yield content
