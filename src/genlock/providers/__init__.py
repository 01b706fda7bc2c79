"""The adapters of providers that this package brings, as entry points like those of installed plug-ins."""

from importlib.metadata import EntryPoint

from genlock.ports.plugin import ProviderPlugin

#: where each plug-in is, by the provider's name; messages name the settings of the first one
BUILT_IN = {
    "kie": "genlock.providers.kie.plugin:plugin",
    "fal": "genlock.providers.fal.plugin:plugin",
    "replicate": "genlock.providers.replicate.plugin:plugin",
}


def built_in_plugins() -> dict[str, ProviderPlugin]:
    """Load what each adapter declares, by the provider's name. The adapters themselves are not loaded."""
    return {name: EntryPoint(name, place, "genlock.providers").load() for name, place in BUILT_IN.items()}
