"""Reads stored copies of results, and compares them with the hash that was recorded at the delivery."""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

from genlock.api.parts import ApiParts
from genlock.domain.errors import MediaStoreError
from genlock.domain.events import Event
from genlock.domain.stored_file import StoredFile


async def read_whole(parts: ApiParts, stored: StoredFile) -> AsyncGenerator[bytes, None]:
    """Yield a copy, its last piece only if all of it is what was delivered. Raises MediaStoreError.

    Where the answer has announced its length, the client sees that a damaged copy is cut off.
    """
    digest, held = hashlib.sha256(), b""
    async with aclosing(parts.media.read(stored.key, 0, stored.size)) as chunks:
        async for chunk in chunks:
            digest.update(chunk)
            if held:
                yield held
            held = chunk
    if digest.hexdigest() != stored.sha256:
        parts.observer.event(Event.MEDIA_DAMAGED, key=stored.key)
        raise MediaStoreError(f"the stored copy {stored.key} is damaged")
    yield held
