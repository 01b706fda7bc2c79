"""The models and offers that a plug-in brings, in files of the same form as those of the package."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from genlock.domain.catalog import Model
from genlock.domain.errors import InvalidCatalog


@dataclass(frozen=True, kw_only=True)
class CatalogExtension:
    provider: str
    #: US dollars per credit of the provider
    credit_usd: Decimal
    #: None: the plug-in brings no models
    folder: Path | None = None

    def paths(self) -> list[Path]:
        """Return the files that describe models. Raises InvalidCatalog."""
        if self.folder is None:
            return []
        if not self.folder.is_dir():
            raise InvalidCatalog(f"{self.folder}: there is no such folder")
        return sorted(self.folder.glob("*.toml"))

    def check_id(self, model: Model, known: Mapping[str, Model], file: str) -> None:
        """Raise InvalidCatalog if the plug-in may not bring a model of this id."""
        prefix = f"{self.provider}/"
        if not model.id.startswith(prefix):
            raise InvalidCatalog(f"{file}: {model.id}: the ids of the plug-in's models must begin with {prefix!r}")
        if model.id in known:
            raise InvalidCatalog(f"{file}: {model.id}: is already described in another file")
