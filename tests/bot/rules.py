"""Rules and catalogs of test bots."""

from dataclasses import replace

from genlock.bot.rules import BotRules
from genlock.domain.catalog import Catalog
from tests.bot.world import PACKAGES
from tests.packaged import CATALOG

OPEN = BotRules(packages=PACKAGES, per_minute=1000, per_hour=10_000, running_max=1000)


def with_free(*ids: str) -> Catalog:
    return Catalog(models={name: replace(model, free=name in ids) for name, model in CATALOG.models.items()})
