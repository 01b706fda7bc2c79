import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], object], seconds: float = 10) -> None:
    """Look again and again until it holds."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what is waited for makes no event
            await asyncio.sleep(0.01)
