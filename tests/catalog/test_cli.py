"""The `genlock models` commands."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from genlock.catalog import load
from genlock.cli import app
from genlock.ports import PublicLists
from genlock.providers.kie import public_lists

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder without the developer's `.env`."""
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> str:
    result = RUNNER.invoke(app, ["models", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_models_are_listed_by_category() -> None:
    rows = json.loads(run("ls", "--category", "music", "--json"))
    assert {row["category"] for row in rows} == {"music"}
    assert {"model": "suno/generate", "title": "Suno", "category": "music", "from": 12.0} in rows


def test_all_models_are_listed_with_their_reasons() -> None:
    rows = {row["model"]: row for row in json.loads(run("ls", "--all", "--json"))}
    assert rows["midjourney"]["status"] == "dead"
    assert "removed" in rows["midjourney"]["reason"] or "gone" in rows["midjourney"]["reason"]
    assert rows["seedream/5-flash-text-to-image"]["from"] is None


def test_a_model_is_shown_with_its_inputs_and_prices() -> None:
    text = run("show", "nano-banana-pro")
    assert "Nano Banana Pro, text-to-image, offered" in text
    assert "resolution" in text
    whole = json.loads(run("show", "nano-banana-pro", "--json"))
    assert [row["our_credits"] for row in whole["our_prices"]] == [18.0, 24.0]


def test_the_provider_is_shown_and_whether_it_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Provider: kie (no key is set for it" in run("show", "z-image")
    monkeypatch.setenv("GENLOCK_KIE_API_KEY", "key-of-an-account")
    assert "Provider: kie\n" in run("show", "z-image")
    details = json.loads(run("show", "z-image", "--json"))
    assert (details["provider"], details["provider_configured"]) == ("kie", True)


def test_the_offers_of_a_model_are_shown_with_their_cost_and_whether_they_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own, other = json.loads(run("show", "kling/v2-1-standard", "--json"))["offers"]
    assert (own["provider"], own["used"], own["cost"]) == ("kie", "yes", "$0.125")
    assert (other["provider"], other["used"], other["cost"]) == ("fal", "yes", "$0.28")
    assert "fal-ai/kling-video/v2.1/standard/image-to-video" in run("show", "kling/v2-1-standard")
    assert [row["used"] for row in json.loads(run("show", "flux-kontext-pro", "--json"))["offers"]] == [
        "yes",
        "not verified",
        "not verified",
    ]
    path = tmp_path / "overlay.toml"
    path.write_text('[models."flux-kontext-pro"]\noffers = ["replicate"]\n', encoding="utf-8")
    monkeypatch.setenv("GENLOCK_CATALOG_OVERLAY", str(path))
    listed = json.loads(run("show", "flux-kontext-pro", "--json"))["offers"]
    assert [(row["provider"], row["used"]) for row in listed] == [
        ("replicate", "yes"),
        ("kie", "not listed"),
        ("fal", "not verified"),
    ]


def test_the_operator_s_own_price_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "overlay.toml"
    path.write_text('[models."z-image"]\nprice = 12.5\n', encoding="utf-8")
    monkeypatch.setenv("GENLOCK_CATALOG_OVERLAY", str(path))
    [row] = json.loads(run("show", "z-image", "--json"))["our_prices"]
    assert (row["our_credits"], row["as_of"]) == (12.5, "set by the operator")
    assert "12.5" in run("show", "z-image")


def test_the_check_says_how_many_are_offered() -> None:
    result = json.loads(run("check", "--json"))
    assert result["offered"] >= 130
    assert (result["failed"], result["failures"]) == (0, [])


def test_settings_change_the_prices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "overlay.toml"
    path.write_text('[models."z-image"]\ntitle = "Cheap pictures"\n', encoding="utf-8")
    monkeypatch.setenv("GENLOCK_MARKUP", "4")
    monkeypatch.setenv("GENLOCK_CATALOG_OVERLAY", str(path))
    rows = json.loads(run("ls", "--json"))
    assert rows[0] == {"model": "z-image", "title": "Cheap pictures", "category": "text-to-image", "from": 1.6}


def test_sync_needs_a_file_to_write_to() -> None:
    result = RUNNER.invoke(app, ["models", "sync", "--apply"])
    assert result.exit_code == 1
    assert "GENLOCK_CATALOG_OVERLAY is not set" in str(result.exception)


@pytest.mark.slow
def test_sync_makes_the_overlay_if_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "overlay.toml"

    async def fetch(_: str) -> PublicLists:
        ids = frozenset(load().models) - {"z-image"} | {"maker/new"}
        return PublicLists(ids=ids, prices={}, families=frozenset({""}))

    monkeypatch.setattr(public_lists, "fetch", fetch)
    monkeypatch.setenv("GENLOCK_CATALOG_OVERLAY", str(path))
    assert json.loads(run("sync", "--json"))["gone"] == ["z-image"]
    assert not path.exists()
    assert "maker/new" in run("sync", "--apply")
    assert load(path).get("z-image").status == "paused"
    assert json.loads(run("sync", "--json"))["gone"] == []
