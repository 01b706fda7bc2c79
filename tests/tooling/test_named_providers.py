"""Modules that know providers only through the port do not name one."""

from pathlib import Path

from tests.style.check_providers import SOURCE, named_providers, provider_names


def test_no_module_outside_the_adapters_names_a_provider() -> None:
    assert list(named_providers(SOURCE, provider_names())) == []


def test_a_module_that_names_a_provider_is_found(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine/x.py").write_text('if job.provider == "kie":\n    use_Kie()\n')
    (tmp_path / "settings.py").write_text("kie_api_key = 1\n")
    (tmp_path / "i18n/en").mkdir(parents=True)
    (tmp_path / "i18n/en/alarms.toml").write_text('remedy = "Set GENLOCK_KIE_WEBHOOK_KEY."\n')
    (tmp_path / "sandbox").mkdir()
    (tmp_path / "sandbox/x.py").write_text("kie = 1\n")

    found = [line.partition(" ")[0] for line in named_providers(tmp_path, ["kie"])]
    assert found == ["engine/x.py:1:", "engine/x.py:2:", "i18n/en/alarms.toml:1:", "settings.py:1:"]
