"""A real Chromium or Chrome, driven by Playwright, for the tests of the chat page."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, async_playwright, expect
from playwright.sync_api import Error, sync_playwright

from genlock.sandbox.processes import AS_ROOT
from tests.debian import install_packages, unpack_packages, unpacked_program
from tests.programs import Program, ProgramMissing, recorded

VARIABLE = "GENLOCK_TEST_CHROMIUM"
#: the browser without its windows: a page costs a third less CPU
SHELLS = ("chromium-headless-shell", "chrome-headless-shell")
NAMES = (*SHELLS, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: Debian's packages of a browser, and the program in each; an old release has no headless shell
PACKAGES = {
    "chromium-headless-shell": "usr/lib/chromium/chromium-headless-shell",
    "chromium": "usr/lib/chromium/chromium",
}
#: the chat page is full of emoji, and the fonts that Chromium's packages bring have none
EMOJI = "fonts-noto-color-emoji"
#: how long a page may take to show what a test expects; the machine may be busy
EXPECT_SECONDS = 30
DOWNLOAD_SECONDS = 300
CONNECT_SECONDS = 10
#: the browser sends nothing to its vendor
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
#: Chromium loads pages of its own for the address bar of every window, which costs three times what an empty page does.
#: It also reads the language of every page, and what a page is about. This replaces Playwright's list, of which the
#: names of the last two lines are.
UNUSED = (
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup",
    "HistoryEmbeddings", "PageContentAnnotations", "SegmentationPlatform", "SpareRendererForSitePerProcess",
    "HttpsUpgrades", "LensOverlay", "MediaRouter", "OptimizationHints", "PaintHolding",
    "DialMediaRouteProvider", "GlobalMediaControls", "RenderDocument", "Translate",
)  # fmt: skip
#: without a graphics card, in as few processes as possible
PLAIN = ("--disable-gpu", "--disable-gpu-rasterization", "--disable-gpu-compositing", "--in-process-gpu")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    program = recorded("chromium")
    expect.set_options(timeout=EXPECT_SECONDS * 1000)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**_launch_options(program))
        try:
            yield browser
        finally:
            await browser.close()


def _launch_options(program: Program) -> dict[str, Any]:
    return {
        "executable_path": program.path,
        "args": ["--disable-quic", f"--disable-features={','.join(UNUSED)}", *PLAIN, *QUIET],
        "env": {**os.environ, **program.environment},
    }


def find_browser() -> Program:
    """Return the first browser that works: the one named by the variable, on PATH, Playwright's own, Debian's."""
    if named := os.environ.get(VARIABLE):
        program = Program(Path(named))
        if problem := problem_of(program):
            raise ProgramMissing(f"{VARIABLE} is {named}, which cannot be used: {problem}")
        return program
    problems: list[str] = []
    for program in _candidates(problems):
        if not (problem := problem_of(program)):
            return program
        problems.append(f"{program.path}: {problem}")
    raise ProgramMissing(
        "The tests need a browser: install Chromium or Google Chrome, "
        f"or set {VARIABLE} to its path. ({'; '.join(problems)})"
    )


def _candidates(problems: list[str]) -> Iterator[Program]:
    """Yield each browser there is, then each that can be had; note why one cannot."""
    own = _of_playwright()
    for bring in (_found, _download, _take_package):
        try:
            yield from bring(own)
        except ProgramMissing as error:
            problems.append(str(error))


def _of_playwright() -> Program:
    with sync_playwright() as playwright:
        return Program(Path(playwright.chromium.executable_path))


def _found(own: Program) -> Iterator[Program]:
    yield from _on_path()
    if own.path.exists():
        yield own


def _on_path() -> Iterator[Program]:
    yield from (Program(Path(found)) for name in NAMES if (found := shutil.which(name)))


def _download(own: Program) -> Iterator[Program]:
    if own.path.exists():
        return
    sys.stderr.write("Downloading Playwright's Chromium ...\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "playwright", "install", "--no-shell", "chromium"],
        env={**os.environ, "PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": str(CONNECT_SECONDS * 1000)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # the download is a grandchild, which ends with the group
    )
    try:
        process.wait(DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if not own.path.exists():
        raise ProgramMissing("Playwright cannot download its Chromium here")
    yield own


def _take_package(_own: Program) -> Iterator[Program]:
    if shutil.which("apt-get") is None:
        raise ProgramMissing("there is no apt-get to take a package with")
    problems: list[str] = []
    for package, program in PACKAGES.items():
        sys.stderr.write(f"{'Installing' if AS_ROOT else 'Unpacking'} Debian's {package} ...\n")
        try:
            if AS_ROOT:
                install_packages(package, EMOJI)
                yield from _on_path()
            else:
                yield unpacked_program(unpack_packages(package, EMOJI), program)
        except ProgramMissing as error:
            problems.append(str(error))
    if problems:
        raise ProgramMissing("; ".join(problems))


def problem_of(program: Program) -> str:
    """Say what a browser lacks that the tests rely on: it starts, draws text, and plays H.264."""
    try:
        with sync_playwright() as playwright, playwright.chromium.launch(**_launch_options(program)) as browser:
            page = browser.new_page()
            page.set_content("<span>Жук</span><video></video>")
            draws = page.evaluate("document.querySelector('span').offsetWidth > 0")
            plays = page.evaluate("""document.querySelector("video").canPlayType('video/mp4; codecs="avc1.42E01E"')""")
    except Error as error:
        lines = [line for line in str(error).splitlines() if "[err]" in line] or str(error).splitlines()
        return f"it does not start: {lines[0].strip()}"
    if not draws:
        return "it draws no text: install a font such as DejaVu"
    return "" if plays else "it cannot play H.264"
