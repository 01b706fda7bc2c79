"""The doctor's checks of the providers: each answers, accepts the key, has credit and the models on sale."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from genlock.app.plugins import Plugins
from genlock.app.providers import without_files
from genlock.doctor.check_failed import CheckFailed, require
from genlock.domain.catalog import Catalog
from genlock.domain.errors import GenlockError
from genlock.ports import ProviderBundle, ProviderHealth
from genlock.ports.provider import FetchSchemas

ANSWER_SECONDS = 10.0
#: for the schemas of all models of a provider
SCHEMAS_SECONDS = 30.0
SHOWN_MAX = 5


class ProviderChecks:
    def __init__(self, bundles: Mapping[str, ProviderBundle], catalog: Catalog, plugins: Plugins) -> None:
        self._bundles = bundles
        self._catalog = catalog
        self._plugins = plugins

    async def check(self) -> str:
        """Ask every configured provider; a fault of one does not hide those of the others. Raises CheckFailed."""
        if not self._bundles:
            keys = self._plugins.key_settings()
            raise CheckFailed(f"no provider is configured: set the API key of at least one: {keys}")
        asked = (self._provider(bundle) for bundle in self._bundles.values())
        answers = await asyncio.gather(*asked, return_exceptions=True)
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        for error in errors:
            if not isinstance(error, CheckFailed | GenlockError):
                raise error
        details = "; ".join(map(str, [*answers, *self._without_files()]))
        require(not errors, details)
        return details

    def _without_files(self) -> list[str]:
        """Name the providers that can read no file of a user: they get no orders with one."""
        titles = [self._plugins.title(name) for name in without_files(self._bundles)]
        if not titles:
            return []
        text = (
            f"{', '.join(titles)}: no storage for users' files, and those of the other providers are not public. "
            "Orders with a file go to other providers; models that need a file and have no other provider are hidden. "
            "To sell them, also configure a provider whose stored files are public: "
            f"{self._plugins.key_settings(self._bundles)}"
        )
        return [text]

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
        answer = f"{self._title(bundle)}: {health.text}"
        require(health.ok, answer)
        return answer

    async def _credit(self, bundle: ProviderBundle) -> str:
        if bundle.credit is None:
            return f"{self._title(bundle)} does not report the credit left"
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                left = await bundle.credit()
        except Exception as error:  # noqa: BLE001 - the adapter may be another package's
            raise self._no_answer(bundle, "does not report the credit left", error) from None
        require(left > 0, f"{self._title(bundle)} accepts the key, but no credit is left there: top up the account")
        return f"{_without_zeros(left / 1000)} credits are left at {self._title(bundle)}"

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
            f"{self._title(bundle)} does not have models that are on sale: {', '.join(gone[:SHOWN_MAX])}{more}. Orders "
            "of them go to another provider or fail; `genlock models sync --apply` pauses them",
        )
        return f"all {len(found)} models that it makes are there"

    def _no_answer(self, bundle: ProviderBundle, what: str, error: Exception) -> CheckFailed:
        text = f"{self._title(bundle)} {what} ({type(error).__name__}: {error})"
        variables = self._plugins.setting_names(bundle.name)
        return CheckFailed(f"{text}: check {', '.join(variables)}" if variables else text)

    def _title(self, bundle: ProviderBundle) -> str:
        return self._plugins.title(bundle.name)


def _without_zeros(number: float) -> str:
    """Return a number with separators of thousands, and decimals only if it has some."""
    return f"{number:,.3f}".rstrip("0").rstrip(".")
