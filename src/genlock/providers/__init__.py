"""The adapters of providers that this package brings, as entry points like those of installed plug-ins."""

#: where each plug-in is, by the provider's name
BUILT_IN = {
    "kie": "genlock.providers.kie.plugin:plugin",
    "fal": "genlock.providers.fal.plugin:plugin",
    "replicate": "genlock.providers.replicate.plugin:plugin",
}
