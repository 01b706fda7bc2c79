"""What the dashboard gets from the instance."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from genlock.app.plugins import Plugins
from genlock.catalog.editor import CatalogEditor
from genlock.domain.current_catalog import CurrentCatalog
from genlock.engine.attention import AttentionCounts
from genlock.engine.engine import Engine
from genlock.engine.logins import Logins
from genlock.engine.operator_tools import OperatorTools
from genlock.engine.stats import Stats
from genlock.i18n.catalog_texts import model_title
from genlock.i18n.translator import Texts, Translator
from genlock.media.download import Downloads
from genlock.ports import Database, MediaStore, ProviderBundle, PublicLists
from genlock.settings import ServiceSettings
from genlock.web.requests import BodyMemory

if TYPE_CHECKING:
    from genlock.dashboard.installation import Examine


@dataclass(frozen=True, kw_only=True)
class DashboardParts:
    """What the dashboard shows and changes."""

    settings: ServiceSettings
    store: Database
    engine: Engine
    logins: Logins
    memory: BodyMemory
    stats: Stats
    attention: AttentionCounts
    editor: CatalogEditor
    #: reads the providers' public lists of models and prices
    fetch_lists: Callable[[], Awaitable[Mapping[str, PublicLists]]]
    providers: Mapping[str, ProviderBundle]
    #: fetches results for previews
    downloads: Downloads
    #: has the copies of API clients' results
    media: MediaStore
    tools: OperatorTools
    #: for messages to users, with the bot's numbers of orders
    texts: Texts
    #: whether the instance accepts traffic; a connection that stays open ends when it does not
    is_open: Callable[[], bool] = lambda: True
    #: the installed plug-ins
    plugins: Plugins = field(default_factory=lambda: Plugins([]))
    #: runs the doctor and yields its phases; None: it cannot be run from the dashboard
    examine: "Examine | None" = None

    @property
    def catalog(self) -> CurrentCatalog:
        return self.editor.current

    def provider_title(self, name: str) -> str:
        return self.catalog.get().provider_title(name)

    def model_titles(self, t: Translator) -> dict[str, str]:
        """Return the titles of models by their ids, in the operator's language."""
        return {name: model_title(model.title, t) for name, model in self.catalog.get().models.items()}
