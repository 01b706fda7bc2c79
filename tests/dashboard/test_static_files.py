"""Static files: ours, and those of others with their version, licence and hash."""

import hashlib
import tomllib
from pathlib import Path

import genlock.dashboard
from genlock.dashboard.rendering import static_files, static_path
from tests.dashboard.world import DashboardWorld

FOLDER = Path(genlock.dashboard.__file__).parent / "static"
OURS = {"dashboard.css", "dashboard.js", "icon.svg"}


def test_every_vendored_file_has_a_version_a_licence_and_its_hash() -> None:
    listed = tomllib.loads((FOLDER / "vendored.toml").read_text(encoding="utf-8"))
    for name, entry in listed.items():
        assert entry["version"], name
        assert entry["licence"], name
        assert hashlib.sha256((FOLDER / entry["file"]).read_bytes()).hexdigest() == entry["sha256"], name
    assert {entry["file"] for entry in listed.values()} | OURS == set(static_files())


async def test_a_page_of_before_a_deploy_still_gets_its_files(dashboard: DashboardWorld) -> None:
    client = dashboard.client()
    for path in (static_path("dashboard.css"), "/dashboard/static/of-an-older-version/dashboard.css"):
        answer = await client.get(path.removeprefix("/dashboard"))
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/css; charset=utf-8")
        own = path == static_path("dashboard.css")
        assert ("immutable" in answer.headers["Cache-Control"]) == own, "kept only under its own digest"
    assert (await client.get("/static/x/../../dashboard.py")).status in (303, 404)
    assert (await client.get("/static/x/vendored.toml")).status == 404
