"""Installed plug-ins: found by their entry points, configured by their settings, left out if they cannot be used."""

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from genlock.app.installation import effective_settings, shown_plugins
from genlock.app.plugins import Plugin, PluginState, find_plugins
from genlock.app.providers import fetch_public_lists, load_catalog, make_bundles
from genlock.domain.errors import Refusal
from genlock.log import Mask
from genlock.ports.provider import ListsIncomplete
from genlock.settings import ServiceSettings, Settings, read_settings, unknown_settings, unknown_settings_messages
from tests.packaged import CATALOG as PACKAGED
from tests.plugins.packages import CATALOG, PLUGIN, SECRET, Packages, provider_source


def installed() -> Plugin:
    [plugin] = find_plugins().installed
    return plugin


def broken(packages: Packages, source: str, **entries: str) -> Plugin:
    """Return what became of a plug-in after everything that the service does with it at its start."""
    packages.add("acme-pack", source, providers=entries or PLUGIN)
    plugins = find_plugins()
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
    plugins = find_plugins()
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
    shown = {setting.name: setting for setting in effective_settings(Settings(), find_plugins())}
    assert (shown["GENLOCK_ACME_KEY"].is_secret, shown["GENLOCK_ACME_KEY"].is_set) == (True, True)
    assert (shown["GENLOCK_ACME_SECONDS"].text, shown["GENLOCK_ACME_SECONDS"].source) == ("4.0", "env_file")
    assert SECRET not in str(shown)


