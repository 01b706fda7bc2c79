"""Examines pages with axe: what cannot be used with a keyboard or a screen reader, or is hard to read."""

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Page

SERIOUS = ("serious", "critical")


async def violations_of(page: Page) -> list[dict[str, Any]]:
    """Return what axe finds on the page that is open. Its script is loaded once per page: half a megabyte to parse."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE_SCRIPT)
    found: list[dict[str, Any]] = await page.evaluate(
        "axe.run({ resultTypes: ['violations'] }).then((results) => results.violations)"
    )
    return found


async def serious_violations_of(page: Page) -> list[dict[str, Any]]:
    return [violation for violation in await violations_of(page) if violation["impact"] in SERIOUS]
