"""The example package, installed, and a broken one beside it, in a service that is really started."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path

import aiohttp
import pytest

from genlock.doctor.doctor import Doctor
from genlock.sandbox.fleet import simulator_settings
from genlock.sandbox.instance import Instance
from genlock.sandbox.kie.simulator import running_kie
from genlock.sandbox.telegram.simulator import running_telegram
from genlock.settings import Settings
from tests.changes import poll_until
from tests.packaged import CATALOG
from tests.plugins.packages import Packages, provider_source

pytestmark = pytest.mark.process
EXAMPLE = Path(__file__).parents[2] / "examples" / "genlock-echo"
LINES_MAX = 100
KEY = "the-secret-key-of-the-echo"
DASHBOARD = "the-password-of-the-dashboard"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the example, installed without any access to a registry, and a package that cannot be imported."""
    site = tmp_path / "site"
    options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    command = (sys.executable, "-m", "pip", "install", *options, "--target", str(site), str(EXAMPLE))
    subprocess.run(command, check=True, timeout=100, cwd=tmp_path)
    packages = Packages(site, monkeypatch)
    packages.add("broken-pack", "import no_such_module", providers={"broken": "broken_pack:plugin"})
    raises = "raise RuntimeError(f'refused: {settings.key.get_secret_value()}')"
    source = provider_source("leaky", "adapter = Adapter()", raises)
    packages.add("leaky-pack", source, providers={"leaky": "leaky_pack:plugin"})
    monkeypatch.chdir(tmp_path)
    return site


@pytest.fixture
async def service(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Instance]:
    orders = tmp_path / "orders"
    orders.mkdir()
    async with running_telegram() as telegram, running_kie(catalog=CATALOG) as kie:
        settings = simulator_settings(telegram.url, telegram.token, kie, f"sqlite:///{tmp_path}/genlock.db")
        settings |= {
            "PYTHONPATH": str(site),
            "GENLOCK_ECHO_KEY": KEY,
            "GENLOCK_ECHO_KEYS": "unknown",
            "GENLOCK_LEAKY_KEY": KEY,
            "GENLOCK_FOLDER_PATH": str(orders),
            "GENLOCK_FREE_PER_DAY": "2",
            "GENLOCK_DASHBOARD_TOKEN": DASHBOARD,
            "GENLOCK_METRICS_TOKEN": DASHBOARD,
        }
        for name, setting in settings.items():
            monkeypatch.setenv(name, setting)
        instance = Instance("instance", tmp_path, settings)
        instance.start()
        await instance.wait_for_event("READY")
        yield instance
        instance.kill()
        assert KEY not in instance.text


async def result(folder: Path, name: str) -> str:
    path = folder / "orders" / name
    await poll_until(lambda: path.exists() and path.read_text(), seconds=30)
    return path.read_text()


async def pages(url: str) -> dict[str, str]:
    """Return the system page, the settings page and the metrics."""
    async with aiohttp.ClientSession() as session:
        answer = await session.post(f"{url}/dashboard/login", data={"token": DASHBOARD}, allow_redirects=False)
        cookie = SimpleCookie(answer.headers["Set-Cookie"])
        headers = {"Cookie": "; ".join(f"{name}={morsel.value}" for name, morsel in cookie.items())}
        found = {}
        for name, path in (("system", "/dashboard/system"), ("settings", "/dashboard/system/settings")):
            found[name] = await (await session.get(f"{url}{path}", headers=headers)).text()
        bearer = {"Authorization": f"Bearer {DASHBOARD}"}
        found["metrics"] = await (await session.get(f"{url}/metrics", headers=bearer)).text()
        return found


async def test_an_installed_plug_in_sells_and_delivers_and_a_broken_one_is_named_everywhere(
    service: Instance, tmp_path: Path
) -> None:
    order = {"user": "ann", "model": "echo/text", "input": {"prompt": "Hello, fox!"}}
    for name, content in (("1", order), ("2", {**order, "model": "no/model"}), ("3", "nonsense")):
        tmp_path.joinpath("orders", f"{name}.json").write_text(json.dumps(content))

    assert await result(tmp_path, "1-0.txt") == "Hello, fox!"
    assert await result(tmp_path, "2.txt") == "this model is not on sale"
    assert "Input should be an object" in await result(tmp_path, "3.txt")
    await service.wait_for_event("MARK_DELIVERED")

    left_out, leaky = service.events("PLUGIN_LEFT_OUT")
    assert leaky["reason"] == "it cannot be made: RuntimeError: refused: ***"
    assert (left_out["name"], left_out["package"]) == ("broken", "broken-pack 1.0")
    assert "No module named 'no_such_module'" in left_out["reason"]
    assert "pip uninstall broken-pack" in left_out["remedy"]
    assert [(line["name"], line["nearest"]) for line in service.events("SETTING_UNKNOWN")] == [
        ("GENLOCK_ECHO_KEYS", "GENLOCK_ECHO_KEY")
    ]

    shown = await pages(service.url)
    for part in ("genlock-echo 1.0", "broken-pack 1.0", "no_such_module", "pip uninstall broken-pack"):
        assert part in shown["system"], part
    assert "GENLOCK_ECHO_KEY" in shown["settings"]
    assert "GENLOCK_FOLDER_PATH" in shown["settings"]
    assert all(KEY not in text for text in shown.values())
    assert 'genlock_plugin{kind="provider",name="echo",state="in_use",version="1.0"} 1.0' in shown["metrics"]
    assert 'genlock_plugin{kind="provider",name="broken",state="left_out",version="1.0"} 1.0' in shown["metrics"]

    doctor = Doctor(Settings())
    phases = {phase.name: phase for phase in await doctor.examine()}
    assert phases["channel"].ok, phases["channel"]
    assert "echo does not report the credit left" in phases["channel"].detail
    assert not phases["plug-ins"].ok
    assert KEY not in phases["plug-ins"].detail
    assert "the provider broken: broken_pack:plugin cannot be imported" in phases["plug-ins"].detail
    assert doctor.warnings() == [("GENLOCK_ECHO_KEYS", "GENLOCK_ECHO_KEY")]


def test_the_example_is_short() -> None:
    lines = sum(len(path.read_text().splitlines()) for path in EXAMPLE.rglob("src/**/*.py"))
    assert lines < LINES_MAX
