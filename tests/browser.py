"""A real browser: the system's Chromium, or Debian's package, driven by Playwright."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

from genlock.sandbox.processes import AS_ROOT
from tests.debian import find_program

#: it stays on this machine: nothing is fetched, synced or reported
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    program, env = find_program("chromium", "usr/lib/chromium/chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program,
            args=["--disable-gpu", "--disable-quic", *QUIET],
            chromium_sandbox=not AS_ROOT,
            env={**os.environ, **env},
        )
        try:
            yield browser
        finally:
            await browser.close()
