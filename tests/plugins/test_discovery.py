"""Installed plug-ins: found by their entry points, configured by their settings, left out if they cannot be used."""

from decimal import Decimal
from pathlib import Path

import pytest

from genlock.app.installation import effective_settings
from genlock.app.plugins import Plugin, PluginState, find_plugins
from genlock.app.providers import load_catalog, make_bundles
from genlock.catalog.extensions import CatalogExtension
from genlock.catalog.loader import _extend
from genlock.domain.catalog import Status
from genlock.domain.errors import InvalidCatalog, Refusal
from genlock.settings import ServiceSettings, Settings, read_settings, unknown_settings, unknown_settings_messages
from tests.packaged import CATALOG as PACKAGED
from tests.plugins.packages import Packages, provider_source

SECRET = "the-secret-key-of-acme"
PLUGIN = {"acme": "acme_pack:plugin"}
CATALOG = "catalog=Path(__file__).parent / 'acme_models', settings=Settings, make=make"
MODEL = """
vendor = "Acme"
[models."acme/one"]
title = "One"
category = "text-to-image"
outputs = ["image"]
expected_seconds = 5
deadline_seconds = 60
prices = [{ credits = 2 }]
fields = [{ name = "prompt", type = "text", required = true, max_length = 100 }]
"""
OFFER = """
provider = "acme"
[offers."z-image"]
model = "acme-z"
inputs = { prompt = "text" }
ignored = ["aspect_ratio", "nsfw_checker"]
prices = [{ credits = 0.01 }]
verified = true
"""


def installed(settings: Settings | None = None) -> Plugin:
    [plugin] = find_plugins(settings or Settings()).installed
    return plugin


def broken(packages: Packages, source: str, **entries: str) -> Plugin:
    """Return what became of a plug-in after everything that the service does with it at its start."""
    packages.add("acme-pack", source, providers=entries or PLUGIN)
    plugins = find_plugins(Settings())
    catalog = load_catalog(Settings(), plugins) if "acme_models" in source else PACKAGED
    assert "acme" not in make_bundles(plugins, catalog)
    [plugin] = plugins.installed
    assert plugin.state is PluginState.LEFT_OUT
    assert plugin.remedy
    return plugin


