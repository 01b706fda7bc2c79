import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], object], seconds: float = 10) -> None:
    """Poll until the condition holds. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)
