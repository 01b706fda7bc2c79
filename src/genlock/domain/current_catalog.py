"""The catalog in effect, which an operator's edit replaces while the service runs."""

from collections.abc import Callable

from genlock.domain.catalog import Catalog, Model


class CurrentCatalog:
    """Holds the catalog in effect. A part reads it when it needs it, and keeps a model for the rest of one action."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._watchers: list[Callable[[Catalog], None]] = []

    def get(self) -> Catalog:
        return self._catalog

    def model(self, model_id: str) -> Model:
        """Return a model as it is now. Raises ModelNotFound."""
        return self._catalog.get(model_id)

    def watch(self, watcher: Callable[[Catalog], None]) -> None:
        """Call the watcher with every catalog that replaces this one."""
        self._watchers.append(watcher)

    def replace(self, catalog: Catalog) -> None:
        self._catalog = catalog
        for watcher in self._watchers:
            watcher(catalog)
