"""What a screen is drawn from, without a running bot."""

from genlock.bot.screen_context import ScreenContext
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.money import Wallet
from genlock.domain.promo import FreeRuns
from genlock.i18n.translator import translator
from tests.packaged import CATALOG

SHOP = Storefront(CATALOG, markup=2.0, credit_usd=0.01)


def screen_context(language: str = "en", available: int = 50_000, *, group: bool = False) -> ScreenContext:
    wallet = Wallet(account_id=1, available=available, held=0)
    return ScreenContext(
        translator=translator(language), storefront=SHOP, wallet=wallet, free=FreeRuns(today=1, gifts=0), group=group
    )
