"""The doctor's checks of the providers: each answers, accepts the key, has credit and the models on sale."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from genlock.app.providers import KEY_SETTINGS
from genlock.doctor.phase import CheckFailed, require
from genlock.domain.catalog import Catalog
from genlock.domain.errors import GenlockError
from genlock.ports import ProviderBundle, ProviderHealth
from genlock.ports.provider import FetchSchemas

ANSWER_SECONDS = 10.0
#: for the schemas of all models of a provider
SCHEMAS_SECONDS = 30.0
SHOWN_MAX = 5


class ProviderChecks:
    """`variables` has the settings of each provider, by its name."""

    def __init__(
        self, bundles: Mapping[str, ProviderBundle], catalog: Catalog, variables: Mapping[str, Sequence[str]]
    ) -> None:
        self._bundles = bundles
        self._catalog = catalog
        self._variables = variables

    async def check(self) -> str:
        """Ask every configured provider; a fault of one does not hide those of the others. Raises CheckFailed."""
        if not self._bundles:
            raise CheckFailed("no provider is configured: set the API key of at least one: " + KEY_SETTINGS)
        asked = (self._provider(bundle) for bundle in self._bundles.values())
        answers = await asyncio.gather(*asked, return_exceptions=True)
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        for error in errors:
            if not isinstance(error, CheckFailed | GenlockError):
                raise error
        details = "; ".join(map(str, answers))
        require(not errors, details)
        return details

    async def _provider(self, bundle: ProviderBundle) -> str:
        found = []
        if bundle.health is not None:
            found.append(await self._health(bundle, bundle.health))
        if bundle.credit is not None or bundle.health is None:
            found.append(await self._credit(bundle))
        if bundle.credit_note:
            found.append(bundle.credit_note)
        if bundle.fetch_schemas is not None:
            found.append(await self._models(bundle, bundle.fetch_schemas))
        return "; ".join(found)

    async def _health(self, bundle: ProviderBundle, ask: Callable[[], Awaitable[ProviderHealth]]) -> str:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                health = await ask()
        except Exception as error:  # noqa: BLE001 - the adapter may be another package's
            raise self._no_answer(bundle, "does not answer", error) from None
        require(health.ok, f"{bundle.name}: {health.text}")
        return f"{bundle.name}: {health.text}"

    async def _credit(self, bundle: ProviderBundle) -> str:
        if bundle.credit is None:
            return f"{bundle.name} does not report the credit left"
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                left = await bundle.credit()
        except Exception as error:  # noqa: BLE001 - the adapter may be another package's
            raise self._no_answer(bundle, "does not report the credit left", error) from None
        require(left > 0, f"{bundle.name} accepts the key, but no credit is left there: top up the account")
        return f"{left / 1000:g} credits are left at {bundle.name}"

    async def _models(self, bundle: ProviderBundle, fetch: FetchSchemas) -> str:
        """Compare the models on sale with those that the provider publishes."""
        offers = (offer for model in self._catalog.offered() for offer in model.used_offers())
        ids = list(dict.fromkeys(offer.model for offer in offers if offer.provider == bundle.name))
        try:
            async with asyncio.timeout(SCHEMAS_SECONDS):
                found = await fetch(ids)
        except Exception as error:  # noqa: BLE001 - the adapter may be another package's
            return f"its models were not compared ({type(error).__name__}: {error})"
        gone = [model for model, schema in found.items() if schema is None]
        more = f" and {len(gone) - SHOWN_MAX} more" if len(gone) > SHOWN_MAX else ""
        require(
            not gone,
            f"{bundle.name} does not have models that are on sale: {', '.join(gone[:SHOWN_MAX])}{more}. Orders of them "
            "go to another provider or fail; `genlock models sync --apply` pauses them",
        )
        return f"all {len(found)} models that it makes are there"

    def _no_answer(self, bundle: ProviderBundle, what: str, error: Exception) -> CheckFailed:
        text = f"{bundle.name} {what} ({type(error).__name__}: {error})"
        variables = self._variables.get(bundle.name)
        return CheckFailed(f"{text}: check {', '.join(variables)}" if variables else text)