def test_only_variables_that_no_plug_in_declares_are_unknown(
    packages: Packages, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages.add("acme-pack", provider_source("acme"), providers=PLUGIN)
    for name in ("GENLOCK_ACME_KEY", "GENLOCK_ACME_SECOND", "GENLOCK_ACMEX"):
        monkeypatch.setenv(name, "1")

    assert [name for name, _ in unknown_settings()] == ["GENLOCK_ACMEX"]
    unknown = list(find_plugins().unknown_settings())
    assert unknown == [("GENLOCK_ACME_SECOND", "GENLOCK_ACME_SECONDS")]
    assert "Unknown setting GENLOCK_ACME_SECOND: did you mean GENLOCK_ACME_SECONDS?" in unknown_settings_messages(
        unknown
    )


def test_a_plug_in_may_be_the_only_provider(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_TELEGRAM_TOKEN", "123456:AAsecretsecretsecret")
    with pytest.raises(Refusal, match="GENLOCK_KIE_API_KEY is not set"):
        read_settings(ServiceSettings)

    packages.add("acme-pack", provider_source("acme"), providers=PLUGIN)
    assert read_settings(ServiceSettings).bot_id == "123456"


LISTED = """settings=Settings, make=make, title="Acme Studio", key_page="acme.example/keys",
    public_lists=genlock.PublicSource(fetch=fetch, settings=Public))"""
FETCH = """
class Public(BaseModel):
    seconds: float = 1.5

async def fetch(settings):
    return genlock.PublicLists(ids=frozenset({str(settings.seconds)}))

def make("""


def listed_source() -> str:
    return (
        provider_source("acme", "def make(", FETCH)
        .replace("settings=Settings, make=make)", LISTED)
        .replace(
            'Field(description="the key',
            'Field(validation_alias=AliasChoices("GENLOCK_ACME_KEY", "ACME_KEY"), description="the key',
        )
        .replace("import BaseModel", "import AliasChoices, BaseModel")
    )


async def test_lists_that_a_provider_publishes_are_read_without_its_key(
    packages: Packages, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages.add("acme-pack", listed_source(), providers=PLUGIN)
    monkeypatch.setenv("GENLOCK_KIE_API_URL", "http://127.0.0.1:9")  # nothing answers there
    monkeypatch.setenv("GENLOCK_ACME_SECONDS", "4")

    with pytest.raises(ListsIncomplete) as incomplete:
        await fetch_public_lists(PACKAGED)

    assert installed().state is PluginState.NOT_CONFIGURED
    assert incomplete.value.lists["acme"].ids == {"4.0"}
    assert set(incomplete.value.problems) == {"kie"}


async def test_a_plug_in_that_breaks_does_not_hide_the_lists_of_others(
    packages: Packages, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "return genlock.PublicLists(ids=frozenset({str(settings.seconds)}))"
    sources = {
        "raises": listed_source().replace(body, "raise KeyError('gone')"),
        "no_lists": listed_source().replace(body, "return {}"),
        "not_async": listed_source().replace("async def fetch", "def fetch"),
        "no_list": listed_source().replace("    seconds: float = 1.5\n", "    seconds: list[int] = []\n", 1),
        "breaks": listed_source().replace(
            "    seconds: float = 1.5\n", "    def model_post_init(self, _):\n        raise KeyError('gone')\n", 1
        ),
    }
    for name, source in sources.items():
        packages.add(f"{name}-pack", source, providers={name: f"{name}_pack:plugin"})
    packages.add("acme-pack", listed_source(), providers=PLUGIN)
    monkeypatch.setenv("GENLOCK_KIE_API_URL", "http://127.0.0.1:9")  # nothing answers there
    monkeypatch.setenv("GENLOCK_NO_LIST_SECONDS", "4")

    with pytest.raises(ListsIncomplete) as incomplete:
        await fetch_public_lists(PACKAGED)

    assert incomplete.value.lists["acme"].ids == {"1.5"}
    assert set(incomplete.value.problems) == {"kie", *sources}
    assert incomplete.value.problems["raises"] == "KeyError: 'gone'"


def test_messages_name_the_key_of_every_provider_and_where_to_find_it(packages: Packages) -> None:
    packages.add("acme-pack", listed_source(), providers=PLUGIN)
    plugins = find_plugins()
    assert plugins.key_settings() == (
        "GENLOCK_KIE_API_KEY (Kie.ai's API key page shows it), GENLOCK_FAL_KEY (fal.ai/dashboard/keys), "
        "GENLOCK_REPLICATE_TOKEN (replicate.com/account/api-tokens) or GENLOCK_ACME_KEY (acme.example/keys)"
    )
    titles = {name: plugins.title(name) for name in ("kie", "fal", "replicate", "acme", "gone")}
    assert list(titles.values()) == ["Kie.ai", "fal", "Replicate", "Acme Studio", "gone"]


def test_a_plug_in_may_declare_names_that_platforms_set(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    packages.add("acme-pack", listed_source(), providers=PLUGIN)
    assert installed().missing == ("GENLOCK_ACME_KEY",)
    for name in ("GENLOCK_ACME_KEY", "ACME_KEY"):
        with monkeypatch.context() as patch:
            patch.setenv(name, SECRET)
            plugins = find_plugins()
            assert [plugin.state for plugin in plugins.installed] == [PluginState.IN_USE]
            assert plugins.secrets() == [SECRET]


@pytest.mark.process
def test_settings_are_read_without_loading_an_adapter() -> None:
    code = (
        "import sys; from genlock.settings import Settings, read_settings; read_settings(Settings).secrets(); "
        "print([name for name in sys.modules if name == 'aiohttp' or name.endswith(('.client', '.bundle'))])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"


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
    "title": (("make=make", "make=make, title=1"), "its title or key_page is not a text"),
    "lists": (("make=make", "make=make, public_lists=make"), "its public_lists are not a PublicSource"),
    "files": (("rate_limits={}", "upload_seconds=0, rate_limits={}"), "upload_seconds must be above 0"),
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
    assert "GENLOCK_ACME_SECONDS must be more than 0 (how long a task takes; default: 1.5)" in plugin.reason
    assert "77777" not in plugin.reason
    assert "correct the settings" in plugin.remedy


def test_every_form_of_a_secret_is_masked(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = """    key: Annotated[SecretStr, AfterValidator(lambda key: SecretStr(key.get_secret_value().strip()))]
    more: list[SecretStr] = []
    account: "Account | None" = None
"""
    source = provider_source("acme", '    key: SecretStr = Field(description="the key of the account")\n', declared)
    source = source.replace(
        "class Settings(",
        "from typing import Annotated\nfrom pydantic import AfterValidator\n\n"
        "class Account(BaseModel):\n    name: str\n    password: SecretStr\n\nclass Settings(",
    )
    packages.add("acme-pack", source, providers=PLUGIN)
    monkeypatch.setenv("GENLOCK_ACME_MORE", '["the-second-secret", "the-third-secret"]')
    monkeypatch.setenv("GENLOCK_ACME_ACCOUNT", '{"name": "a", "password": "the-password"}')
    waiting = {setting.name: setting for setting in effective_settings(Settings(), find_plugins())}[
        "GENLOCK_ACME_ACCOUNT"
    ]
    assert (waiting.is_secret, waiting.is_set, waiting.text) == (True, True, "")

    monkeypatch.setenv("GENLOCK_ACME_KEY", f" {SECRET} ")
    plugins = find_plugins()

    assert plugins.installed[0].state is PluginState.IN_USE
    mask = Mask(plugins.secrets())
    for secret in (SECRET, "the-second-secret", "the-third-secret", "the-password"):
        assert secret not in mask(f"refused: {secret}")


def test_a_check_of_a_plug_in_that_breaks_shows_no_secret(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    check = """    def model_post_init(self, _):
        raise KeyError(self.key.get_secret_value())

class Adapter("""
    packages.add("acme-pack", provider_source("acme", "class Adapter(", check), providers=PLUGIN)
    monkeypatch.setenv("GENLOCK_ACME_KEY", SECRET)

    plugins = find_plugins()

    [plugin] = plugins.installed
    assert plugin.state is PluginState.LEFT_OUT
    [shown] = shown_plugins(plugins, Mask(plugins.secrets()))
    assert "its settings cannot be read: KeyError" in shown.reason
    assert SECRET not in str(shown)
    assert SECRET not in str(effective_settings(Settings(), plugins))


def test_names_that_are_taken_or_no_names_are_refused(packages: Packages) -> None:
    source, names = provider_source("acme"), ("kie", "kie_api", "media", "Acme", "a", "acme/x", "x" * 40)
    packages.add(
        "acme-pack",
        source,
        providers=dict.fromkeys(names, "acme_pack:plugin"),
        channels={"api": "acme_pack:x", "fal": "acme_pack:x"},
    )

    plugins = find_plugins()

    reasons = {plugin.name: plugin.reason for plugin in plugins.installed if plugin.state is PluginState.LEFT_OUT}
    assert set(reasons) == {*names, "api", "fal"}
    assert all("belongs to genlock itself" in reasons[name] for name in ("kie", "kie_api", "media", "api", "fal"))
    assert all("is not a name" in reasons[name] for name in ("Acme", "a", "acme/x", "x" * 40))
    assert [plugin.name for plugin in plugins.all if plugin.is_built_in] == ["kie", "fal", "replicate"]


def test_of_two_packages_with_the_same_name_neither_is_used(packages: Packages) -> None:
    packages.add("acme-pack", provider_source("acme"), providers=PLUGIN)
    packages.add("other-pack", provider_source("acme"), providers={"acme": "other_pack:plugin"})

    found = find_plugins().installed

    assert [plugin.state for plugin in found] == [PluginState.LEFT_OUT] * 2
    assert all("acme-pack and other-pack both bring the provider 'acme'" in plugin.reason for plugin in found)


def test_of_two_plug_ins_that_share_a_setting_neither_gets_the_key_of_the_other(
    packages: Packages, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages.add("acme-pack", provider_source("acme", "    key:", "    pro_key:"), providers=PLUGIN)
    packages.add("pro-pack", provider_source("acme_pro"), providers={"acme_pro": "pro_pack:plugin"})
    packages.add("other-pack", provider_source("other"), providers={"other": "other_pack:plugin"})
    monkeypatch.setenv("GENLOCK_ACME_PRO_KEY", SECRET)
    monkeypatch.setenv("GENLOCK_OTHER_KEY", "the-secret-key-of-another")

    plugins = find_plugins()

    assert {plugin.name for plugin in plugins.left_out} == {"acme", "acme_pro"}
    assert all(
        "GENLOCK_ACME_PRO_KEY is a setting of 'acme' and of 'acme_pro'" in plugin.reason for plugin in plugins.left_out
    )
    assert set(make_bundles(plugins, PACKAGED)) == {"other"}
    assert SECRET in plugins.secrets()


def test_a_list_of_entry_points_that_cannot_be_read_harms_nothing_else(packages: Packages) -> None:
    packages.add("bad-pack", "", entry_points="[genlock.providers]\nno equals sign\n")
    packages.add("unrelated", "", entry_points="[console_scripts]\nno equals sign\n")
    packages.add("acme-pack", provider_source("acme"), providers=PLUGIN)

    found = {plugin.package: plugin for plugin in find_plugins().installed}

    assert {name: plugin.state for name, plugin in found.items()} == {
        "bad-pack": PluginState.LEFT_OUT,
        "acme-pack": PluginState.NOT_CONFIGURED,
    }
    assert "cannot be read" in found["bad-pack"].reason