def test_an_installed_provider_is_used_when_its_key_is_set(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    packages.add("acme-pack", provider_source("acme"), providers=PLUGIN)

    waiting = installed()
    assert (waiting.state, waiting.missing) == (PluginState.NOT_CONFIGURED, ("GENLOCK_ACME_KEY",))

    monkeypatch.setenv("GENLOCK_ACME_KEY", SECRET)
    plugins = find_plugins(Settings())
    [plugin] = plugins.installed
    assert (plugin.state, plugin.package, plugin.version) == (PluginState.IN_USE, "acme-pack", "1.0")
    bundles = make_bundles(plugins, PACKAGED)
    assert bundles["acme"].credit_usd == Decimal(1)
    assert plugins.secrets() == [SECRET]


def test_an_empty_key_is_a_key_that_is_not_set(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    packages.add("acme-pack", provider_source("acme"), providers=PLUGIN)
    monkeypatch.setenv("GENLOCK_ACME_KEY", "")
    assert installed().state is PluginState.NOT_CONFIGURED


def test_the_settings_of_a_plug_in_come_from_the_env_file_too(packages: Packages, tmp_path: Path) -> None:
    packages.add("acme-pack", provider_source("acme"), providers=PLUGIN)
    (tmp_path / ".env").write_text(f"GENLOCK_ACME_KEY={SECRET}\nGENLOCK_ACME_SECONDS=4\n")

    plugin = installed()

    assert plugin.settings is not None
    assert plugin.settings.model_dump()["seconds"] == 4.0
    shown = {one.name: one for one in effective_settings(Settings(), find_plugins(Settings()))}
    assert (shown["GENLOCK_ACME_KEY"].is_secret, shown["GENLOCK_ACME_KEY"].is_set) == (True, True)
    assert (shown["GENLOCK_ACME_SECONDS"].shown, shown["GENLOCK_ACME_SECONDS"].source) == ("4.0", "env_file")
    assert SECRET not in str(shown)


def test_only_variables_that_no_plug_in_declares_are_unknown(
    packages: Packages, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages.add("acme-pack", provider_source("acme"), providers=PLUGIN)
    for name in ("GENLOCK_ACME_KEY", "GENLOCK_ACME_SECOND", "GENLOCK_ACMEX"):
        monkeypatch.setenv(name, "1")

    assert [name for name, _ in unknown_settings()] == ["GENLOCK_ACMEX"]
    unknown = list(find_plugins(Settings()).unknown_settings())
    assert unknown == [("GENLOCK_ACME_SECOND", "GENLOCK_ACME_SECONDS")]
    assert "Unknown setting GENLOCK_ACME_SECOND: did you mean GENLOCK_ACME_SECONDS?" in unknown_settings_messages(
        unknown
    )


def test_a_plug_in_may_be_the_only_provider(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_TELEGRAM_TOKEN", "123456:AAsecretsecretsecret")
    with pytest.raises(Refusal, match="GENLOCK_KIE_API_KEY is not set"):
        read_settings(ServiceSettings)

    packages.add("acme-pack", provider_source("acme"), providers=PLUGIN)
    assert read_settings(ServiceSettings).kie_api_key is None


# broken plug-ins

BROKEN = {
    "import": (("import genlock.plugin", "import no_such_module, genlock.plugin"), "No module named 'no_such_module'"),
    "syntax": (("class Settings", "class"), "SyntaxError"),
    "exit": (("class Settings", "raise SystemExit(3)\nclass Settings"), "SystemExit: 3"),
    "wrong type": (("plugin = genlock.ProviderPlugin(port=1", "plugin = dict(port=1"), "is of the type dict"),
    "newer port": (("port=1", "port=2"), "version 2 of the provider port; this genlock has 1"),
    "older port": (("port=1", "port=0"), "version 0 of the provider port"),
    "port as text": (("port=1", "port='one'"), "version 'one'"),
    "no port": (("port=1, ", ""), "TypeError"),
    "settings": (("settings=Settings", "settings=dict"), "not a pydantic model"),
    "make raises": (("adapter = Adapter()", "raise RuntimeError('no licence')"), "RuntimeError: no licence"),
    "make returns": (("return genlock.ProviderBundle", "return dict"), "returned a dict"),
    "name differs": (('name = "acme"', 'name = "other"'), "called 'other'"),
    "method lacks": (("async def create(", "async def created("), "must define create"),
    "not a port": (("class Adapter(genlock.Provider)", "class Adapter"), "must define cancel, find"),
    "limits": (("rate_limits={}", "rate_limits={'create': genlock.RateLimit(interval=0)}"), "rate_limits['create']"),
    "concurrency": (("rate_limits={}", "concurrency=0, rate_limits={}"), "concurrency must be 1 or more"),
    "catalog": (("make=make", "make=make, catalog='here'"), "its catalog is not a Path"),
    "credit": (("make=make", "make=make, credit_usd=0.5"), "its credit_usd is not a Decimal"),
    "make": (("make=make", "make=None"), "it cannot be made: TypeError"),
    "no catalog": (("settings=Settings, make=make", CATALOG), "there is no such folder"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_plug_in_is_left_out_with_the_reason_and_a_remedy(
    packages: Packages, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENLOCK_ACME_KEY", SECRET)
    change, reason = BROKEN[case]
    plugin = broken(packages, provider_source("acme", *change))
    assert reason in plugin.reason
    assert "acme-pack" in plugin.remedy


def test_wrong_settings_are_named_and_never_shown(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_ACME_SECONDS", "-77777")
    plugin = broken(packages, provider_source("acme"))
    assert "GENLOCK_ACME_KEY is not set: it is the key of the account" in plugin.reason
    assert "GENLOCK_ACME_SECONDS should be greater than 0; it is how long a task takes (default: 1.5)" in plugin.reason
    assert "77777" not in plugin.reason
    assert "correct the settings" in plugin.remedy


def test_names_that_are_taken_or_no_names_are_refused(packages: Packages) -> None:
    source, names = provider_source("acme"), ("kie", "media", "Acme", "a", "acme/x", "x" * 40)
    packages.add(
        "acme-pack", source, providers=dict.fromkeys(names, "acme_pack:plugin"), channels={"api": "acme_pack:x"}
    )

    plugins = find_plugins(Settings())

    reasons = {one.name: one.reason for one in plugins.installed if one.state is PluginState.LEFT_OUT}
    assert set(reasons) == {*names, "api"}
    assert all("belongs to genlock itself" in reasons[name] for name in ("kie", "media", "api"))
    assert all("is not a name" in reasons[name] for name in ("Acme", "a", "acme/x", "x" * 40))
    assert [one.name for one in plugins.all if one.is_built_in] == ["kie", "fal", "replicate"]


def test_of_two_packages_with_the_same_name_neither_is_used(packages: Packages) -> None:
    packages.add("acme-pack", provider_source("acme"), providers=PLUGIN)
    packages.add("other-pack", provider_source("acme"), providers={"acme": "other_pack:plugin"})

    found = find_plugins(Settings()).installed

    assert [one.state for one in found] == [PluginState.LEFT_OUT] * 2
    assert all("acme-pack and other-pack both bring the provider 'acme'" in one.reason for one in found)


def test_a_list_of_entry_points_that_cannot_be_read_harms_nothing_else(packages: Packages) -> None:
    packages.add("bad-pack", "", entry_points="[genlock.providers]\nno equals sign\n")
    packages.add("unrelated", "", entry_points="[console_scripts]\nno equals sign\n")
    packages.add("acme-pack", provider_source("acme"), providers=PLUGIN)

    found = {one.package: one for one in find_plugins(Settings()).installed}

    assert {name: one.state for name, one in found.items()} == {
        "bad-pack": PluginState.LEFT_OUT,
        "acme-pack": PluginState.NOT_CONFIGURED,
    }
    assert "cannot be read" in found["bad-pack"].reason


# models


def with_models(packages: Packages, model: str = MODEL, offer: str = OFFER) -> None:
    packages.add("acme-pack", provider_source("acme", "settings=Settings, make=make", CATALOG), providers=PLUGIN)
    offers = packages.folder / "acme_models" / "offers"
    offers.mkdir(parents=True)
    offers.parent.joinpath("models.toml").write_text(model)
    offers.joinpath("acme.toml").write_text(offer)


def test_the_models_and_offers_of_a_plug_in_are_in_the_catalog(packages: Packages) -> None:
    with_models(packages)
    catalog = load_catalog(Settings(), find_plugins(Settings()))

    assert (catalog.get("acme/one").provider, catalog.provider_credit_usd["acme"]) == ("acme", Decimal(1))
    assert "acme" in [offer.provider for offer in catalog.get("z-image").offers]
    assert catalog.sold_through({"kie"}).get("acme/one").status is Status.HIDDEN
    assert catalog.sold_through({"acme"}).get("acme/one").status is Status.OFFERED


def test_a_plug_in_with_a_wrong_catalog_is_left_out_and_everything_else_is_sold(
    packages: Packages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENLOCK_ACME_KEY", SECRET)
    with_models(packages, offer=OFFER.replace('"acme"', '"kie"'))
    overlay = packages.folder / "overlay.toml"
    overlay.write_text(
        '[models."acme/one"]\nprice = 5\n[models."z-image"]\noffers = ["acme", "kie"]\n'
        '[models."google/nano-banana"]\noffers = ["acme"]\n[wishes.draw]\npopular = ["acme/one", "z-image"]\n'
    )
    monkeypatch.setenv("GENLOCK_CATALOG_OVERLAY", str(overlay))
    plugins = find_plugins(Settings())

    catalog = load_catalog(Settings(), plugins)

    [plugin] = plugins.installed
    assert "provider must be one of acme" in plugin.reason
    assert "acme/one" not in catalog.models
    assert catalog.get("z-image").preference == ("kie",)


WRONG_MODELS = {
    "must begin with 'acme/'": ('"acme/one"', '"one"'),
    "provider must be one of acme": ('vendor = "Acme"', 'vendor = "Acme"\nprovider = "kie"'),
    "unknown key titel": ("title", "titel"),
    "is not TOML": ("[models", "[models."),
}


def test_what_is_wrong_with_a_plug_ins_models_is_named(tmp_path: Path) -> None:
    extension = CatalogExtension(provider="acme", credit_usd=Decimal(1), folder=tmp_path)
    for wrong, (old, new) in WRONG_MODELS.items():
        tmp_path.joinpath("models.toml").write_text(MODEL.replace(old, new, 1))
        with pytest.raises(InvalidCatalog) as raised:
            _extend(PACKAGED.models, extension, {})
        assert wrong in str(raised.value)


def test_an_overlay_may_not_name_models_that_were_never_there(
    packages: Packages, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlay = packages.folder / "overlay.toml"
    overlay.write_text('[models."acme/one"]\nprice = 5\n')
    monkeypatch.setenv("GENLOCK_CATALOG_OVERLAY", str(overlay))
    with pytest.raises(InvalidCatalog, match="there is no such model"):
        load_catalog(Settings(), find_plugins(Settings()))
